"""Window of a replay: the offsets of each shard to replay, as of now."""

import asyncio
from collections.abc import Sequence

import attrs

from storage.catalog.catalog import Catalog
from storage.domain.errors import (
    BookmarkNotFound,
    QueueNotFound,
    ShardNotFound,
    StreamNotFound,
    StreamRecreated,
    ValidationFailed,
)
from storage.domain.names import GroupName, LogId, QueueName, StreamName
from storage.domain.replays.replay import Bound, OffsetRange, ReplayRequest
from storage.domain.streams.stream import ShardState, Stream
from storage.groups.engine import Groups
from storage.streams.read import RecordReader
from storage.streams.seek import offset_since


@attrs.define(eq=False, slots=False)
class WindowResolver:
    """Resolver of a window's bounds to offsets."""

    _reader: RecordReader
    _groups: Groups
    _catalog: Catalog

    async def source(self, namespace: str, request: ReplayRequest) -> Stream:
        """Return the stream that is replayed, or a queue's view.

        Raises StreamNotFound.
        """
        return await self._catalog.fresh_stream(StreamName(request.stream, namespace))

    async def target_id(self, namespace: str, request: ReplayRequest) -> LogId:
        """Return the target's id, which is the same as long as the target is.

        Raises StreamNotFound, QueueNotFound, and ValidationFailed where it is a view, or the source's own queue.
        """
        target = request.target
        if target.queue is not None:
            queue = await self._catalog.fresh_queue(QueueName(target.queue, namespace))
            return queue.log_id
        assert target.stream is not None
        stream = await self._catalog.fresh_stream(StreamName(target.stream, namespace))
        if stream.is_view:
            detail = f"'{target.stream}' is a queue's stream view; replay to the queue instead"
            raise ValidationFailed.at("/target/stream", detail, "read_only")
        if stream.spec.topic is not None:
            detail = f"'{target.stream}' is a topic, which is written by publishing"
            raise ValidationFailed.at("/target/stream", detail, "read_only")
        return stream.stream_id

    async def reaches(self, source: Stream, request: ReplayRequest) -> list[OffsetRange]:
        """Return the range of offsets of each shard, by shard, without empty ones.

        Raises ShardNotFound, GroupNotFound, BookmarkNotFound, and ValidationFailed for a bookmark in another stream.
        """
        states = _chosen(await self._reader.shards(source.name, source.stream_id), request.shards)
        starts = {state.shard.index: state.start for state in states}
        tips = {state.shard.index: state.next for state in states}
        if request.start is not None and request.start.offsets is not None:
            _check_starts(request.start.offsets, states)
        firsts = await self._edges(source, request.start, states, starts, "/from")
        ends = await self._edges(source, request.end, states, tips, "/to")
        ranges = [
            OffsetRange(index, firsts[index], min(ends[index], tip)) for index, tip in tips.items()
        ]
        return [reach for reach in ranges if reach.first < reach.end]

    async def _edges(
        self,
        source: Stream,
        bound: Bound | None,
        states: Sequence[ShardState],
        unbounded: dict[int, int],
        pointer: str,
    ) -> dict[int, int]:
        """Return the offset of a bound in each shard."""
        if bound is None:
            return unbounded
        if bound.offsets is not None:
            _check_shards(unbounded, [shard for shard, _ in bound.offsets])
            return unbounded | dict(bound.offsets)
        if bound.time_ms is not None:
            time_ms = bound.time_ms
            offsets = await asyncio.gather(
                *(self._at_time(source, state, time_ms) for state in states)
            )
            return dict(zip(unbounded, offsets, strict=True))
        assert bound.bookmark is not None
        marked = await self._bookmark(source, *bound.bookmark, pointer)
        return {state.shard.index: marked.get(state.shard.index, state.start) for state in states}

    async def _at_time(self, source: Stream, state: ShardState, time_ms: int) -> int:
        """Return the offset of the first record that arrived then or later, or the next one."""
        return await offset_since(
            self._reader, source.name, state.shard.index, time_ms, source.stream_id
        )

    async def _bookmark(
        self, source: Stream, group: str, name: str, pointer: str
    ) -> dict[int, int]:
        named = GroupName(group, source.name.namespace)
        if (await self._groups.get(named)).stream_id != source.stream_id:
            detail = f"Group '{group}' reads another stream"
            raise ValidationFailed.at(f"{pointer}/bookmark", detail, "mismatch")
        for bookmark in await self._groups.positions.bookmarks(named):
            if bookmark.name == name:
                return dict(bookmark.positions)
        raise BookmarkNotFound(f"Bookmark '{name}' does not exist.")

    async def check_target(self, namespace: str, request: ReplayRequest, target_id: LogId) -> None:
        """Raise StreamNotFound or QueueNotFound unless the target still has this id.

        As far as this process's cache knows.
        """
        target = request.target
        if target.queue is not None:
            if (await self._catalog.queue(QueueName(target.queue, namespace))).log_id != target_id:
                raise QueueNotFound("The target was deleted and recreated.")
        elif target.stream is not None:
            name = StreamName(target.stream, namespace)
            if (await self._catalog.stream(name)).stream_id != target_id:
                raise StreamRecreated("The target was deleted and recreated.")

    async def is_recreated(self, namespace: str, request: ReplayRequest, *ids: LogId) -> bool:
        """Return whether the source or the target exists with another id than the first or second."""
        try:
            await self.check_same(namespace, request, *ids)
        except StreamRecreated:
            return True
        except (StreamNotFound, QueueNotFound):
            return False
        return False

    async def check_same(self, namespace: str, request: ReplayRequest, *ids: LogId) -> Stream:
        """Return the source if it and the target still have these ids.

        Raises StreamNotFound, StreamRecreated.
        """
        source = await self.source(namespace, request)
        if (source.stream_id, await self.target_id(namespace, request)) != ids:
            raise StreamRecreated("The source or the target was deleted and recreated.")
        return source


def _chosen(states: Sequence[ShardState], shards: Sequence[int] | None) -> list[ShardState]:
    if shards is None:
        return list(states)
    _check_shards({state.shard.index: 0 for state in states}, shards)
    return [state for state in states if state.shard.index in shards]


def _check_starts(offsets: Sequence[tuple[int, int]], states: Sequence[ShardState]) -> None:
    """Raise ValidationFailed for a start beyond the end of its shard."""
    tips = {state.shard.index: state.next for state in states}
    for shard, offset in offsets:
        if offset > tips.get(shard, offset):
            detail = f"The next offset of shard {shard} is {tips[shard]}"
            raise ValidationFailed.at(f"/from/offsets/{shard}", detail, "out_of_range")


def _check_shards(offsets: dict[int, int], shards: Sequence[int]) -> None:
    for shard in shards:
        if shard not in offsets:
            raise ShardNotFound(f"The stream has no shard {shard}.")
