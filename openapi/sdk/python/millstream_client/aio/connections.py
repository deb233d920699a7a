"""WebSocket connection that is reopened when it is lost."""

import asyncio
import random
import ssl
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Generic, Protocol, Self, TypeVar

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.http11 import Response
from websockets.typing import Subprotocol

from millstream_client.aio.transport import AsyncTransport
from millstream_client.conversing import Refusal, Said
from millstream_client.errors import (
    ConnectionFailed,
    Lost,
    MillstreamError,
    is_foreign,
    not_millstream,
    refused,
)
from millstream_client.frames import PROTOCOL, Bye, encode_frame
from millstream_client.retries import Retries

PATH = "/v1/ws"
NORMAL = 1000
FOR_GOOD = 4500  # closed with this or more: coming back makes no sense
CANCEL_AGAIN_S = 1.0
OPEN_S = 5.0  # for the handshake
RECONNECTING = Retries(first_pause_s=0.1, longest_pause_s=10.0)


class Session(Protocol):
    """Client's side of the protocol, without I/O."""

    is_on: bool
    bye: Bye | None

    def connected(self) -> list[Said]:
        """Return the first frame for a new connection."""

    def hear(self, payload: bytes) -> list[Said]:
        """Process a message of the service; return the immediate reply. Raises Refusal."""


S = TypeVar("S", bound=Session)


