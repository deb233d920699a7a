"""Neighbours of a message: the previous and the next one of its list."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol


class Positioned(Protocol):
    """A message or dead letter with its offset in the queue."""

    @property
    def offset(self) -> int: ...


FirstAfter = Callable[[int], Awaitable[Positioned | None]]
"""Read of the first message after an offset."""

_STEP_GROWTH = 8


class Neighbours(NamedTuple):
    """The messages beside one; None at an end."""

    previous: Positioned | None
    next: Positioned | None


def neighbours_in(messages: Sequence[Positioned], offset: int) -> Neighbours:
    """Return the neighbours of an offset on a page of a list."""
    before = [message for message in messages if message.offset < offset]
    after = [message for message in messages if message.offset > offset]
    return Neighbours(before[-1] if before else None, after[0] if after else None)


async def neighbours_of(first_after: FirstAfter, offset: int) -> Neighbours:
    """Return the neighbours of an offset in a whole queue."""
    return Neighbours(await _last_before(first_after, offset), await first_after(offset))


async def _last_before(first_after: FirstAfter, offset: int) -> Positioned | None:
    """Return the last message before an offset.

    A queue is read forwards only. In steps that grow, this finds a start from which a message lies before the offset; the last
    such start, by bisection, is right before the message.
    """
    step, start, too_late = 1, offset, offset - 1
    while start > -1:
        start = max(-1, offset - 1 - step)
        message = await first_after(start)
        if message is not None and message.offset < offset:
            return await _last_between(first_after, message, too_late, offset)
        too_late, step = start, step * _STEP_GROWTH
    return None


async def _last_between(
    first_after: FirstAfter, message: Positioned, too_late: int, offset: int
) -> Positioned:
    """Return the last message before `offset`, which is not before `message`."""
    while message.offset < too_late:
        middle = (message.offset + too_late) // 2
        later = await first_after(middle)
        if later is not None and later.offset < offset:
            message = later
        else:
            too_late = middle
    return message
