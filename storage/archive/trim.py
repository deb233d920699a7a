"""Trimming of the hot store, by a stream's retention and by its archived offset."""

from collections.abc import Collection, Mapping
from functools import partial

import attrs

from storage.domain.archive import LogBounds, hot_bounds, unarchived_bytes_max
from storage.domain.clock import Clock
from storage.domain.log.address import LogAddress
from storage.domain.streams.stream import Shard, Stream
from storage.hot_store.log_store import LogStore
from storage.log.stream_executor import StreamExecutor
from storage.postgres.repositories.archive_manifest import ArchiveRows


@attrs.define(eq=False, slots=False)
class HotTrimmer:
    """Trimmer of the hot store.

    `archive`: None where the deployment has none.
    """

    _hot: LogStore
    _on_stream: StreamExecutor
    _archive: ArchiveRows | None
    _clock: Clock

    async def trim(
        self, stream: Stream, entries_max: int, only: Collection[int] | None = None
    ) -> int:
        """Run one round over all shards, or only some; return the number of entries freed.

        At most `entries_max` of each. In an archived stream nothing is trimmed before it is archived, and each shard's limit of unarchived bytes is set.
        """
        archived = await self._archived(stream)
        bounds = hot_bounds(stream.spec, archived=archived is not None)
        return sum(
            [
                await self._trim(stream, shard, bounds, archived, entries_max)
                for shard in stream.shards
                if only is None or shard.index in only
            ]
        )

    async def _archived(self, stream: Stream) -> Mapping[int, int] | None:
        """Return each shard's archived offset; None for a stream that is not to be archived.

        Shards that were never archived are left out.
        """
        if self._archive is None or not stream.spec.archive:
            return None
        marks = await self._archive.marks_of(stream.stream_id)
        return {shard: mark.archived for shard, mark in marks.items()}

    async def _trim(
        self,
        stream: Stream,
        shard: Shard,
        bounds: LogBounds,
        archived: Mapping[int, int] | None,
        entries_max: int,
    ) -> int:
        log = LogAddress(stream.name.namespace, shard.log_id, stream.is_view)
        if archived is not None:
            budget = unarchived_bytes_max(stream.spec.hot_bytes_max)
            bounds = bounds._replace(
                archived=archived.get(shard.index, 0), unarchived_bytes_max=budget
            )
        trim = partial(self._hot.trim, log, bounds, entries_max, self._clock.script_time())
        return await self._on_stream.run(stream, lambda _: self._on_stream.with_repair(log, trim))
