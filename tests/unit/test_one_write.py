"""The transport that sends an answer's head and body together."""

import asyncio

from api.one_write import OneWriteTransport


class Socket:
    """What was written, one element for each system call."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.closed = False
        self.protocol: object = None

    def write(self, data: bytes) -> None:
        self.writes.append(data)

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def set_protocol(self, protocol: object) -> None:
        self.protocol = protocol

    def get_extra_info(self, name: str) -> str:
        return name


def wrapped() -> tuple[Socket, OneWriteTransport]:
    socket = Socket()
    return socket, OneWriteTransport(socket, asyncio.get_running_loop())  # type: ignore[arg-type]


async def test_what_one_step_writes_leaves_in_one_write():
    socket, transport = wrapped()

    transport.write(b"head ")
    transport.write(b"body")
    before = list(socket.writes)
    await asyncio.sleep(0)
    transport.write(b"next")
    await asyncio.sleep(0)

    assert before == []
    assert socket.writes == [b"head body", b"next"]


async def test_closing_loses_nothing_that_was_written():
    socket, transport = wrapped()

    transport.write(b"last words")
    transport.close()
    await asyncio.sleep(0)

    assert socket.writes == [b"last words"]
    assert socket.closed


async def test_an_upgrade_comes_after_what_was_written():
    socket, transport = wrapped()

    transport.write(b"101")
    transport.set_protocol("websocket")  # type: ignore[arg-type]

    assert socket.writes == [b"101"]
    assert socket.protocol == "websocket"


async def test_a_connection_that_closed_meanwhile_is_not_written_to():
    socket, transport = wrapped()

    transport.write(b"too late")
    socket.closed = True
    await asyncio.sleep(0)

    assert socket.writes == []


async def test_everything_else_is_the_transports_own():
    _, transport = wrapped()

    assert transport.get_extra_info("peername") == "peername"
