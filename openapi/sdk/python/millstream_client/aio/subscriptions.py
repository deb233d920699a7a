"""Subscriptions over a WebSocket, which survive lost connections."""

import asyncio
import random
import ssl
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.http11 import Response
from websockets.typing import Subprotocol

from millstream_client.aio.messages import AsyncMessage
from millstream_client.aio.transport import AsyncTransport
from millstream_client.conversing import Conversation, Refusal, Said
from millstream_client.errors import (
    ConnectionFailed,
    ItemRefused,
    Lost,
    MillstreamError,
    is_foreign,
    not_millstream,
    refused,
)
from millstream_client.frames import PROTOCOL, encode_frame
from millstream_client.gaps import OnGap, warn_of
from millstream_client.messages import Delivery, Settled, Settlement
from millstream_client.records import Gap, Record
from millstream_client.retries import Retries
from millstream_client.starting import Plan, resolve

PATH = "/v1/ws"
NORMAL = 1000
FOR_GOOD = 4500  # closed with this or more: coming back makes no sense
CANCEL_AGAIN_S = 1.0
OPEN_S = 5.0  # for the handshake
RECONNECTING = Retries(first_pause_s=0.1, longest_pause_s=10.0)
NO_SOCKET = (
    "The in-memory service has no WebSocket; long polls work: "
    "messages(), read(follow=True), batches()."
)


class AsyncSubscription:
    """Deliveries as they arrive: AsyncMessages of a queue, Records of a stream.

    Use it once, `async with`. A lost connection is reopened without skipping anything: a session that the service still has is
    resumed; otherwise records continue after the last one, and messages are redelivered after their visibility timeout.
    `on_gap` is called for offsets that are permanently lost. The iteration ends when the subscription is closed. Raises
    MillstreamError if it cannot continue, and Lost if the server closed it permanently.
    """

    def __init__(self, transport: AsyncTransport, plan: Plan, on_gap: OnGap | None = None) -> None:
        self._transport = transport
        self._options = transport.options
        self._service = transport.service
        self._plan = plan
        self._on_gap = on_gap or warn_of
        self._talk: Conversation | None = None
        self._socket: ClientConnection | None = None
        self._news = asyncio.Condition()
        self._failure: BaseException | None = None
        self._task: asyncio.Task[None] | None = None
        self._was_on = False

    async def __aenter__(self) -> "AsyncSubscription":
        if self._transport.options.transport is not None:
            raise NotImplementedError(NO_SOCKET)
        self._talk = Conversation(await resolve(self._transport, self._plan))
        self._task = asyncio.create_task(self._run(self._talk))
        try:
            await self._until(lambda: self._was_on)
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the subscription; unsettled deliveries are released immediately."""
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
        await self._fail(Lost(NORMAL, "The subscription is closed"))

    # ── For its owner ──

    def __aiter__(self) -> "AsyncSubscription":
        return self

    async def __anext__(self) -> Any:
        talk = self._talking
        await self._say(talk.done())
        while True:
            if not talk.arrived:
                await self._until_something_comes(talk)
            item, said = talk.take()
            await self._say(said)
            if isinstance(item, Gap):
                self._on_gap(item)
            else:
                return AsyncMessage(item, self) if isinstance(item, Delivery) else item

    async def _until_something_comes(self, talk: Conversation) -> None:
        try:
            await self._until(lambda: bool(talk.arrived))
        except Lost:
            if self._task is None:  # closed by its owner, elsewhere
                raise StopAsyncIteration from None
            raise

    async def settle_one(self, settlement: Settlement) -> Settled:
        """Settle a message. Raises ItemRefused."""
        return Settled(reply_error=await self._answered(*self._talking.settle(settlement)))

    async def commit(self, record: Record) -> None:
        """Commit a record of a group, and everything before it in its shard.

        Raises Conflict if the shard was reassigned.
        """
        await self._answered(*self._talking.commit(record.shard, record.offset + 1))

    @property
    def _talking(self) -> Conversation:
        if self._talk is None:
            raise RuntimeError("Use the subscription `async with`.")
        return self._talk

    async def _answered(self, id_: str, said: Iterable[Said]) -> ItemRefused | None:
        """Send frames and wait for the answer; return why a reply was refused, if it was."""
        talk = self._talking
        await self._say(said)
        await self._until(lambda: id_ in talk.answers)
        return talk.result(id_)

    async def _until(self, fact: Callable[[], bool]) -> None:
        """Wait until a condition holds. Raises the error that ends the subscription before."""
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

    async def _run(self, talk: Conversation) -> None:
        failures, started = 0, asyncio.get_running_loop().time()
        while True:
            try:
                after_s = await self._converse(talk)
                failures = 0 if talk.is_on else failures + 1
                pause_s = _backoff_s(failures, after_s)
            except Refusal as refusal:
                await self._fail(refusal.error)
                return
            except MillstreamError as error:
                failures += 1
                pause_s = _backoff_s(failures, is_unreached=self._service.is_unreached(error))
                if not error.retryable or self._gives_up(error, started, pause_s):
                    await self._fail(self._service.final(error))
                    return
                self._warn(error, failures)
            talk.is_on = False
            await asyncio.sleep(pause_s)

    def _gives_up(self, error: MillstreamError, started: float, pause_s: float) -> bool:
        """Return whether a subscription that was never open is not tried again."""
        next_s = asyncio.get_running_loop().time() + pause_s - started
        return not self._was_on and next_s > self._limit_s(error)

    def _limit_s(self, error: MillstreamError) -> float:
        return self._options.retries.limit_s(self._service.is_unreached(error))

    def _warn(self, error: MillstreamError, failures: int) -> None:
        until = f"for up to {self._limit_s(error):g} s"
        if self._was_on:
            until = "until the subscription is closed"
        self._service.warn(error, failures, until)

    async def _converse(self, talk: Conversation) -> float:
        """Use one connection; return the seconds to wait before the next.

        Raises Refusal, MillstreamError.
        """
        async with self._connected() as socket:
            self._socket = socket
            try:
                await self._say(talk.connected())
                async for payload in socket:
                    await self._say(talk.hear(_bytes(payload)))
                    self._was_on |= talk.is_on
                    await self._tell()
            except ConnectionClosed:
                pass
            finally:
                self._socket = None
        return _pause_of(talk, socket.close_code)

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


def _pause_of(talk: Conversation, closed_with: int | None) -> float:
    """Return the seconds to wait after a connection has ended.

    Raises Refusal if it has ended permanently.
    """
    code = talk.bye.code if talk.bye is not None else closed_with
    if code is not None and (code == NORMAL or code >= FOR_GOOD):
        raise Refusal(Lost(code, talk.bye.reason if talk.bye is not None else ""))
    return talk.bye.after_seconds if talk.bye is not None else 0.0
