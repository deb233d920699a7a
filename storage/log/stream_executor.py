"""Execution of verbs on a stream, retried with the current definition when stale."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import attrs

from storage.catalog.catalog import Catalog
from storage.domain.errors import StreamNotFound, StreamReadOnly
from storage.domain.log.address import LogAddress
from storage.domain.names import LogId, StreamName
from storage.domain.streams.lineage import needs_refresh
from storage.domain.streams.stream import Stream
from storage.hot_store.errors import LogNotReady
from storage.log.provisioner import LogDeleted, LogProvisioner

T = TypeVar("T")


@attrs.define(eq=False, slots=False)
class StreamExecutor:
    """Executor of verbs on a stream and its logs."""

    _catalog: Catalog
    _provisioner: LogProvisioner

    async def stream(self, name: StreamName, stream_id: LogId | None = None) -> Stream:
        """Return the stream, from the cache if possible; with `stream_id`, only that one.

        Raises StreamNotFound, StreamRecreated.
        """
        return await self._catalog.stream(name, stream_id)

    async def writable(
        self, name: StreamName, stream_id: LogId | None = None, *, publishes: bool = False
    ) -> Stream:
        """Return a stream that accepts records, with `publishes` also that of a topic.

        With `stream_id`, only the stream of that id. Raises StreamNotFound, StreamReadOnly, StreamRecreated.
        """
        stream = await self.stream(name, stream_id)
        if stream.is_view or (stream.spec.topic is not None and not publishes):
            raise StreamReadOnly
        return stream

    async def current(self, name: StreamName, stream_id: LogId | None = None) -> Stream:
        """Return the stream as it is now, bypassing the cache; with `stream_id`, only that one.

        Raises StreamNotFound, StreamRecreated.
        """
        return await self._catalog.fresh_stream(name, stream_id)

    async def refresh_for_shard(
        self, stream: Stream, shard: int, stream_id: LogId | None = None
    ) -> Stream:
        """Return the stream, read again if the shard is younger than the definition."""
        if not needs_refresh(stream, {shard: 0}):
            return stream
        return await self.current(stream.name, stream_id)

    async def run(
        self,
        stream: Stream,
        verb: Callable[[Stream], Awaitable[T]],
        stream_id: LogId | None = None,
    ) -> T:
        """Run a verb on the stream; retry it once if the given definition was stale.

        The retry uses the current definition; with `stream_id`, only if it is of that stream. Raises StreamNotFound,
        StreamRecreated, and what the verb raises.
        """
        try:
            return await verb(stream)
        except (LogNotReady, LogDeleted):
            current = await self._catalog.fresh_stream(stream.name, stream_id)
        if current == stream:
            raise StreamNotFound(f"Stream '{stream.name.name}' does not exist.")
        try:
            return await verb(current)
        except (LogNotReady, LogDeleted):
            raise StreamNotFound(f"Stream '{stream.name.name}' does not exist.") from None

    async def with_repair(self, log: LogAddress, work: Callable[[], Awaitable[T]]) -> T:
        """Do work on a log, repairing the log when its script requires that."""
        return await self._provisioner.with_repair(log, work)
