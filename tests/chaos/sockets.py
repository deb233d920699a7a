"""A reconnecting client of `/v1/ws`: a session, its frames, and pending requests.

Its listener subscribes and handles frames. An answer lost with its socket is unknown.
"""

import asyncio
import json
from contextlib import suppress
from itertools import count
from typing import Any, Protocol

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException
from websockets.typing import Subprotocol

from api.websocket.frames import JSON_PROTOCOL, is_worth_coming_back
from tests.chaos.callers import ANSWER_S

Frame = dict[str, Any]
PING_S = 4.0
COME_BACK_S = 0.2


class Listener(Protocol):
    """The owner of a session."""

    async def begins(self) -> None:
        """Handle a new session."""

    async def resumes(self) -> None:
        """Handle a resumed session; the last frames sent may have been lost."""

    async def hears(self, frame: Frame) -> None:
        """Handle a frame that is not an answer."""


class SocketLost(Exception):
    """The socket broke before the answer arrived."""


class Session:
    """A client's session, over one socket after another."""

    def __init__(self, url: str, listener: Listener) -> None:
        self._url = url.replace("http", "ws", 1) + "/v1/ws"
        self._listener = listener
        self._connection: ClientConnection | None = None
        self._session = ""
        self._seq = 0
        self._asked: dict[str, asyncio.Future[Frame]] = {}
        self._numbers = count(1)

    async def keep(self, over: asyncio.Event) -> None:
        """Keep reconnecting until it is over, then close cleanly."""
        ending = asyncio.create_task(over.wait())
        try:
            while not over.is_set():
                talking = asyncio.create_task(self._connect())
                await asyncio.wait([ending, talking], return_when=asyncio.FIRST_COMPLETED)
                if not talking.done() and self._connection is not None:
                    await self._connection.close()
                await talking
                with suppress(TimeoutError):
                    await asyncio.wait_for(over.wait(), COME_BACK_S)
        finally:
            ending.cancel()

    def break_socket(self) -> None:
        """Break the socket without a close frame; the session is resumed on the next one."""
        if self._connection is not None:
            self._connection.transport.abort()

    async def send_frame(self, type_: str, **fields: Any) -> None:
        """Send a frame, if connected."""
        if self._connection is not None:
            with suppress(WebSocketException, OSError):
                await self._connection.send(json.dumps({"type": type_, **fields}))

    async def request(self, type_: str, **fields: Any) -> Frame:
        """Send a frame, and return its `ok` or `error`.

        Raises SocketLost, or ConnectionRefusedError if it was not sent.
        """
        if self._connection is None:
            raise ConnectionRefusedError
        id_ = f"r{next(self._numbers)}"
        answer: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self._asked[id_] = answer
        try:
            await self.send_frame(type_, id=id_, **fields)
            return await asyncio.wait_for(answer, ANSWER_S)
        except TimeoutError as error:
            raise SocketLost from error
        finally:
            self._asked.pop(id_, None)

    async def _connect(self) -> None:
        with suppress(OSError, TimeoutError, WebSocketException):
            async with connect(
                self._url,
                subprotocols=[Subprotocol(JSON_PROTOCOL)],
                compression=None,
                open_timeout=ANSWER_S,
                close_timeout=1,
                ping_interval=PING_S,
                ping_timeout=PING_S,
                max_size=None,
            ) as connection:
                try:
                    await self._talk(connection)
                finally:
                    self._connection = None
                    self._give_up_waiting()
            code = connection.close_code
            assert code is None or is_worth_coming_back(code) or code == 1000, (
                connection.close_reason
            )

    async def _talk(self, connection: ClientConnection) -> None:
        hello: Frame = {"type": "hello", "client": "chaos"}
        if self._session:
            hello["resume"] = {"session": self._session, "seq": self._seq}
        await connection.send(json.dumps(hello))
        beginning: asyncio.Task[None] | None = None
        try:
            async for payload in connection:
                for frame in _frames(payload):
                    if frame["type"] == "welcome":
                        self._connection = connection
                        beginning = asyncio.create_task(self._welcomed(frame))
                    else:
                        await self._heard(frame)
        finally:
            if beginning is not None:
                beginning.cancel()
                await asyncio.gather(beginning, return_exceptions=True)

    async def _welcomed(self, frame: Frame) -> None:
        with suppress(SocketLost, ConnectionRefusedError):
            if frame["resumed"]:
                await self._listener.resumes()
            else:
                self._session, self._seq = frame["session"], 0
                await self._listener.begins()

    async def _heard(self, frame: Frame) -> None:
        self._seq = frame.get("seq", self._seq)
        if frame["type"] == "ping":
            await self.send_frame("pong", seq=self._seq)
        elif (waiting := self._asked.get(frame.get("id", ""))) is not None:
            if not waiting.done():
                waiting.set_result(frame)
        else:
            await self._listener.hears(frame)

    def _give_up_waiting(self) -> None:
        for waiting in self._asked.values():
            if not waiting.done():
                waiting.set_exception(SocketLost())


def _frames(payload: str | bytes) -> list[Frame]:
    body = json.loads(payload)
    return body if isinstance(body, list) else [body]
