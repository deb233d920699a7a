"""Cache of archive files for a process: footers, and decoded row groups.

    request ──▶ cached? ──▶ being loaded? ──▶ a thread fetches, checks and decodes it ──▶ cached
                return it   wait for that load

Few are loaded at a time, so that reads of the archive do not starve reads of the hot store.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

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

K = TypeVar("K")
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
    """LRU cache with single-flight loads, bounded by the total size of its values."""

    def __init__(self, size_max: int, size_of: Callable[[V], int]) -> None:
        self._size_max = size_max
        self._size_of = size_of
        self._values: OrderedDict[K, V] = OrderedDict()
        self._size = 0
        self._loading: dict[K, asyncio.Task[V]] = {}

    @property
    def in_progress(self) -> int:
        """Number of loads in progress."""
        return len(self._loading)

    async def get(self, key: K, load: Callable[[], Awaitable[V]]) -> V:
        """Return the value; a caller that is cancelled does not end the load for the others."""
        if key in self._values:
            self._values.move_to_end(key)
            return self._values[key]
        return await asyncio.shield(self.begin(key, load))

    def begin(self, key: K, load: Callable[[], Awaitable[V]]) -> "asyncio.Task[V]":
        """Load the value, unless a load is in progress."""
        task = self._loading.get(key)
        if task is None:
            task = self._loading[key] = asyncio.create_task(self._load(key, load))
            task.add_done_callback(lambda done: self._end(key, done))
        return task

    async def _load(self, key: K, load: Callable[[], Awaitable[V]]) -> V:
        if key in self._values:
            return self._values[key]
        value = await load()
        self._keep(key, value)
        return value

    def _keep(self, key: K, value: V) -> None:
        self._values[key] = value
        self._size += self._size_of(value)
        while self._size > self._size_max and len(self._values) > 1:
            _, evicted = self._values.popitem(last=False)
            self._size -= self._size_of(evicted)

    def _end(self, key: K, done: "asyncio.Task[V]") -> None:
        del self._loading[key]
        if not done.cancelled():
            done.exception()  # retrieved here in case no caller waits for it

    async def close(self) -> None:
        """Wait for the loads in progress."""
        await asyncio.gather(*self._loading.values(), return_exceptions=True)
