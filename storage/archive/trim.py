"""Forgetting what a shard need not keep hot: by its stream's retention, and once it is archived."""

from collections.abc import Mapping
from functools import partial

from storage.domain.archive import Bounds, hot_bounds, unarchived_bytes_max
from storage.domain.clock import Clock
from storage.domain.streams.stream import Shard, Stream
from storage.log.stream_executor import StreamExecutor
from storage.postgres.repositories.archive_manifest import ArchiveRows
from storage.redis.keys import LogAddress
from storage.redis.streams.logs import HotLogs


class HotTrimmer:
    """Trims the hot store. `archive`: None where the deployment has none."""

    def __init__(
        self, hot: HotLogs, on_stream: StreamExecutor, archive: ArchiveRows | None, clock: Clock
    ) -> None:
        self._hot = hot
        self._on_stream = on_stream
        self._archive = archive
        self._clock = clock

    async def trim(self, stream: Stream, entries_max: int) -> int:
        """One round over all shards; gives the entries freed, at most so many of each.

        Of an archived stream nothing goes before it is archived, and each shard is told how much it may hold
        that is not.
        """
        archived = await self._archived(stream)
        bounds = hot_bounds(stream.spec, archived=archived is not None)
        return sum(
            [await self._trim(stream, one, bounds, archived, entries_max) for one in stream.shards]
        )

    async def _archived(self, stream: Stream) -> Mapping[int, int] | None:
        """Up to where each shard is archived, of those that are; None for a stream that is not to be."""
        if self._archive is None or not stream.spec.archive:
            return None
        marks = await self._archive.marks([stream.stream_id])
        return {shard: mark.archived for (_, shard), mark in marks.items()}

    async def _trim(
        self,
        stream: Stream,
        shard: Shard,
        bounds: Bounds,
        archived: Mapping[int, int] | None,
        entries_max: int,
    ) -> int:
        at = LogAddress(stream.name.namespace, shard.log_id, stream.is_view)
        trim = partial(
            self._hot.trim,
            at,
            bounds.ms,
            bounds.bytes,
            bounds.records,
            entries_max,
            self._clock.script_time(),
        )
        if archived is not None:
            budget = unarchived_bytes_max(stream.spec.hot_bytes_max)
            trim = partial(trim, archived=archived.get(shard.index, 0), unarchived_bytes_max=budget)
        return await self._on_stream.do(stream, lambda _: self._on_stream.mended(at, trim))
