"""Repetition of calls that were made for a store which is not the present one any more."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from storage.domain.limits import REPAIR_ATTEMPTS_MAX
from storage.hot_store.errors import StoreChanged

T = TypeVar("T")


async def retry_store_changes(call: Callable[[], Awaitable[T]]) -> T:
    """Return the result of `call`, which is made again for each new store.

    Several changes of the primary can follow one another while a call is held back. Raises StoreChanged after
    REPAIR_ATTEMPTS_MAX of them.
    """
    for _ in range(REPAIR_ATTEMPTS_MAX - 1):
        try:
            return await call()
        except StoreChanged:
            continue
    return await call()
