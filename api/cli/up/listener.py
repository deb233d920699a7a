"""Listening socket: opened by the supervisor, served by every API process."""

import errno
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from api.cli.errors import CliError, ExitCode
from api.config.settings import Settings

BACKLOG = 2_048  # connections that may wait for an accept
OPEN_FILES_MAX = (
    65_536  # of this process and its children; programs that visit all descriptors stay fast
)


def check_host(settings: Settings) -> None:
    """Raise CliError if others could reach us without credentials and --insecure is not set."""
    asks_nobody = not settings.wants_credentials and not settings.insecure
    if settings.listens_beyond_loopback and asks_nobody:
        raise CliError(
            f"{settings.host} is reachable from other machines, and auth=open requires no authentication: listen on 127.0.0.1, set auth to auto, or add --insecure if a proxy authenticates clients",
            ExitCode.USAGE,
        )


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """Open a listening TCP socket; port 0 selects a free one. Raises CliError on failure."""
    family, address = _resolve(host, port)
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections inherit this. uvicorn mistakes an inherited descriptor for a unix socket and does not
        # set it, and every response, which it writes in two pieces, would be delayed by 40 ms.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            listener.bind(address)
            listener.listen(BACKLOG)
        except OSError as error:
            raise CliError(_refusal(host, port, error), ExitCode.UNAVAILABLE) from None
        yield listener


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, tuple[str, int]]:
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        raise CliError(f"{host} is not an address of this machine: {error.strerror}") from None
    family, *_, address = addresses[0]
    return family, (str(address[0]), int(address[1]))


def _refusal(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} on {host} is in use: choose another with --port"
    return f"cannot listen on {host}, port {port}: {error.strerror}"


def url_of(listener: socket.socket, scheme: str = "http") -> str:
    """Return the URL for clients on this machine."""
    host, port = listener.getsockname()[:2]
    local = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  compared, not bound
    return f"{scheme}://[{local}]:{port}" if ":" in local else f"{scheme}://{local}:{port}"


def open_files_max() -> int:
    """Return the number of files that this process may open once it has raised its limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = OPEN_FILES_MAX if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES_MAX)
    return OPEN_FILES_MAX if soft == resource.RLIM_INFINITY else max(soft, most)


def raise_open_files_limit() -> None:
    """Raise the soft limit of open files: each connection is one, and logins start with 1,024.

    Children inherit it. Where the system refuses, the limit stays, and `doctor` reports it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft not in (open_files_max(), resource.RLIM_INFINITY):
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (open_files_max(), hard))
