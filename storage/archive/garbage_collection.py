"""What the archive forgets: what no retention covers, what was replaced, what was never committed."""

import asyncio
import logging
from itertools import islice

from storage.catalog.catalog import Catalog
from storage.domain import limits
from storage.domain.archive import retired
from storage.domain.clock import Clock
from storage.domain.streams.stream import Shard, Stream, view_of
from storage.parquet.object_store import Root
from storage.parquet.store_errors import StoredFile
from storage.postgres.repositories.archive_manifest import ArchiveRows, Mark
from storage.postgres.repositories.staged_writes import WriteRows
from storage.redis.keys import LogAddress
from storage.redis.streams.logs import HotLogs
from storage.redis.transport.script_status import LogNotReady

logger = logging.getLogger(__name__)


class ArchiveGarbageCollector:
    """Duties that one process at a time does for all. All raise StorageUnavailable."""

    def __init__(
        self,
        rows: ArchiveRows,
        writes: WriteRows,
        root: Root,
        hot: HotLogs,
        catalog: Catalog,
        clock: Clock,
    ) -> None:
        self._rows = rows
        self._writes = writes
        self._root = root
        self._hot = hot
        self._catalog = catalog
        self._clock = clock

    # Retention

    async def retire(self) -> int:
        """Visit every archived shard: the oldest files that nobody is promised any more are in use no longer.
        Gives their number.

        They are deleted a day later, for readers that have them open.
        """
        done = 0
        async for stream in self._catalog.every_stream():
            done += await self._retire(stream)
        async for queue in self._catalog.every_queue():
            if queue.spec.archive:
                done += await self._retire(view_of(queue))
        return done

    async def _retire(self, stream: Stream) -> int:
        marks = await self._rows.marks([stream.stream_id])
        shards = {shard.index: shard for shard in stream.shards}
        return sum(
            [
                await self._retire_shard(stream, shards[index], mark)
                for (_, index), mark in marks.items()
                if index in shards
            ]
        )

    async def _retire_shard(self, stream: Stream, shard: Shard, mark: Mark) -> int:
        """Looks at the first page of files: what lies behind it is for the next round."""
        at = LogAddress(stream.name.namespace, shard.log_id, stream.is_view)
        try:
            hot = await self._hot.backlog(at, mark.archived, self._clock.script_time())
        except LogNotReady:
            return 0
        files = await self._rows.every_file((stream.stream_id, shard.index))
        gone = retired(files, stream.spec, mark.start, hot.next, self._clock.now_ms(), hot.bytes)
        if gone:
            await self._rows.retire((stream.stream_id, shard.index), gone, self._clock.now_ms())
        return len(gone)

    # What lies there and nobody reads

    async def collect(self) -> int:
        """Delete files that were retired or replaced a day ago, and those of streams that are gone; gives their
        number.

        The file goes before its row, so that a crash between leaves no file that nobody knows of.
        """
        before_ms = self._clock.now_ms() - limits.READER_GRACE_MS
        found = await self._rows.to_delete(before_ms, limits.ARCHIVE_DELETIONS_PER_ROUND)
        for _, path in found:
            await asyncio.to_thread(self._root.delete, path)
        await self._rows.forget([file_id for file_id, _ in found])
        await self._rows.forget_gone()
        return len(found)

    async def collect_orphans(self) -> int:
        """Delete what attempts and writers left that never committed, a day later; gives the files' number.

        A listing, and so nothing for every minute.
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
        orphans -= await self._rows.known_paths(old)
        for path in sorted(orphans):
            logger.info("an orphan of the archive is deleted", extra={"path": path})
            await asyncio.to_thread(self._root.delete, path)
        return len(orphans)
