"""Definitions that the tests of the catalog share."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager

from storage.catalog.catalog import Catalog
from storage.domain.errors import StorageUnavailable
from storage.domain.names import LogId, QueueName, StreamName

ORDERS = QueueName("orders")
CLICKS = StreamName("clicks")
OpenCatalog = Callable[[], AbstractAsyncContextManager[Catalog]]


class Tombstones:
    """Records tombstones of deleted logs, unless it is out of order."""

    def __init__(self) -> None:
        self.buried: list[tuple[str, LogId]] = []
        self.out_of_order = False

    async def tombstone(self, namespace: str, log_ids: Sequence[LogId]) -> None:
        if self.out_of_order:
            raise StorageUnavailable
        self.buried += [(namespace, log_id) for log_id in log_ids]
