"""Repetition of calls that the store refused because it is another one than they were made for."""

import pytest

from storage.domain.limits import REPAIR_ATTEMPTS_MAX
from storage.hot_store.errors import StoreChanged
from storage.hot_store.retry import retry_store_changes


class Call:
    """A call that a number of stores refuse."""

    def __init__(self, changes: int) -> None:
        self.changes, self.made = changes, 0

    async def __call__(self) -> int:
        self.made += 1
        if self.made <= self.changes:
            raise StoreChanged
        return self.made


@pytest.mark.parametrize("changes", [0, 1, 2, REPAIR_ATTEMPTS_MAX - 1])
async def test_call_is_made_for_each_new_store(changes):
    """A read or a commit of a group was repeated once, and failed at the second of two switch-overs."""
    assert await retry_store_changes(Call(changes)) == changes + 1


async def test_store_that_always_changes_is_given_up():
    call = Call(REPAIR_ATTEMPTS_MAX)

    with pytest.raises(StoreChanged):
        await retry_store_changes(call)

    assert call.made == REPAIR_ATTEMPTS_MAX
