"""Garbage collection of archive files: expired, replaced, or never committed.

docs/internals/tiering.md lists what is deleted when.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from itertools import islice

import attrs

from storage.catalog.catalog import Catalog
from storage.concurrency.isolation import Isolation
from storage.domain import limits
from storage.domain.archive import retired
from storage.domain.clock import Clock
from storage.domain.log.address import LogAddress
from storage.domain.queues.stream_view import view_of
from storage.domain.streams.stream import Shard, Stream
from storage.hot_store.errors import LogNotReady
from storage.hot_store.log_store import LogStore
from storage.parquet.object_store import Root
from storage.parquet.store_errors import StoredFile
from storage.postgres.repositories.archive_manifest import ArchiveRows, Mark
from storage.postgres.repositories.staged_writes import WriteRows

logger = logging.getLogger(__name__)


@attrs.define(eq=False, slots=False, kw_only=True)
class ArchiveGarbageCollector:
    """Maintenance tasks that one process at a time runs for all.

    All raise StorageUnavailable.
    """

    _rows: ArchiveRows
    _writes: WriteRows
    _root: Root
    _hot: LogStore
    _catalog: Catalog
    _clock: Clock
    _isolation: Isolation

    # Retention

    async def retire(self) -> int:
        """Retire the oldest files of every archived shard once retention no longer covers them.

        Returns their number. They are deleted a day later, for readers that have them open.
        """
        streams = [*(await self._catalog.all_streams()).values()]
        queues = (await self._catalog.all_queues()).values()
        streams += [view_of(queue) for queue in queues if queue.spec.archive]
        done = 0
        for begin in range(0, len(streams), limits.PAGE_ITEMS_MAX):
            page = streams[begin : begin + limits.PAGE_ITEMS_MAX]
            shards = await self._rows.shards_with_files([stream.stream_id for stream in page])
            for stream in page:
                if stream.stream_id in shards:
                    noun = "queues" if stream.is_view else "streams"
                    visit = partial(self._retire, stream, shards[stream.stream_id])
                    done += await self._visit(f"{noun}/{stream.name}", visit)
        return done

    async def _visit(self, subject: str, work: Callable[[], Awaitable[int]]) -> int:
        return await self._isolation.visit("archived", subject, work, 0)

    async def _retire(self, stream: Stream, with_files: Collection[int]) -> int:
        marks = await self._rows.marks_of(stream.stream_id)
        return sum(
            [
                await self._retire_shard(stream, shard, marks[shard.index])
                for shard in stream.shards
                if shard.index in with_files and shard.index in marks
            ]
        )

    async def _retire_shard(self, stream: Stream, shard: Shard, mark: Mark) -> int:
        """Retire files of a shard's first page; later pages are left to the next round."""
        log = LogAddress(stream.name.namespace, shard.log_id, stream.is_view)
        try:
            hot = await self._hot.backlog(log, mark.archived, self._clock.script_time())
        except LogNotReady:
            return 0
        files = await self._rows.every_file((stream.stream_id, shard.index))
        gone = retired(
            files,
            spec=stream.spec,
            start=mark.start,
            next_offset=hot.next,
            now_ms=self._clock.now_ms(),
            waiting_bytes=hot.bytes,
        )
        if gone:
            await self._rows.retire((stream.stream_id, shard.index), gone, self._clock.now_ms())
        return len(gone)

    # Files that no reader uses

    async def collect(self) -> int:
        """Delete files retired or replaced a day ago, and those of deleted streams.

        Returns their number. The file is deleted before its row, so that a crash in between leaves no file that no row names.
        """
        before_ms = self._clock.now_ms() - limits.READER_GRACE_MS
        files = await self._rows.to_delete(before_ms, limits.ARCHIVE_DELETIONS_PER_ROUND)
        deleted = [
            file_id
            for file_id, path in files
            if await self._visit(f"archive/{path}", partial(self._delete, path))
        ]
        await self._rows.delete_files(deleted)
        await self._rows.delete_orphaned_shards()
        return len(deleted)

    async def _delete(self, path: str) -> int:
        await asyncio.to_thread(self._root.delete, path)
        return 1

    async def collect_orphans(self) -> int:
        """Delete day-old files of attempts and writers that never committed; return their number.

        Lists the store, and so must not run every minute.
        """
        done = 0
        files = self._root.files("")
        while page := await asyncio.to_thread(list, islice(files, limits.PAGE_ITEMS_MAX)):
            done += await self._collect_orphans(page)
        return done

    async def _collect_orphans(self, page: list[StoredFile]) -> int:
        before_ms = self._clock.now_ms() - limits.ORPHAN_AGE_MS
        old = [file.path for file in page if file.changed_at_ms < before_ms]
        in_use = await self._writes.staged_in_use()
        orphans = {path for path in old if path.rsplit("/", 1)[-1] not in in_use}
        orphans -= await self._rows.existing_paths(old)
        done = 0
        for path in sorted(orphans):
            if await self._visit(f"archive/{path}", partial(self._delete, path)):
                logger.info("archive_orphan_deleted", extra={"path": path})
                done += 1
        return done
