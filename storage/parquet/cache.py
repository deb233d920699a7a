"""Cache of archive files for a process: footers, and decoded row groups.

    request ──▶ cached? ──▶ being loaded? ──▶ a thread fetches, checks and decodes it ──▶ cached
                return it   wait for that load

Few are loaded at a time, so that reads of the archive do not starve reads of the hot store.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from cachetools import LRUCache

from storage.concurrency.single_flight import SingleFlight
from storage.domain import limits
from storage.domain.archive import ArchivedFile
from storage.domain.errors import ArchiveDamaged, StorageBusy
from storage.domain.limits import Limits
from storage.parquet.object_store import Root

if (
    TYPE_CHECKING
):  # pyarrow is loaded with the first file: it takes time and memory, and most processes read none
    from storage.parquet.footer import Footer
    from storage.parquet.row_group_slice import RowGroup

logger = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

GroupKey = tuple[str, int]
"""A file's id, and the number of one of its row groups, from 0."""


class ArchiveCache:
    """Cached reads of archive files.

    Its methods raise ArchiveDamaged, StorageBusy, StorageUnavailable.
    """

    def __init__(self, root: Root, deployment_limits: Limits) -> None:
        self._root = root
        self._threads = ThreadPoolExecutor(limits.ARCHIVE_READERS, "archive")
        self._in_threads = 0
        self._footers: _Loaded[str, Footer] = _Loaded(
            limits.ARCHIVE_FOOTERS_BYTES, lambda footer: footer.bytes_held
        )
        self._groups: _Loaded[GroupKey, RowGroup] = _Loaded(
            deployment_limits.archive_cache_bytes, _group_bytes
        )

    async def close(self) -> None:
        """Wait for the loads in progress; a thread cannot be stopped."""
        await self._footers.close()
        await self._groups.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def footer(self, file: ArchivedFile) -> "Footer":
        """Return a file's footer."""
        load = partial(_read_footer, self._root, file)
        return await self._footers.get(file.file_id, partial(self._in_thread, load))

    async def group(self, file: ArchivedFile, footer: "Footer", number: int) -> "RowGroup":
        """Return a row group of a file."""
        load = partial(_read_group, self._root, footer, number)
        return await self._groups.get((file.file_id, number), partial(self._in_thread, load))

    def read_ahead(self, file: ArchivedFile, number: int) -> None:
        """Start loading a row group that will be needed, unless another load is in progress."""
        if not self._groups.in_progress:
            self._groups.begin((file.file_id, number), partial(self._ahead, file, number))

    async def _ahead(self, file: ArchivedFile, number: int) -> "RowGroup":
        footer = await self.footer(file)
        return await self._in_thread(partial(_read_group, self._root, footer, number))

    async def _in_thread(self, load: Callable[[], V]) -> V:
        if self._in_threads >= limits.ARCHIVE_LOADS_MAX:
            raise StorageBusy("Too many concurrent archive reads; nothing happened.")
        self._in_threads += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, load)
        except ArchiveDamaged as error:
            facts = {**error.facts, "reason": error.detail}
            logger.error("archive_file_corrupt", extra=facts)
            raise
        finally:
            self._in_threads -= 1


def _group_bytes(group: "RowGroup") -> int:
    return limits.ARCHIVE_GROUP_BYTES + group.bytes


def _read_group(root: Root, footer: "Footer", number: int) -> "RowGroup":
    from storage.parquet.file_reader import read_group
    from storage.parquet.row_group_slice import RowGroup

    return RowGroup(read_group(root, footer, number))


def _read_footer(root: Root, file: ArchivedFile) -> "Footer":
    """Read the footer, and check it against the manifest."""
    from storage.parquet.footer import read_footer

    footer = read_footer(root, file.path, file.file_bytes, file.digest)
    facts = footer.facts
    stored = (facts.first_offset, facts.next_offset, facts.records, facts.last_arrival_ms)
    if stored != (file.first_offset, file.next_offset, file.records, file.last_arrival_ms):
        raise ArchiveDamaged("A file does not match the manifest.", path=file.path)
    return footer


class _Loaded(Generic[K, V]):
    """LRU cache with single-flight loads, bounded by the total size of its values.

    A value of more than that is cached alone.
    """

    def __init__(self, size_max: int, size_of: Callable[[V], int]) -> None:
        self._values: LRUCache[K, V] = LRUCache(
            size_max, getsizeof=lambda value: min(size_of(value), size_max)
        )
        self._loads = SingleFlight[K, V]()

    @property
    def in_progress(self) -> int:
        """Number of loads in progress."""
        return len(self._loads)

    async def get(self, key: K, load: Callable[[], Awaitable[V]]) -> V:
        """Return the value; a caller that is cancelled does not end the load for the others."""
        value = self._values.get(key)
        return await self._loads.run(key, lambda: self._load(key, load)) if value is None else value

    def begin(self, key: K, load: Callable[[], Awaitable[V]]) -> None:
        """Load the value, unless it is cached or a load is in progress."""
        if key not in self._values:
            self._loads.begin(key, lambda: self._load(key, load))

    async def _load(self, key: K, load: Callable[[], Awaitable[V]]) -> V:
        value = self._values[key] = await load()
        return value

    async def close(self) -> None:
        """Wait for the loads in progress."""
        await self._loads.finish()
