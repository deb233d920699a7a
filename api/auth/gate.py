"""Who is calling: the one question every door asks before anything else."""

import ipaddress
from typing import Protocol
from urllib.parse import urlsplit

from api.payloads import RequestHeaders
from storage.domain.access import LOCAL_ADMINISTRATOR, Principal
from storage.domain.errors import Forbidden

_REMEMBERED_MAX = 256  # the same few Host values come again and again


class Gate(Protocol):
    """Turns a request's credentials into a principal. Raises Forbidden."""

    def admit(self, headers: RequestHeaders) -> Principal: ...


class OpenMode:
    """No credentials: everyone is the local administrator, so only local callers may be.

    A web page elsewhere must not reach the service through its visitor's browser, neither directly
    (its Origin gives it away) nor with a name that it made resolve to this machine (its Host does).
    """

    def __init__(self) -> None:
        self._local_hosts: set[bytes] = set()

    def admit(self, headers: RequestHeaders) -> Principal:
        host = headers.get(b"host")
        if host is not None and host not in self._local_hosts:
            self._check_host(host)
        origin = headers.get(b"origin")
        if origin is not None and not _is_loopback(origin.decode("latin-1")):
            raise Forbidden("In open mode no page of another site may call this service.")
        return LOCAL_ADMINISTRATOR

    def _check_host(self, host: bytes) -> None:
        if not _is_loopback(f"//{host.decode('latin-1')}"):
            raise Forbidden("In open mode the service answers only to a loopback Host.")
        if len(self._local_hosts) < _REMEMBERED_MAX:
            self._local_hosts.add(host)


class TrustingMode:
    """Open mode behind something that checks its callers (`insecure`): whoever gets through is admitted."""

    def admit(self, headers: RequestHeaders) -> Principal:
        return LOCAL_ADMINISTRATOR


def _is_loopback(url: str) -> bool:
    try:
        name = urlsplit(url).hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
