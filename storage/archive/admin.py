"""Archive administration: archiving progress of a stream, its files, archiving on demand."""

import asyncio
from collections.abc import Sequence

import attrs
import msgspec

from storage.catalog.catalog import Catalog
from storage.domain.archive import ArchivedFile, ArchiveState
from storage.domain.clock import Clock
from storage.domain.errors import ArchiveOff
from storage.domain.jobs import Job, JobKind
from storage.domain.log.address import LogAddress
from storage.domain.names import StreamName
from storage.domain.streams.stream import Shard, Stream
from storage.hot_store.errors import LogNotReady
from storage.hot_store.log_store import HotBacklog, LogStore
from storage.jobs import Jobs
from storage.postgres.repositories.archive_manifest import ArchiveRows


class ShardArchive(msgspec.Struct, frozen=True):
    """A shard in both tiers.

    `state` is None for a shard that was never archived, `hot` for one that was never written.
    """

    shard: Shard
    state: ArchiveState | None
    hot: HotBacklog | None


class StreamArchive(msgspec.Struct, frozen=True):
    """A stream in both tiers; `on`: it is being archived."""

    stream: Stream
    on: bool
    shards: Sequence[ShardArchive]


@attrs.define(eq=False, slots=False)
class ArchiveAdmin:
    """Administration of archived streams.

    Every verb raises StreamNotFound for a stream that does not exist. `on`: the deployment has an archive.
    """

    _rows: ArchiveRows
    _hot: LogStore
    _catalog: Catalog
    _jobs: Jobs
    _clock: Clock
    on: bool = attrs.field(kw_only=True)

    async def show(self, name: StreamName) -> StreamArchive:
        """Return how far each shard is archived, and its backlog."""
        stream = await self._catalog.stream(name)
        states = {state.shard: state for state in await self._rows.states(stream.stream_id)}
        shown = [self._shard(stream, shard, states.get(shard.index)) for shard in stream.shards]
        on = self.on and stream.spec.archive
        return StreamArchive(stream, on, await asyncio.gather(*shown))

    async def _shard(
        self, stream: Stream, shard: Shard, state: ArchiveState | None
    ) -> ShardArchive:
        log = LogAddress(stream.name.namespace, shard.log_id, stream.is_view)
        try:
            hot = await self._hot.backlog(
                log, 0 if state is None else state.archived, self._clock.script_time()
            )
        except LogNotReady:
            return ShardArchive(shard, state, None)
        return ShardArchive(shard, state, hot)

    async def files(
        self, stream: Stream, shard: int, *, after: int, limit: int
    ) -> list[ArchivedFile]:
        """Return the files of a shard that begin beyond an offset, by offset.

        Raises ShardNotFound.
        """
        return await self._rows.files(
            stream.stream_id, stream.shard(shard).index, after=after, limit=limit
        )

    async def flush(self, name: StreamName) -> Job:
        """Archive all of a stream now, whatever its age; return the job that does it.

        Raises ArchiveOff.
        """
        stream = await self._catalog.stream(name)
        if not self.on:
            raise ArchiveOff
        if not stream.spec.archive:
            raise ArchiveOff("Archiving is not enabled for this stream.")
        return await self._jobs.submit(
            name.namespace,
            JobKind.ARCHIVE,
            f"stream {stream.stream_id}",
            {"stream": name.name},
            take_open=True,
        )
