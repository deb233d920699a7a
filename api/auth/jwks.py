"""Keys of a token issuer (JWKS), fetched on demand and cached.

    first token, or an unknown key      ── fetch, and wait for it ─▶ cached
    cached for JWKS_AGE_MS              ── fetch in the background, continue with the cached keys
    cached for JWKS_STALE_MS_MAX        ── no keys: an unreachable issuer verifies no token

However many tokens come with unknown keys, the issuer is requested once in JWKS_PAUSE_MS, or in JWKS_RETRY_MS while it
does not answer.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx
import jwt
import msgspec

from api.observability.logging import get_logger
from storage.concurrency.single_flight import SingleFlight
from storage.domain import limits
from storage.domain.clock import Clock

ALGORITHMS = frozenset({"RS256", "ES256", "EdDSA"})
"""Asymmetric signature algorithms. A shared key (HS256) would prove nothing here."""

_FETCH_S = limits.JWKS_FETCH_MS / limits.SECOND_MS
_log = get_logger("auth")

Keys = Mapping[str, jwt.PyJWK]
"""Keys by `kid`; the key without one has the empty string."""


class Unreadable(Exception):
    """The issuer's response is not a set of keys."""


class KeySet:
    """One issuer's keys. `version` increases when they change."""

    def __init__(self, url: str, clock: Clock) -> None:
        self._url = url
        self._clock = clock
        self._keys: Keys = {}
        self._read_ms: int | None = None
        self._next_fetch_ms = 0
        self._fetches = SingleFlight[str, None]()
        self._raw = b""
        self.version = 0

    async def find(self, kid: str | None) -> jwt.PyJWK | None:
        """Return the key of that id; for a token that names none, the only key."""
        self.refresh()
        key = self._cached_key(kid)
        if key is None and self._may_fetch():
            self._start_fetch()
        if key is None and self._url in self._fetches:
            await self._fetches.run(self._url, self._fetch_and_store)
            key = self._cached_key(kid)
        return key

    def refresh(self) -> None:
        """Refresh old keys in the background; drop keys that are too old."""
        age_ms = self._age_ms()
        if age_ms is None:
            return
        if age_ms >= limits.JWKS_STALE_MS_MAX:
            self._store({}, b"")
            self._read_ms = None
        elif age_ms >= limits.JWKS_AGE_MS and self._may_fetch():
            self._start_fetch()

    def _cached_key(self, kid: str | None) -> jwt.PyJWK | None:
        if kid is not None:
            return self._keys.get(kid)
        return next(iter(self._keys.values())) if len(self._keys) == 1 else None

    def _age_ms(self) -> int | None:
        return None if self._read_ms is None else self._clock.now_ms() - self._read_ms

    def _may_fetch(self) -> bool:
        return self._url not in self._fetches and self._clock.now_ms() >= self._next_fetch_ms

    def _start_fetch(self) -> None:
        self._next_fetch_ms = self._clock.now_ms() + limits.JWKS_PAUSE_MS
        self._fetches.begin(self._url, self._fetch_and_store)

    async def _fetch_and_store(self) -> None:
        try:
            raw = await fetch(self._url)
            self._store(parse(raw), raw)
            self._read_ms = self._clock.now_ms()
        except (httpx.HTTPError, Unreadable, TimeoutError, OSError) as error:
            self._next_fetch_ms = self._clock.now_ms() + limits.JWKS_RETRY_MS
            _log.warning("jwks_unreadable", url=self._url, reason=str(error) or "no response")

    def _store(self, keys: Keys, raw: bytes) -> None:
        if raw != self._raw:
            self._keys, self._raw = keys, raw
            self.version += 1


async def fetch(url: str) -> bytes:
    """Fetch `url`, limited in size and time, without redirects and proxies.

    Raises Unreadable, httpx.HTTPError, TimeoutError.
    """
    async with (
        asyncio.timeout(_FETCH_S),
        httpx.AsyncClient(timeout=_FETCH_S, trust_env=False, follow_redirects=False) as client,
        client.stream("GET", url, headers={"accept": "application/json"}) as response,
    ):
        if response.status_code != httpx.codes.OK:
            raise Unreadable(f"the response has status {response.status_code}")
        raw = b""
        async for piece in response.aiter_bytes(chunk_size=4 * limits.KIB):
            raw += piece
            if len(raw) > limits.JWKS_BYTES_MAX:
                raise Unreadable("the response is too large for a JWK set")
        return raw


def parse(raw: bytes) -> Keys:
    """Parse a set of keys, leaving out those that may not sign tokens. Raises Unreadable."""
    try:
        entries = msgspec.json.decode(raw, type=dict[str, Any]).get("keys")
    except msgspec.DecodeError:
        raise Unreadable("the response is not JSON") from None
    if not isinstance(entries, list):
        raise Unreadable("the response is not a JWK set")
    keys: dict[str, jwt.PyJWK] = {}
    for entry in entries[: limits.JWKS_KEYS_MAX]:
        key = _usable(entry)
        if key is not None:
            keys.setdefault(key.key_id or "", key)
    return keys


def _usable(entry: Any) -> jwt.PyJWK | None:
    if not isinstance(entry, dict) or entry.get("use", "sig") != "sig":
        return None
    if not isinstance(entry.get("kid", ""), str):
        return None
    try:
        key = jwt.PyJWK(entry)
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None
    return key if key.algorithm_name in ALGORITHMS and "d" not in entry else None
