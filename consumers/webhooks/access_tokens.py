"""Access tokens of a webhook: OAuth 2.0 client credentials grant (RFC 6749, 4.4).

    get ──▶ is the token in memory valid? ── yes ──▶ that one
                     └ no ──▶ one POST to the token endpoint, for all who wait ──▶ kept until shortly before its end

A sender has its own, so tokens end with the configuration that they were fetched with (ADR 0104).
"""

import base64
import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote_plus, urlencode

import httpcore
import httpx
import msgspec

from consumers.webhooks.ssrf_guard import (
    REQUEST_FAILURES,
    Connections,
    HttpResponse,
    Resolve,
    failure_text,
    resolve,
)
from storage.concurrency.single_flight import SingleFlight
from storage.domain import limits
from storage.domain.access.egress import Egress
from storage.domain.access.oauth import ClientAuth, OAuthClient
from storage.domain.clock import Clock

_TOKEN = re.compile(r"[\x21-\x7e]+")
_ERROR_CODE = re.compile(r"[a-z_]{1,64}")
_FORM = b"application/x-www-form-urlencoded"
_MARGIN_SHARE = 10


class TokenUnavailable(Exception):
    """Failure to get an access token; the text says why, without secrets.

    `retry_after`: the header of the token endpoint's response.
    """

    def __init__(self, text: str, retry_after: str = "") -> None:
        super().__init__(text)
        self.retry_after = retry_after


class _TokenResponse(msgspec.Struct, frozen=True):
    access_token: str | None = None
    token_type: str | None = None
    expires_in: float | None = None
    error: str | None = None


class _AccessToken(NamedTuple):
    value: str
    renew_at_ms: int


class AccessTokens:
    """Access tokens of one client, each fetched when it is needed, within `timeout_ms`."""

    def __init__(
        self,
        client: OAuthClient,
        *,
        timeout_ms: int,
        egress: Egress,
        clock: Clock,
        resolver: Resolve = resolve,
    ) -> None:
        self._connections = Connections(httpx.URL(client.token_url), egress, resolver)
        self._timeout_ms = timeout_ms
        self._clock = clock
        self._token: _AccessToken | None = None
        self._fetches = SingleFlight[None, str]()
        headers, body = _request_parts(client)
        self._request = (
            [
                (b"host", self._connections.host),
                (b"accept", b"application/json"),
                (b"content-type", _FORM),
                (b"content-length", b"%d" % len(body)),
                *headers.items(),
            ],
            body,
        )

    async def get(self) -> str:
        """Return a token that is valid for a while. Raises TokenUnavailable."""
        token = self._token
        if token is not None and self._clock.now_ms() < token.renew_at_ms:
            return token.value
        return await self._fetches.run(None, self._fetch)

    def discard(self, value: str) -> None:
        """Fetch another token next time, unless that was done since this one was returned."""
        if self._token is not None and self._token.value == value:
            self._token = None

    async def close(self) -> None:
        """End a fetch in progress, and close the connections."""
        await self._fetches.close()
        await self._connections.close()

    async def _fetch(self) -> str:
        headers, body = self._request
        request = httpcore.Request("POST", self._connections.target, headers=headers, content=body)
        began_ms = self._clock.now_ms()
        try:
            response = await self._connections.exchange(
                request,
                timeout_ms=self._timeout_ms,
                bytes_max=limits.WEBHOOK_TOKEN_RESPONSE_BYTES_MAX,
            )
        except REQUEST_FAILURES as failed:
            raise TokenUnavailable(failure_text(failed)) from failed
        self._token = _token_of(response, began_ms)
        return self._token.value


def _request_parts(client: OAuthClient) -> tuple[Mapping[bytes, bytes], bytes]:
    """Return the headers that authenticate a client, and the form of its request."""
    headers: dict[bytes, bytes] = {}
    form = {"grant_type": "client_credentials", **client.parameters}
    secret = client.client_secret or ""
    if client.scope:
        form["scope"] = client.scope
    if client.client_auth is ClientAuth.BODY:
        form |= {"client_id": client.client_id, "client_secret": secret}
    else:  # both are form-encoded first (RFC 6749, section 2.3.1)
        pair = f"{quote_plus(client.client_id)}:{quote_plus(secret)}"
        headers[b"authorization"] = b"Basic " + base64.b64encode(pair.encode())
    return headers, urlencode(form).encode()


def _token_of(response: HttpResponse, began_ms: int) -> _AccessToken:
    """Parse a response of the token endpoint. Raises TokenUnavailable."""
    try:
        parsed = msgspec.json.decode(response.body, type=_TokenResponse, strict=False)
    except msgspec.MsgspecError:
        parsed = _TokenResponse()
    if not 200 <= response.status < 300:
        code = parsed.error if parsed.error and _ERROR_CODE.fullmatch(parsed.error) else ""
        text = f"{response.status}: {code}" if code else str(response.status)
        raise TokenUnavailable(text, response.retry_after)
    value, kind = parsed.access_token or "", parsed.token_type or "bearer"
    if len(value) > limits.WEBHOOK_TOKEN_BYTES_MAX or not _TOKEN.fullmatch(value):
        raise TokenUnavailable(f"{response.status}: no valid access_token in the response")
    if kind.lower() != "bearer":
        raise TokenUnavailable(f"{response.status}: the token_type must be Bearer")
    return _AccessToken(value, began_ms + _age_ms(parsed.expires_in))


def _age_ms(expires_in: float | None) -> int:
    """Return for how long a token is kept in memory."""
    age_ms = limits.WEBHOOK_TOKEN_AGE_MS_DEFAULT
    if expires_in is not None:
        age_ms = round(max(0, min(expires_in * limits.SECOND_MS, limits.WEBHOOK_TOKEN_AGE_MS_MAX)))
    return age_ms - min(limits.WEBHOOK_TOKEN_MARGIN_MS, age_ms // _MARGIN_SHARE)
