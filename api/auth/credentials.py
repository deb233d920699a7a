"""Authenticator of a service that requires credentials.

    Authorization: Bearer msk_…   an API key        (or X-API-Key)
    Authorization: Bearer e….e….  a JWT of an issuer that the settings name
    Authorization: AWS4-…         a signature by an AWS-style key pair, at the AWS endpoints
    Cookie: ms_session=…          a session of the dashboard
    ?ticket=mst_…, hello.token    a ticket, once, where a browser cannot send headers: at sockets

A token that was verified once is not verified again while its credential is unchanged: tokens are cached by their digest,
never as plain text.
"""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

import msgspec

from api.auth.authenticator import NAMESPACE, Signed, namespace_of
from api.auth.cookies import session_token
from api.types import RequestHeaders
from storage.access.credential_cache import CachedCredential
from storage.bootstrap import Storage
from storage.concurrency.bounded_cache import BoundedCache
from storage.concurrency.definition_cache import CachedValue
from storage.domain import limits
from storage.domain.access.credentials import Credential, CredentialKind
from storage.domain.access.permissions import Principal
from storage.domain.clock import Clock, SystemClock
from storage.domain.errors import Forbidden, Unauthenticated
from storage.domain.names import DEFAULT_NAMESPACE

_BEARER = b"bearer "
_TICKET = "mst_"
_IMPOSSIBLE_SECRET = b"0" * 40  # a secret that no key has
_CLOCK = SystemClock()
_REFUSED = "Invalid or expired API key."


class Issuers(Protocol):
    """The trusted issuers of tokens."""

    async def principal_of(self, token: str) -> Principal:
        """Return the principal of a token. Raises Unauthenticated."""
        ...


class _CheckedCredential(NamedTuple):
    """A verified credential, the cache entry that shows its changes, and its principal."""

    credential: Credential
    entry: CachedValue[CachedCredential]
    principal: Principal


_TokenKey = tuple[bytes, bytes | None]
"""A token's digest, and the namespace requested with it."""
_CacheKey = _TokenKey | str
"""A token's digest with its namespace, or the id of a key pair."""


