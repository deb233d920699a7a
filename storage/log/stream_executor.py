"""Execution of verbs on a stream, retried with the current definition when stale."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from storage.catalog.catalog import Catalog
from storage.domain.errors import StreamNotFound, StreamReadOnly
from storage.domain.names import StreamName
from storage.domain.streams.lineage import needs_refresh
from storage.domain.streams.stream import Stream
from storage.log.provisioner import LogDeleted, LogProvisioner
from storage.redis.keys import LogAddress
from storage.redis.transport.script_status import LogNotReady

T = TypeVar("T")


class StreamExecutor:
    """Executor of verbs on a stream and its logs."""

    def __init__(self, catalog: Catalog, provisioner: LogProvisioner) -> None:
        self._catalog = catalog
        self._provisioner = provisioner

    async def stream(self, name: StreamName) -> Stream:
        """Return the stream, from the cache if possible.

        Raises StreamNotFound.
        """
        return await self._catalog.stream(name)

    async def writable(self, name: StreamName) -> Stream:
        """Return a stream that accepts records.

        Raises StreamNotFound, StreamReadOnly.
        """
        stream = await self._catalog.stream(name)
        if stream.is_view:
            raise StreamReadOnly
        return stream

    async def current(self, name: StreamName) -> Stream:
        """Return the stream as it is now, bypassing the cache.

        Raises StreamNotFound.
        """
        return await self._catalog.fresh_stream(name)

    async def refresh_for_shard(self, stream: Stream, shard: int) -> Stream:
        """Return the stream, read again if the shard is younger than the definition."""
        return await self.current(stream.name) if needs_refresh(stream, {shard: 0}) else stream

    async def run(self, stream: Stream, verb: Callable[[Stream], Awaitable[T]]) -> T:
        """Run a verb on the stream; retry it once if the given definition was stale.

        The retry uses the current definition. Raises StreamNotFound, and what the verb raises.
        """
        try:
            return await verb(stream)
        except (LogNotReady, LogDeleted):
            current = await self._catalog.fresh_stream(stream.name)
        if current == stream:
            raise StreamNotFound(f"Stream '{stream.name.name}' does not exist.")
        try:
            return await verb(current)
        except (LogNotReady, LogDeleted):
            raise StreamNotFound(f"Stream '{stream.name.name}' does not exist.") from None

    async def with_repair(self, log: LogAddress, work: Callable[[], Awaitable[T]]) -> T:
        """Do work on a log, repairing the log when its script requires that."""
        return await self._provisioner.with_repair(log, work)
