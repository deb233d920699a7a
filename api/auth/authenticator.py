"""Authentication, the first step of every protocol.

open mode      everyone is the local administrator, and only local callers are admitted
trusting mode  the same, behind a proxy that checks its callers
keys           `api.auth.credentials`: callers with a valid credential

docs/internals/security-model.md has all identities, and what is trusted.
"""

import ipaddress
from collections.abc import Sequence
from typing import Protocol
from urllib.parse import urlsplit

import msgspec

from api.types import RequestHeaders
from storage.domain.access.permissions import LOCAL_ADMINISTRATOR, Principal
from storage.domain.errors import Forbidden
from storage.domain.names import check_name

NAMESPACE = b"millstream-namespace"
"""Header with the namespace in which an administrator of all namespaces acts."""

_REMEMBERED_MAX = 256  # few distinct Host values occur


class Signed(Protocol):
    """A request signed with a secret, in a form that only its protocol can read.

    Each method raises the protocol's error.
    """

    @property
    def headers(self) -> RequestHeaders:
        """The request's headers."""
        ...

    def key_id(self) -> str:
        """Return the id of the key pair that the request names."""
        ...

    def check(self, secret: bytes, now_ms: int) -> None:
        """Refuse unless it was signed recently with `secret`."""
        ...

    def unknown(self) -> Exception:
        """Return the error for an unknown key."""
        ...


class Authenticator(Protocol):
    """Authenticator of callers. Each method raises Unauthenticated, Forbidden.

    `guards`: whether credentials decide on permissions.
    """

    guards: bool

    async def authenticate(self, headers: RequestHeaders) -> Principal:
        """Authenticate a request of a native protocol."""
        ...

    async def authenticate_signed(self, signed: Signed) -> Principal:
        """Authenticate a complete signed request. Raises its protocol's errors too."""
        ...

    async def authenticate_token(self, token: str, headers: RequestHeaders) -> Principal:
        """Authenticate a token that did not come in a header: a key, a JWT, or a one-time ticket.

        A ticket is redeemed by it.
        """
        ...

    def is_anonymous(self, headers: RequestHeaders) -> bool:
        """Return whether a caller that may still authenticate has shown no credential yet."""
        ...

    async def is_still_valid(self, principal: Principal) -> bool:
        """Return whether a principal's credential is still valid with the same permissions.

        Raises MillstreamError if that cannot be checked.
        """
        ...


class OpenMode:
    """Authenticator without credentials: everyone is the local administrator.

    So only local callers are admitted. A web page elsewhere must not reach the service through its visitor's browser, neither
    directly (its Origin reveals it) nor with a name that it made resolve to this machine (its Host does).
    """

    guards = False

    def __init__(self, origins: Sequence[str] = ()) -> None:
        self._origins = frozenset(origins)
        self._local_hosts: set[bytes] = set()

    async def authenticate(self, headers: RequestHeaders) -> Principal:
        host = headers.get(b"host")
        if host is not None and host not in self._local_hosts:
            self._check_host(host)
        origin = headers.get(b"origin")
        if origin is not None and not self._is_ours(origin.decode("latin-1")):
            raise Forbidden("Open mode rejects requests from pages of other sites.")
        return local_administrator(headers)

    async def authenticate_signed(self, signed: Signed) -> Principal:
        """Admit the caller; signatures are ignored."""
        return await self.authenticate(signed.headers)

    async def authenticate_token(self, token: str, headers: RequestHeaders) -> Principal:
        """Admit the caller; tokens are ignored."""
        return await self.authenticate(headers)

    def is_anonymous(self, headers: RequestHeaders) -> bool:
        """Return False: no credential is required."""
        return False

    async def is_still_valid(self, principal: Principal) -> bool:
        return True

    def _is_ours(self, origin: str) -> bool:
        """Return whether the origin is a page of this machine, or of a site in the settings."""
        return origin in self._origins or _is_loopback(origin)

    def _check_host(self, host: bytes) -> None:
        if not _is_loopback(f"//{host.decode('latin-1')}"):
            raise Forbidden("Open mode accepts requests for loopback hosts only.")
        if len(self._local_hosts) < _REMEMBERED_MAX:
            self._local_hosts.add(host)


class ProxyTrustMode:
    """Open mode behind a proxy that checks its callers (`insecure`): all are admitted."""

    guards = False

    async def authenticate(self, headers: RequestHeaders) -> Principal:
        return local_administrator(headers)

    async def authenticate_signed(self, signed: Signed) -> Principal:
        return local_administrator(signed.headers)

    async def authenticate_token(self, token: str, headers: RequestHeaders) -> Principal:
        return local_administrator(headers)

    def is_anonymous(self, headers: RequestHeaders) -> bool:
        """Return False: no credential is required."""
        return False

    async def is_still_valid(self, principal: Principal) -> bool:
        return True


def local_administrator(headers: RequestHeaders) -> Principal:
    """Return the administrator of open mode, in the requested namespace.

    Raises ValidationFailed.
    """
    requested = headers.get(NAMESPACE)
    if requested is None:
        return LOCAL_ADMINISTRATOR
    return msgspec.structs.replace(LOCAL_ADMINISTRATOR, namespace=namespace_of(requested))


def namespace_of(header: bytes) -> str:
    """Return the namespace that a header names. Raises ValidationFailed."""
    word = header.decode("latin-1")
    check_name(word)
    return word


def _is_loopback(url: str) -> bool:
    try:
        name = urlsplit(url).hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