class KeyAuthenticator:
    """Authenticator by credentials. `storage`: returns the open storage."""

    guards = True

    def __init__(
        self,
        storage: Callable[[], Storage],
        issuers: Issuers,
        clock: Clock = _CLOCK,
    ) -> None:
        self._storage = storage
        self._issuers = issuers
        self._clock = clock
        self._checked: BoundedCache[_CacheKey, _CheckedCredential] = BoundedCache(
            limits.VERIFIED_TOKENS_CACHED_MAX
        )

    async def authenticate(self, headers: RequestHeaders) -> Principal:
        token = _token_of(headers)
        if token is not None:
            cache_key = _cache_key(token, headers)
            checked = self._cached(cache_key, self._clock.now_ms())
            return checked.principal if checked else await self._verify(token, cache_key)
        if b"cookie" in headers:
            return await self._of_cookie(headers)
        raise Unauthenticated

    async def authenticate_token(self, token: str, headers: RequestHeaders) -> Principal:
        if token.startswith(_TICKET):
            credential = await self._storage().credentials.redeem_ticket(token)
            return self._principal(credential, headers.get(NAMESPACE))
        return await self._verify(token.encode(), _cache_key(token.encode(), headers))

    async def authenticate_signed(self, signed: Signed) -> Principal:
        """Authenticate a signature, or a key or token in its place.

        An unknown key id takes as long as a known one.
        """
        headers = signed.headers
        if _is_bearer(headers.get(b"authorization", b"")) or b"x-api-key" in headers:
            return await self.authenticate(headers)
        key_id, now_ms = signed.key_id(), self._clock.now_ms()
        checked = self._cached(key_id, now_ms)
        credential = (
            checked.credential if checked else await self._storage().credentials.find(key_id)
        )
        if credential is None or credential.kind is not CredentialKind.PAIR:
            with suppress(Exception):
                signed.check(_IMPOSSIBLE_SECRET, now_ms)
            raise signed.unknown()
        signed.check(credential.secret, now_ms)
        if checked is None:
            self._storage().credentials.used(key_id)
            self._remember(key_id, credential, credential.holder)
        return credential.holder

    def is_anonymous(self, headers: RequestHeaders) -> bool:
        return not any(name in headers for name in (b"authorization", b"x-api-key", b"cookie"))

    async def is_still_valid(self, principal: Principal) -> bool:
        """Return whether the credential is still valid with the same grants.

        Raises StorageUnavailable.
        """
        if principal.expires_ms and principal.expires_ms <= self._clock.now_ms():
            return False
        if not principal.credential:
            return True
        credentials = self._storage().credentials
        credential = credentials.cached(principal.credential) or await credentials.find(
            principal.credential
        )
        return credential is not None and credential.grants == principal.policy.grants

    # Cache of verified credentials

    def _cached(self, cache_key: _CacheKey, now_ms: int) -> _CheckedCredential | None:
        """Return the cached check, if the credential is unchanged as far as this process knows."""
        checked = self._checked.get(cache_key)
        if checked is None or checked.entry.value_at(now_ms) is None:
            return None
        return None if 0 < checked.credential.expires_ms <= now_ms else checked

    def _remember(self, cache_key: _CacheKey, credential: Credential, principal: Principal) -> None:
        entry = self._storage().credentials.entry(credential.id)
        if entry is not None and entry.value.credential is credential:
            self._checked[cache_key] = _CheckedCredential(credential, entry, principal)

    # Tokens

    async def _verify(self, token: bytes, cache_key: _TokenKey) -> Principal:
        """Verify a token and return its principal. Raises Unauthenticated, Forbidden."""
        namespace = cache_key[1]
        if len(token) > limits.CREDENTIAL_TOKEN_CHARACTERS_MAX:
            raise Unauthenticated("The credential is too long.")
        text = token.decode("latin-1").strip()
        if text.count(".") == 2:
            return _in_namespace(await self._issuers.principal_of(text), namespace)
        credential = await self._storage().credentials.authenticate(text)
        if credential is None:
            raise Unauthenticated(_REFUSED)
        principal = self._principal(credential, namespace)
        self._remember(cache_key, credential, principal)
        return principal

    def _has_ended(self, credential: Credential) -> bool:
        return bool(credential.expires_ms) and credential.expires_ms <= self._clock.now_ms()

    def _principal(self, credential: Credential | None, namespace: bytes | None) -> Principal:
        if credential is None or self._has_ended(credential):
            raise Unauthenticated(_REFUSED)
        self._storage().credentials.used(credential.id)
        where = DEFAULT_NAMESPACE if credential.all_namespaces else credential.namespace
        return _in_namespace(credential.principal(where), namespace)

    # Sessions

    async def _of_cookie(self, headers: RequestHeaders) -> Principal:
        """Authenticate a session, unless another site's page made the request.

        Raises Unauthenticated, Forbidden.
        """
        token = session_token(headers)
        if token is None:
            raise Unauthenticated
        _check_own_page(headers)
        return self._principal(
            await self._storage().credentials.find_session(token), headers.get(NAMESPACE)
        )


def _token_of(headers: RequestHeaders) -> bytes | None:
    """Return the key or token of a request, if any.

    Raises Unauthenticated for any other credential.
    """
    authorization = headers.get(b"authorization")
    if authorization is None:
        return headers.get(b"x-api-key")
    if not _is_bearer(authorization):
        raise Unauthenticated
    return authorization[len(_BEARER) :]


def _cache_key(token: bytes, headers: RequestHeaders) -> _TokenKey:
    return hashlib.sha256(token).digest(), headers.get(NAMESPACE)


def _is_bearer(authorization: bytes) -> bool:
    return authorization[: len(_BEARER)].lower() == _BEARER


def _in_namespace(principal: Principal, requested: bytes | None) -> Principal:
    """Return the principal in the requested namespace. Raises Forbidden."""
    if requested is None:
        return principal
    namespace = namespace_of(requested)
    if namespace == principal.namespace:
        return principal
    if not principal.all_namespaces:
        raise Forbidden(f"'{principal.name}' does not belong to namespace '{namespace}'.")
    return msgspec.structs.replace(principal, namespace=namespace)


def _check_own_page(headers: RequestHeaders) -> None:
    """Raise Forbidden when another site made a browser send its cookie.

    Following a link from there is allowed.
    """
    site, mode = headers.get(b"sec-fetch-site"), headers.get(b"sec-fetch-mode")
    if site not in (None, b"same-origin", b"none") and mode != b"navigate":
        raise Forbidden("Sessions are accepted from the dashboard's own pages only.")
    origin = headers.get(b"origin")
    if origin is not None:
        host = urlsplit(origin.decode("latin-1")).netloc.encode("latin-1")
        if host != headers.get(b"host"):
            raise Forbidden("Sessions are accepted from the dashboard's own pages only.")
