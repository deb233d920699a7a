"""Who is calling: the one question every door asks before anything else.

open mode      everyone is the local administrator, and only local callers are let in
trusting mode  the same, behind something that checks its callers
keys           `api.auth.credentials`: whoever shows a credential that holds
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
"""The header by which an administrator of all namespaces says where it acts."""

_REMEMBERED_MAX = 256  # the same few Host values come again and again


class Signed(Protocol):
    """A request that is signed with a secret, which only its door can read. Each method raises the door's refusal."""

    @property
    def headers(self) -> RequestHeaders:
        """The request's."""
        ...

    def key_id(self) -> str:
        """Whose secret it says it is signed with."""
        ...

    def check(self, secret: bytes, now_ms: int) -> None:
        """Refuse unless it is signed with `secret`, lately."""
        ...

    def unknown(self) -> Exception:
        """The refusal when there is no such key."""
        ...


class Gate(Protocol):
    """Turns what a caller shows into a principal. Each raises Unauthenticated, Forbidden.

    `guards`: whether credentials say who may do what.
    """

    guards: bool

    async def admit(self, headers: RequestHeaders) -> Principal:
        """Of a request at a native door."""
        ...

    async def admit_signed(self, signed: Signed) -> Principal:
        """Of a whole request at a door whose clients sign. Raises that door's refusals too."""
        ...

    async def admit_word(self, word: str, headers: RequestHeaders) -> Principal:
        """Of a word that came by another way than a header: a key, a token, or a ticket, which is spent by it."""
        ...

    def shows_nothing(self, headers: RequestHeaders) -> bool:
        """Whether a caller that may still say who it is has shown nothing yet."""
        ...

    async def holds(self, principal: Principal) -> bool:
        """Whether what a principal was let in by still gives the same rights. Raises MillstreamError if nobody can say."""
        ...


class OpenMode:
    """No credentials: everyone is the local administrator, so only local callers may be.

    A web page elsewhere must not reach the service through its visitor's browser, neither directly
    (its Origin gives it away) nor with a name that it made resolve to this machine (its Host does).
    """

    guards = False

    def __init__(self, origins: Sequence[str] = ()) -> None:
        self._origins = frozenset(origins)
        self._local_hosts: set[bytes] = set()

    async def admit(self, headers: RequestHeaders) -> Principal:
        """As Gate. Raises Forbidden."""
        host = headers.get(b"host")
        if host is not None and host not in self._local_hosts:
            self._check_host(host)
        origin = headers.get(b"origin")
        if origin is not None and not self._is_ours(origin.decode("latin-1")):
            raise Forbidden("In open mode no page of another site may call this service.")
        return local_administrator(headers)

    async def admit_signed(self, signed: Signed) -> Principal:
        """As Gate: signatures say nothing here."""
        return await self.admit(signed.headers)

    async def admit_word(self, word: str, headers: RequestHeaders) -> Principal:
        """As Gate: words say nothing here."""
        return await self.admit(headers)

    def shows_nothing(self, headers: RequestHeaders) -> bool:
        """As Gate: there is nothing to show."""
        return False

    async def holds(self, principal: Principal) -> bool:
        """As Gate."""
        return True

    def _is_ours(self, origin: str) -> bool:
        """Whether it is a page of this machine, or of a site that the owner names."""
        return origin in self._origins or _is_loopback(origin)

    def _check_host(self, host: bytes) -> None:
        if not _is_loopback(f"//{host.decode('latin-1')}"):
            raise Forbidden("In open mode the service answers only to a loopback Host.")
        if len(self._local_hosts) < _REMEMBERED_MAX:
            self._local_hosts.add(host)


class ProxyTrustMode:
    """Open mode behind something that checks its callers (`insecure`): whoever gets through is admitted."""

    guards = False

    async def admit(self, headers: RequestHeaders) -> Principal:
        """As Gate."""
        return local_administrator(headers)

    async def admit_signed(self, signed: Signed) -> Principal:
        """As Gate."""
        return local_administrator(signed.headers)

    async def admit_word(self, word: str, headers: RequestHeaders) -> Principal:
        """As Gate."""
        return local_administrator(headers)

    def shows_nothing(self, headers: RequestHeaders) -> bool:
        """As Gate: there is nothing to show."""
        return False

    async def holds(self, principal: Principal) -> bool:
        """As Gate."""
        return True


def local_administrator(headers: RequestHeaders) -> Principal:
    """The administrator of open mode, in the namespace that it asks for. Raises ValidationFailed."""
    asked = headers.get(NAMESPACE)
    if asked is None:
        return LOCAL_ADMINISTRATOR
    return msgspec.structs.replace(LOCAL_ADMINISTRATOR, namespace=namespace_of(asked))


def namespace_of(header: bytes) -> str:
    """The namespace that a header names. Raises ValidationFailed."""
    word = header.decode("latin-1")
    check_name(word)
    return word


def _is_loopback(url: str) -> bool:
    try:
        name = urlsplit(url).hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
