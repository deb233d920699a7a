"""A socket's inbox: ordered and exactly once, for a reader that may be cancelled."""

import asyncio

import pytest

from api.websocket.inbox import Inbox


async def reading(inbox: Inbox[int]) -> asyncio.Task[int]:
    """A reader that is already waiting."""
    task = asyncio.create_task(inbox.get())
    await asyncio.sleep(0)
    return task


async def test_items_are_taken_in_order():
    inbox = Inbox[int]()
    for number in range(3):
        inbox.put_nowait(number)

    assert not inbox.empty()
    assert [await inbox.get() for _ in range(3)] == [0, 1, 2]
    assert inbox.empty()


async def test_reader_waits_for_next_item():
    inbox = Inbox[int]()
    reader = await reading(inbox)
    inbox.put_nowait(1)
    inbox.put_nowait(2)

    assert await reader == 1
    assert await inbox.get() == 2


@pytest.mark.parametrize("is_there", [False, True])
async def test_cancelled_reader_loses_no_item(is_there):
    """Also when the awaited item has just arrived."""
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
