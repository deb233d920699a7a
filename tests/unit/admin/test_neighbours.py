"""Neighbours of a message in its queue."""

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from api.admin.browsing.neighbours import neighbours_in, neighbours_of

READS_MAX = 120


class At(NamedTuple):
    """A message at an offset."""

    offset: int


offsets = st.lists(st.integers(0, 10**9) | st.integers(0, 30), max_size=30, unique=True).map(sorted)


@given(offsets, st.integers(0, 10**9) | st.integers(0, 30))
async def test_neighbours_are_those_of_the_sorted_list(present, offset):
    messages = [At(one) for one in present]
    reads = 0

    async def first_after(start: int):
        nonlocal reads
        reads += 1
        return next((one for one in messages if one.offset > start), None)

    actual = await neighbours_of(first_after, offset)

    assert actual == neighbours_in(messages, offset)
    assert reads <= READS_MAX


async def test_previous_of_adjacent_messages_is_read_at_once():
    starts: list[int] = []

    async def first_after(start: int):
        starts.append(start)
        return At(start + 1)

    actual = await neighbours_of(first_after, 7)

    assert actual == (At(6), At(8))
    assert starts == [5, 7]
