"""The keys of an issuer, fetched when they are needed and kept.

    first token, or a key that is not known ── fetch, and wait for it ─▶ kept
    kept for JWKS_AGE_MS                     ── fetch beside, go on with what is kept
    kept for JWKS_STALE_MS_MAX               ── none: who cannot be asked vouches for nobody

However many tokens come with keys that nobody knows, the issuer is asked once in JWKS_PAUSE_MS, or
in JWKS_RETRY_MS while it does not answer.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx
import jwt
import msgspec

from api.observability.logging import get_logger
from storage.domain import limits
from storage.domain.clock import Clock

ALGORITHMS = frozenset({"RS256", "ES256", "EdDSA"})
"""Signatures by a key that the issuer alone has. One that both sides have (HS256) proves nothing here."""

_FETCH_S = limits.JWKS_FETCH_MS / limits.SECOND_MS
_log = get_logger("auth")

Keys = Mapping[str, jwt.PyJWK]
"""By `kid`; one without any is known as the empty word."""


class Unreadable(Exception):
    """What the issuer answered is no set of keys."""


class KeySet:
    """One issuer's keys. `version` rises when they change."""

    def __init__(self, url: str, clock: Clock) -> None:
        self._url = url
        self._clock = clock
        self._keys: Keys = {}
        self._read_ms: int | None = None
        self._asks_again_ms = 0
        self._asking: asyncio.Task[None] | None = None
        self._raw = b""
        self.version = 0

    async def find(self, kid: str | None) -> jwt.PyJWK | None:
        """The key of that id; of a token that names none, the only one there is."""
        self.refresh()
        found = self._known(kid)
        if found is None and self._may_ask():
            await self._ask()
            found = self._known(kid)
        elif found is None and self._asking is not None:
            await asyncio.shield(self._asking)
            found = self._known(kid)
        return found

    def refresh(self) -> None:
        """Fetch anew, beside, what is old; forget what is too old."""
        age_ms = self._age_ms()
        if age_ms is None:
            return
        if age_ms >= limits.JWKS_STALE_MS_MAX:
            self._keep({}, b"")
            self._read_ms = None
        elif age_ms >= limits.JWKS_AGE_MS and self._may_ask():
            self._begin()

    def _known(self, kid: str | None) -> jwt.PyJWK | None:
        if kid is not None:
            return self._keys.get(kid)
        return next(iter(self._keys.values())) if len(self._keys) == 1 else None

    def _age_ms(self) -> int | None:
        return None if self._read_ms is None else self._clock.now_ms() - self._read_ms

    def _may_ask(self) -> bool:
        return self._asking is None and self._clock.now_ms() >= self._asks_again_ms

    async def _ask(self) -> None:
        await asyncio.shield(self._begin())

    def _begin(self) -> "asyncio.Task[None]":
        self._asks_again_ms = self._clock.now_ms() + limits.JWKS_PAUSE_MS
        self._asking = asyncio.create_task(self._fetch_and_keep(), name="jwks")
        return self._asking

    async def _fetch_and_keep(self) -> None:
        try:
            raw = await fetch(self._url)
            self._keep(parse(raw), raw)
            self._read_ms = self._clock.now_ms()
        except (httpx.HTTPError, Unreadable, TimeoutError, OSError) as error:
            self._asks_again_ms = self._clock.now_ms() + limits.JWKS_RETRY_MS
            _log.warning("jwks_unreadable", url=self._url, reason=str(error) or "no answer")
        finally:
            self._asking = None

    def _keep(self, keys: Keys, raw: bytes) -> None:
        if raw != self._raw:
            self._keys, self._raw = keys, raw
            self.version += 1


async def fetch(url: str) -> bytes:
    """What is at `url`: of a limited size, within a limited time, from there and nowhere else.

    Raises Unreadable, httpx.HTTPError, TimeoutError.
    """
    async with (
        asyncio.timeout(_FETCH_S),
        httpx.AsyncClient(timeout=_FETCH_S, trust_env=False, follow_redirects=False) as client,
        client.stream("GET", url, headers={"accept": "application/json"}) as response,
    ):
        if response.status_code != httpx.codes.OK:
            raise Unreadable(f"answered {response.status_code}")
        raw = b""
        async for piece in response.aiter_bytes(chunk_size=4 * limits.KIB):
            raw += piece
            if len(raw) > limits.JWKS_BYTES_MAX:
                raise Unreadable("answered more than a set of keys")
        return raw


def parse(raw: bytes) -> Keys:
    """The keys of a set that may sign tokens for us; others are left out. Raises Unreadable."""
    try:
        told = msgspec.json.decode(raw, type=dict[str, Any]).get("keys")
    except msgspec.DecodeError:
        raise Unreadable("answered no JSON") from None
    if not isinstance(told, list):
        raise Unreadable("answered no set of keys")
    keys: dict[str, jwt.PyJWK] = {}
    for one in told[: limits.JWKS_KEYS_MAX]:
        key = _usable(one)
        if key is not None:
            keys.setdefault(key.key_id or "", key)
    return keys


def _usable(told: Any) -> jwt.PyJWK | None:
    if not isinstance(told, dict) or told.get("use", "sig") != "sig":
        return None
    if not isinstance(told.get("kid", ""), str):
        return None
    try:
        key = jwt.PyJWK(told)
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None
    return key if key.algorithm_name in ALGORITHMS and "d" not in told else None
