"""Many items in as few calls as the limits allow."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

ITEMS_MAX = 1_000  # of one call
BYTES_MAX = 4 * 2**20  # of bodies in one call, which may have 16 MiB with all that is around them

T = TypeVar("T")


def batches(
    items: Iterable[T], size_of: Callable[[T], int], bytes_max: int = BYTES_MAX
) -> Iterator[list[T]]:
    """Yield the items in order, in batches that fit into a call; a too large item is alone."""
    batch: list[T] = []
    size = 0
    for item in items:
        more = size_of(item)
        if batch and (len(batch) == ITEMS_MAX or size + more > bytes_max):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += more
    if batch:
        yield batch