class AsyncConnection(Generic[S]):
    """One WebSocket after another, for a session. Use it once, `async with`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport
        self._options = transport.options
        self._service = transport.service
        self._session: S | None = None
        self._socket: ClientConnection | None = None
        self._news = asyncio.Condition()
        self._failure: BaseException | None = None
        self._task: asyncio.Task[None] | None = None
        self._was_on = False
        self._off_since = 0.0

    async def __aenter__(self) -> Self:
        if self._transport.options.transport is not None:
            raise NotImplementedError(self._no_socket)
        self._session = await self._begin()
        self._task = asyncio.create_task(self._run(self._session))
        try:
            await self._until(lambda: self._was_on)
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    # ── Differences between its kinds ──

    _no_socket = ""
    """Error message for a client without a network."""

    _closed = "The connection is closed"

    async def _begin(self) -> S:
        """Return a new session."""
        raise NotImplementedError

    @property
    def _reconnects_forever(self) -> bool:
        """Return whether a lost connection is reopened without a time limit."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """Close the connection."""
        task, self._task = self._task, None
        if task is None:
            return
        if self._socket is not None:
            with suppress(OSError, ConnectionClosed):
                await self._socket.close(NORMAL)
        while not task.done():  # one that arrives as a connection fails can be lost on the way
            task.cancel()
            await asyncio.wait([task], timeout=CANCEL_AGAIN_S)
        await asyncio.gather(task, return_exceptions=True)
        await self._fail(Lost(NORMAL, self._closed))

    @property
    def _open_session(self) -> S:
        if self._session is None:
            raise RuntimeError(f"Use the {type(self).__name__} `async with`.")
        return self._session

    async def _until(self, fact: Callable[[], bool]) -> None:
        """Wait until a condition holds. Raises the error that ends the connection before."""
        async with self._news:
            await self._news.wait_for(lambda: fact() or self._failure is not None)
        if self._failure is not None and not fact():
            raise self._failure

    async def _say(self, said: Iterable[Said]) -> None:
        """Send a frame if a connection is open; frames that matter are sent again on the next one."""
        socket = self._socket
        if socket is not None:
            with suppress(OSError, ConnectionClosed):
                for frame in said:
                    await socket.send(encode_frame(frame))

    # ── Connections ──

    async def _run(self, session: S) -> None:
        failures, self._off_since = 0, asyncio.get_running_loop().time()
        while True:
            try:
                after_s = await self._converse(session)
                failures = 0 if session.is_on else failures + 1
                pause_s = _backoff_s(failures, after_s)
            except Refusal as refusal:
                await self._fail(refusal.error)
                return
            except MillstreamError as error:
                failures += 1
                pause_s = _backoff_s(failures, is_unreached=self._service.is_unreached(error))
                if not error.retryable or self._gives_up(error, pause_s):
                    await self._fail(self._service.final(error))
                    return
                self._warn(error, failures)
            if session.is_on:
                self._off_since = asyncio.get_running_loop().time()
            session.is_on = False
            await asyncio.sleep(pause_s)

    def _gives_up(self, error: MillstreamError, pause_s: float) -> bool:
        """Return whether the next connection would come too late."""
        off_s = asyncio.get_running_loop().time() + pause_s - self._off_since
        return not self._reconnects_forever and off_s > self._limit_s(error)

    def _limit_s(self, error: MillstreamError) -> float:
        return self._options.retries.limit_s(self._service.is_unreached(error))

    def _warn(self, error: MillstreamError, failures: int) -> None:
        until = f"for up to {self._limit_s(error):g} s"
        if self._reconnects_forever:
            until = "until the subscription is closed"
        self._service.warn(error, failures, until)

    async def _converse(self, session: S) -> float:
        """Use one connection; return the seconds to wait before the next.

        Raises Refusal, MillstreamError.
        """
        async with self._connected() as socket:
            self._socket = socket
            try:
                await self._say(session.connected())
                async for payload in socket:
                    await self._say(session.hear(_bytes(payload)))
                    self._was_on |= session.is_on
                    await self._tell()
            except ConnectionClosed:
                pass
            finally:
                self._socket = None
        return _pause_of(session, socket.close_code)

    @asynccontextmanager
    async def _connected(self) -> AsyncGenerator[ClientConnection]:
        url = self._options.url.replace("http", "ws", 1) + PATH
        try:
            connecting = connect(
                url,
                subprotocols=[Subprotocol(PROTOCOL)],
                additional_headers=self._options.headers,
                user_agent_header=None,
                compression=None,
                max_size=None,
                ssl=self._options.trust() if self._options.is_https else None,
                open_timeout=OPEN_S,
            )
            socket = await connecting
        except InvalidStatus as denied:
            self._service.established()
            raise self._denial(denied.response) from denied
        except InvalidHandshake as error:
            self._service.established()
            raise ConnectionFailed(f"Cannot reach {self._options.url}: {error}") from error
        except (OSError, TimeoutError, ssl.SSLError) as error:
            raise ConnectionFailed(f"Cannot reach {self._options.url}: {error}") from error
        self._service.established()
        try:
            yield socket
        finally:
            with suppress(OSError, ConnectionClosed):
                await socket.close()

    def _denial(self, answer: Response) -> MillstreamError:
        """Return the error for a response in place of a WebSocket."""
        headers = {"content-type": answer.headers.get("content-type", "")}
        response = httpx.Response(
            answer.status_code, headers=headers, content=bytes(answer.body or b"")
        )
        if answer.status_code < 400 or is_foreign(response):
            return not_millstream(response, self._options.url)
        return refused(response)

    async def _tell(self) -> None:
        async with self._news:
            self._news.notify_all()

    async def _fail(self, failure: BaseException) -> None:
        self._failure = self._failure or failure
        await self._tell()


def _backoff_s(failures: int, at_least_s: float = 0.0, is_unreached: bool = False) -> float:
    chance = random.random()  # noqa: S311 - jitter
    return RECONNECTING.pause_s(failures, at_least_s, chance, is_unreached)


def _bytes(payload: str | bytes) -> bytes:
    return payload.encode() if isinstance(payload, str) else payload


def _pause_of(session: Session, closed_with: int | None) -> float:
    """Return the seconds to wait after a connection has ended.

    Raises Refusal if it has ended permanently.
    """
    code = session.bye.code if session.bye is not None else closed_with
    if code is not None and (code == NORMAL or code >= FOR_GOOD):
        raise Refusal(Lost(code, session.bye.reason if session.bye is not None else ""))
    return session.bye.after_seconds if session.bye is not None else 0.0
