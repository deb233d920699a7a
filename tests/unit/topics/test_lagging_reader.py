"""End of a lagging reader that is cancelled meanwhile."""

import asyncio
from types import SimpleNamespace
from typing import Any

from consumers.routing.lagging_reader import LaggingReader


class SlowTail:
    """Tail that ends when `may_end` is set."""

    def __init__(self) -> None:
        self.positions = {0: 7}
        self.may_end = asyncio.Event()

    async def __aenter__(self) -> "SlowTail":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.may_end.wait()

    async def next(self, _: int) -> None:
        await asyncio.Event().wait()


class Buffer:
    """Buffer with an unsent copy."""

    def __init__(self) -> None:
        self.is_closed = False

    def oldest(self) -> dict[int, int]:
        return {0: 5}

    async def close(self) -> None:
        self.is_closed = True


async def test_buffer_ends_with_its_reader_that_is_cancelled_meanwhile():
    tail, buffer = SlowTail(), Buffer()
    owner: Any = SimpleNamespace(try_rejoin=lambda _: False)
    reader = LaggingReader(owner, "queue:a", {0: 3}, buffer, new_tail=lambda _: tail)  # type: ignore[arg-type,return-value]
    reader.start()
    await asyncio.sleep(0)

    closing = asyncio.create_task(reader.close())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait([closing])
    tail.may_end.set()

    assert buffer.is_closed
