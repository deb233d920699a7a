"""SSRF guard: checks each address of a receiver, and connects to that very address.

A name that resolves to something else a moment later changes nothing, since it is resolved once for each
connection. TLS and the Host header still use the name. Nothing is read from the environment except the location of
certificates: no proxy, no netrc. docs/internals/security-model.md has the rules of outbound requests.
"""

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, NamedTuple

import httpcore
import httpx

from storage.domain import limits
from storage.domain.access.egress import Address, Egress

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a host, in the order in which to try them. Raises OSError."""

_PORTS = {"http": 80, "https": 443}
_resolvers = ThreadPoolExecutor(
    32, thread_name_prefix="resolve"
)  # threads that wait for slow name servers


class AddressRefused(Exception):
    """The receiver's name resolves to an address that this deployment does not send to."""


async def resolve(host: str, port: int) -> Sequence[str]:
    """Resolve a host with the operating system's resolver."""
    loop = asyncio.get_running_loop()
    addresses = await loop.run_in_executor(
        _resolvers, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    )
    return [str(address[0]) for *_, address in addresses]


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """Network backend that connects only to allowed addresses."""

    def __init__(self, egress: Egress, resolver: Resolve = resolve) -> None:
        self._egress = egress
        self._resolve = resolver
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  the library's own signature
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first of the host's addresses that accepts.

        Raises AddressRefused if any is not allowed.
        """
        failure: Exception = httpcore.ConnectError(f"'{host}' has no IP address")
        for address in await self._checked(host, port):
            try:
                return await self._inner.connect_tcp(str(address), port, timeout)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    async def _checked(self, host: str, port: int) -> list[Address]:
        try:
            resolved = await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"'{host}' cannot be resolved") from error
        addresses = [ipaddress.ip_address(word) for word in dict.fromkeys(resolved)]
        if not all(self._egress.allows(host, address, port) for address in addresses):
            raise AddressRefused(
                f"'{host}' resolves to an address that this deployment does not send requests to"
            )
        return addresses

    async def connect_unix_socket(self, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        """Reject: receivers have no Unix sockets."""
        raise AddressRefused("Requests cannot be sent to a local socket.")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@asynccontextmanager
async def _sent(
    connection: httpcore.AsyncHTTPConnection, request: httpcore.Request
) -> AsyncGenerator[httpcore.Response]:
    response = await connection.handle_async_request(request)
    try:
        yield response
    finally:
        await response.aclose()


def _header(response: httpcore.Response, name: bytes) -> str:
    values = [value for key, value in response.headers if key.lower() == name]
    return values[0].decode("latin-1") if values else ""


def failure_text(failed: BaseException) -> str:
    """Return the text of one of REQUEST_FAILURES as it is stored and shown."""
    if isinstance(failed, TimeoutError):
        return "timed out"
    if isinstance(failed, AddressRefused):
        return str(failed)
    if (error := tls_error(failed)) is not None:
        return str(error)
    kind = _FAILURE_TEXTS.get(type(failed), type(failed).__name__)
    return f"{kind}: {failed}" if str(failed) else kind


def tls_error(failed: BaseException | None) -> ssl.SSLError | None:
    """Return the error of TLS that caused a failure, or None."""
    while failed is not None:
        if isinstance(failed, ssl.SSLError):
            return failed
        failed = failed.__cause__ or failed.__context__
    return None


_FAILURE_TEXTS: dict[type[BaseException], str] = {
    httpcore.ConnectError: "no connection",
    httpcore.RemoteProtocolError: "invalid HTTP response",
    httpcore.ReadError: "connection lost",
    httpcore.WriteError: "connection lost",
}


@cache
def _trusted_authorities() -> ssl.SSLContext:
    """Return the context of this machine's certificate authorities, which take 30 ms to read."""
    return httpx.create_ssl_context()


class HttpResponse(NamedTuple):
    """Status, Retry-After and the beginning of the body of a response."""

    status: int
    retry_after: str
    body: bytes

    @property
    def text(self) -> str:
        """Return the body as text that every store accepts."""
        return self.body.decode(errors="replace").replace("\0", "\ufffd")


REQUEST_FAILURES = (
    AddressRefused,
    httpcore.NetworkError,
    httpcore.TimeoutException,
    httpcore.ProtocolError,
    OSError,
)
"""Errors of an exchange. TimeoutError is an OSError."""


class Connections:
    """Connection pool for one receiver: connections in use, and idle ones for reuse.

    httpcore's pool, and so httpx's client, looks at all its connections for each request: 64 at a time it makes 290
    requests a second where these make 2000.
    """

    def __init__(self, url: httpx.URL, egress: Egress, resolver: Resolve = resolve) -> None:
        self.host = url.netloc
        self.target = httpcore.URL(
            scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
        )
        port = url.port or _PORTS[url.scheme]
        self._origin = httpcore.Origin(url.raw_scheme, url.raw_host, port)
        self._backend = GuardedBackend(egress, resolver)
        self._tls = _trusted_authorities() if url.scheme == "https" else None
        self._idle: list[httpcore.AsyncHTTPConnection] = []

    @asynccontextmanager
    async def one(self) -> AsyncGenerator[httpcore.AsyncHTTPConnection]:
        """Yield a connection for exclusive use."""
        connection = await self._pop_idle() or self._new()
        try:
            yield connection
        finally:
            if connection.is_idle() and not connection.is_closed():
                self._idle.append(connection)
            else:
                await connection.aclose()

    async def exchange(
        self, request: httpcore.Request, *, timeout_ms: int, bytes_max: int
    ) -> HttpResponse:
        """Send a request and return the response, whose body is read up to `bytes_max`.

        Once its status is known, errors in its body change nothing. Raises REQUEST_FAILURES.
        """
        response = HttpResponse(0, "", b"")
        try:
            async with (
                asyncio.timeout(timeout_ms / limits.SECOND_MS),
                self.one() as connection,
                _sent(connection, request) as answer,
            ):
                response = HttpResponse(answer.status, _header(answer, b"retry-after"), b"")
                async for piece in answer.aiter_stream():
                    response = response._replace(body=response.body + piece)
                    if len(response.body) >= bytes_max:
                        break
        except REQUEST_FAILURES:
            if not response.status:
                raise
        return response._replace(body=response.body[:bytes_max])

    async def _pop_idle(self) -> httpcore.AsyncHTTPConnection | None:
        """Return the last used connection unless its receiver closed it; close expired ones."""
        while self._idle:
            connection = self._idle.pop()
            if not connection.has_expired():
                return connection
            await connection.aclose()
        return None

    def _new(self) -> httpcore.AsyncHTTPConnection:
        return httpcore.AsyncHTTPConnection(
            origin=self._origin,
            ssl_context=self._tls,
            keepalive_expiry=limits.WEBHOOK_KEEPALIVE_MS / limits.SECOND_MS,
            network_backend=self._backend,
        )

    async def close(self) -> None:
        """Close the idle connections."""
        while self._idle:
            await self._idle.pop().aclose()
