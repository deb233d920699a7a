"""A socket's inbox: what comes in is taken in order, once, by a reader that may wait or be cancelled."""

import asyncio

import pytest

from api.websocket.inbox import Inbox


async def reading(inbox: Inbox[int]) -> asyncio.Task[int]:
    """A reader that waits already."""
    task = asyncio.create_task(inbox.get())
    await asyncio.sleep(0)
    return task


async def test_what_comes_is_taken_in_order():
    inbox = Inbox[int]()
    for number in range(3):
        inbox.put_nowait(number)

    assert not inbox.empty()
    assert [await inbox.get() for _ in range(3)] == [0, 1, 2]
    assert inbox.empty()


async def test_a_reader_waits_for_what_comes():
    inbox = Inbox[int]()
    reader = await reading(inbox)
    inbox.put_nowait(1)
    inbox.put_nowait(2)

    assert await reader == 1
    assert await inbox.get() == 2


@pytest.mark.parametrize("is_there", [False, True])
async def test_a_reader_that_is_cancelled_takes_nothing_along(is_there):
    """Also when what it waits for has just come."""
    inbox = Inbox[int]()
    reader = await reading(inbox)
    if is_there:
        inbox.put_nowait(1)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    if not is_there:
        inbox.put_nowait(1)

    assert await inbox.get() == 1
    assert inbox.empty()
