"""The catalog: names and configuration of queues and streams.

Reads come from a cache that announcements keep current (`storage.concurrency.definition_cache`); every change is one
transaction in Postgres, and is visible to this process when the call returns.
"""

import asyncio
import logging
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

from msgspec.structs import replace
from sqlalchemy.ext.asyncio import AsyncSession

from storage.catalog.cached_definitions import CachedDefinitions
from storage.catalog.definition_references import DefinitionReferences
from storage.catalog.definition_replica import DefinitionReplica
from storage.catalog.definition_rules import (
    STREAM_RULES,
    queue_not_found,
    queue_rules,
    stream_not_found,
)
from storage.catalog.definition_store import DefinitionStore
from storage.catalog.namespaces import Namespaces
from storage.catalog.namespaces import running as up_to_date
from storage.concurrency.tasks import in_background
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.definitions import Put, could_be_name, page_limit
from storage.domain.errors import (
    InvalidCursor,
    OutcomeUnknown,
    QueueNotFound,
    StorageBusy,
    StorageFull,
    StorageUnavailable,
    StreamNotFound,
    StreamReadOnly,
    StreamRecreated,
)
from storage.domain.names import LogId, QueueName, StreamName, TopicName, new_log_id
from storage.domain.queues.partitions import NewLogs, random_logs
from storage.domain.queues.queue import Queue, QueueSpec
from storage.domain.queues.stream_view import view_of
from storage.domain.streams.reshard_plan import Change, children_of
from storage.domain.streams.stream import Shard, Stream
from storage.postgres.database import Database
from storage.postgres.listener import Listener, running
from storage.postgres.repositories import shard_lineage
from storage.postgres.repositories.definitions import (
    DeletedDefinitions,
    LockedLogs,
    QueueRows,
    StreamRows,
)
from storage.postgres.repositories.namespaces import NamespaceRows
from storage.postgres.repositories.route_endpoints import delete_endpoints

logger = logging.getLogger(__name__)

WriteTombstones = Callable[[str, Sequence[LogId]], Awaitable[None]]
"""Writes tombstones of a namespace's logs in the hot store."""


class Catalog:
    """The definitions of every namespace, and the one place that changes them.

    Versions count from 1. `if_match` is the version that the caller has seen: when another one is current, or
    none exists, PreconditionFailed is raised. Every method raises StorageUnavailable or StorageBusy when
    Postgres does not serve; one that changes something raises OutcomeUnknown when it may have.
    """

    def __init__(
        self,
        database: Database,
        listener: Listener,
        clock: Clock,
        bury: WriteTombstones,
        new_logs: NewLogs,
    ) -> None:
        self._clock = clock
        self._write_tombstones = bury
        self._queue_rows, self._stream_rows = QueueRows(database), StreamRows(database)
        self._queue_reader: CachedDefinitions[QueueName, Queue] = CachedDefinitions(
            self._queue_rows, QueueName, queue_not_found, listener, clock
        )
        self._stream_reader: CachedDefinitions[StreamName, Stream] = CachedDefinitions(
            self._stream_rows, StreamName, stream_not_found, listener, clock
        )
        references = DefinitionReferences(self._queue_reader, self._stream_reader)
        self._queues = DefinitionStore(
            self._queue_rows,
            queue_rules(clock, new_logs),
            clock,
            check=references.check_queue,
            on_change=self._queue_reader.invalidate,
        )
        self._streams = DefinitionStore(
            self._stream_rows,
            STREAM_RULES,
            clock,
            check=references.check_stream,
            checks_changes=False,  # a view cannot take the name of a stream that exists
            on_change=self._stream_reader.invalidate,
        )
        self._queue_replica = DefinitionReplica[QueueName, Queue](
            self._queue_reader.every, self._queue_reader.get, lambda: listener.listening, clock
        )
        self._stream_replica = DefinitionReplica[StreamName, Stream](
            self._stream_reader.every, self._stream_reader.get, lambda: listener.listening, clock
        )
        self._queue_reader.on_invalidate.append(self._queue_replica.note_change)
        self._stream_reader.on_invalidate.append(self._stream_replica.note_change)
        self._deleted = DeletedDefinitions(database)
        self.namespaces = Namespaces(NamespaceRows(database), listener, clock)
        self.cached_queue = self._queue_reader.get_cached
        """Return the queue if it is in the cache and young enough to act on."""
        self.queue = self._queue_reader.get
        """Return the queue, from the cache if possible. Raises QueueNotFound."""
        self.fresh_queue = self._queue_reader.fresh
        """Return the queue as Postgres has it now. Raises QueueNotFound."""
        self.put_queue = self._queues.put
        """Create the queue or replace its specification; annotations stay unless it has its own."""
        self.change_queue = self._queues.change
        """Replace the specification by the result of a function, atomically."""
        self.pause_queue = self._queues.pause
        """Pause the queue's delivery, or resume it."""
        self.list_queues = self._queues.page
        """Return queues whose names begin with a prefix, by name."""
        self.put_stream = self._streams.put
        """Create the stream or replace its specification; its number of shards cannot change."""
        self.change_stream = self._streams.change
        """Replace the specification by the result of a function, atomically."""
        self.list_streams = self._streams.page
        """Return streams whose names begin with a prefix, by name; topics only with theirs."""

    # Queues

    async def delete_queue(self, name: QueueName, *, if_match: int | None = None) -> Queue:
        """Delete the queue with all its messages; return its last definition.

        Its routes, and what they have taken and not delivered, are deleted too. Raises QueueNotFound.
        """
        queue = await self._queues.delete(name, if_match=if_match)
        await self._release_queue(queue)
        return queue

    async def _release_queue(self, queue: Queue) -> None:
        """Drop what belongs to a deleted queue; a topic that remains takes nothing of a new one."""
        name = queue.name
        await self._tombstone_or_defer(name.namespace, [log.log_id for log in queue.logs])
        if name.route is None:
            with suppress(StreamNotFound):
                await self.delete_topic(TopicName.of_queue(name))

    async def delete_queue_if(
        self, name: QueueName, condition: Callable[[Queue], Awaitable[bool]]
    ) -> Queue | None:
        """Delete the queue if a condition holds for its locked definition; return its last one.

        Raises QueueNotFound, and what the condition raises.
        """
        async with self._queues.changing(name) as (locked, queue):
            if not await condition(queue):
                return None
            await locked.delete(queue, self._clock.now_ms())
        await self._release_queue(queue)
        return queue

    # Queues of routes, changed in the transaction of their route's change

    async def put_route_queue(
        self, session: AsyncSession, name: QueueName, spec: QueueSpec
    ) -> Put[Queue]:
        """Create or replace the queue of a route to a URL."""
        spec.check()
        return await self._queues.put_locked(
            await self._queue_rows.lock_in(session, name), name, spec
        )

    async def release_route_queues(self, queues: Mapping[QueueName, LogId]) -> None:
        """Drop deleted queues of routes from the cache, and write the tombstones of their logs."""
        for name in queues:
            self._queue_reader.invalidate(name)
        if queues:
            namespace = next(iter(queues)).namespace
            await self._tombstone_or_defer(namespace, [*queues.values()])

    async def dead_letter_sources(
        self, target: QueueName, *, after: str = "", limit: int = limits.PAGE_ITEMS_DEFAULT
    ) -> list[Queue]:
        """Return queues whose dead letters go to `target`, by name.

        Strictly after `after`; at most 1000.
        """
        if not could_be_name(after):
            raise InvalidCursor
        return await self._queue_rows.page_of_dead_letter_sources(target, after, page_limit(limit))

    def iter_queues(self) -> AsyncIterator[Queue]:
        """Yield every queue of every namespace, read page by page, for sweeps."""
        return self._queue_rows.every()

    async def all_queues(self) -> Mapping[QueueName, Queue]:
        """Return every queue, for maintenance; in an outage the last known ones."""
        return await self._queue_replica.get()

    async def queues_in_turn(self, nth: int, of: int) -> Mapping[QueueName, Queue]:
        """Return the `nth` of `of` shares of `all_queues`, and the recently changed ones."""
        since_ms = self._clock.now_ms() - limits.DEFINITION_NEW_MS
        return {
            name: queue
            for name, queue in (await self.all_queues()).items()
            if hash(name) % of == nth or queue.changed_at_ms >= since_ms
        }

    def archived_queues(self) -> AsyncIterator[Queue]:
        """Yield every queue whose stream view is to be archived."""
        return self._queue_rows.archived()

    # Streams

    async def stream(self, name: StreamName, stream_id: LogId | None = None) -> Stream:
        """Return the stream, or a queue's view of that name, from the cache if possible.

        With `stream_id`, only the stream of that id: a position belongs to one stream, and a name to one after another.
        Raises StreamNotFound, StreamRecreated.
        """
        stream = self._stream_reader.get_cached(name) or self._cached_view(name)
        try:
            stream = stream or await self._stream_reader.get(name)
        except StreamNotFound:
            stream = _view(name, await self._queue_or_none(name, self.queue))
        if stream_id in (None, stream.stream_id):
            return stream
        return await self.fresh_stream(name, stream_id)

    def _cached_view(self, name: StreamName) -> Stream | None:
        """Return the view of a cached queue, for which no stream need be looked for."""
        if name.is_of_topic:
            return None
        queue = self.cached_queue(QueueName(name.name, name.namespace))
        return view_of(queue) if queue is not None and queue.spec.stream_view else None

    async def fresh_stream(self, name: StreamName, stream_id: LogId | None = None) -> Stream:
        """Return the stream, or a queue's view of that name, as Postgres has it now.

        With `stream_id`, only the stream of that id. Raises StreamNotFound, StreamRecreated.
        """
        try:
            stream = await self._stream_reader.fresh(name)
        except StreamNotFound:
            stream = _view(name, await self._queue_or_none(name, self.fresh_queue))
        if stream_id not in (None, stream.stream_id):
            raise StreamRecreated
        return stream

    async def _queue_or_none(
        self, name: StreamName, find: Callable[[QueueName], Awaitable[Queue]]
    ) -> Queue | None:
        if name.is_of_topic:
            return None
        try:
            return await find(QueueName(name.name, name.namespace))
        except QueueNotFound:
            return None

    async def delete_stream(self, name: StreamName, *, if_match: int | None = None) -> Stream:
        """Delete the stream with all its records and routes; return its last definition.

        Raises StreamNotFound, StreamReadOnly for that of a topic.
        """
        if name.is_of_topic:
            raise StreamReadOnly
        return await self._delete_stream(name, if_match)

    async def delete_topic(self, name: TopicName, *, if_match: int | None = None) -> Stream:
        """Delete the topic with its messages and routes; return its last definition.

        Raises StreamNotFound.
        """
        return await self._delete_stream(name.stream, if_match)

    async def _delete_stream(self, name: StreamName, if_match: int | None) -> Stream:
        now_ms = self._clock.now_ms()
        async with self._streams.changing(name, if_match) as (locked, stream):
            queues = await delete_endpoints(locked.session, name.topic, now_ms)
            await locked.delete(stream, now_ms)
        await self.release_route_queues(queues)
        logs = [shard.log_id for shard in (*stream.shards, *stream.opening)]
        await self._tombstone_or_defer(name.namespace, logs)
        return stream

    def changing_stream(
        self, name: StreamName
    ) -> AbstractAsyncContextManager[tuple[LockedLogs[Stream], Stream]]:
        """Lock the stream's name and yield it, to change dependent rows. Raises StreamNotFound."""
        return self._streams.changing(name)

    # Reshards, in the steps of `storage.streams.reshard`

    async def open_children(
        self, name: StreamName, plan: Callable[[Stream], Sequence[Change]]
    ) -> Stream:
        """Insert rows for the shards that `plan` returns; return the stream with these `opening`.

        While some are opening, nothing is planned. Raises StreamNotFound, and what the plan raises.
        """
        async with self._streams.changing(name) as (locked, stream):
            if stream.opening or not (changes := plan(stream)):
                return stream
            children = children_of(stream, changes, self._clock.now_ms(), new_log_id)
            await shard_lineage.open_children(locked, stream, children)
            return replace(stream, opening=children)

    async def close_parents(self, name: StreamName, opening: Sequence[Shard]) -> None:
        """Replace the parents by the shards that were opening, as the stream's own.

        Does nothing if that was done already. Raises StreamNotFound.
        """
        async with self._streams.changing(name) as (locked, stream):
            if stream.opening and stream.opening == tuple(opening):
                eldest = max(stream.shard(index).opened_at_ms for index in _parents(opening))
                now_ms = max(self._clock.now_ms(), stream.changed_at_ms, eldest)
                await shard_lineage.close_parents(locked, stream, now_ms)

    async def set_shard_target(self, name: StreamName, shards: int | None) -> Stream:
        """Set the number of open shards that a reshard aims for; None once it is reached.

        Raises StreamNotFound.
        """
        async with self._streams.changing(name) as (locked, stream):
            if stream.shards_target != shards:
                await shard_lineage.aim_for(locked, stream, shards)
            return replace(stream, shards_target=shards)

    async def expire_shards(self, stream: Stream, indexes: Collection[int]) -> None:
        """Delete closed shards whose logs have no records left from the stream.

        Raises StreamNotFound.
        """
        async with self._streams.changing(stream.name) as (locked, current):
            if current.stream_id != stream.stream_id:
                return
            gone = [one for one in current.shards if one.index in indexes and not one.is_open]
            if gone:
                await shard_lineage.expire(
                    locked, current, {one.index for one in gone}, self._clock.now_ms()
                )
        await self._tombstone_or_defer(stream.name.namespace, [shard.log_id for shard in gone])

    def iter_streams(self) -> AsyncIterator[Stream]:
        """Yield every stream of every namespace, read page by page, for sweeps."""
        return self._stream_rows.every()

    async def all_streams(self) -> Mapping[StreamName, Stream]:
        """Return every stream, for maintenance; in an outage the last known ones."""
        return await self._stream_replica.get()

    # Deletion

    async def deleted_logs(
        self, older_than_ms: int, *, after: LogId = "", limit: int = limits.PAGE_ITEMS_MAX
    ) -> list[tuple[str, LogId]]:
        """Return (namespace, log id) of queues and shards deleted at least `older_than_ms` ago.

        Pages are in order of log id, strictly after `after`.
        """
        return await self._deleted.logs(self._clock.now_ms() - older_than_ms, after, limit)

    async def queue_deleted_within(self, name: QueueName, ms: int) -> bool:
        """Return whether a queue of that name was deleted less than `ms` ago.

        Known for TOMBSTONE_MS at least.
        """
        deleted_at_ms = await self._deleted.last_queue(name)
        return deleted_at_ms is not None and self._clock.now_ms() - deleted_at_ms < ms

    async def delete_tombstoned(self, log_ids: Sequence[LogId]) -> None:
        """Delete the rows of deleted queues and shards, once the hot store has none of their data."""
        await self._deleted.delete(log_ids)

    async def _tombstone_or_defer(self, namespace: str, log_ids: Sequence[LogId]) -> None:
        """Write tombstones for deleted logs; a sweep writes those that fail now.

        The deletion stands in any case.
        """
        try:
            await self._write_tombstones(namespace, log_ids)
        except (StorageUnavailable, StorageBusy, StorageFull, OutcomeUnknown) as error:
            facts = {"count": len(log_ids), "reason": error.detail}
            logger.warning("tombstone_deferred", extra=facts)

    async def keep_warm(self) -> None:
        """Keep every definition cached, until cancelled."""
        await asyncio.gather(self._queue_reader.keep_warm(), self._stream_reader.keep_warm())

    async def close(self) -> None:
        """Stop the reads in progress."""
        await self._queue_reader.close()
        await self._stream_reader.close()
        await self._queue_replica.close()
        await self._stream_replica.close()


@asynccontextmanager
async def open_catalog(
    database: Database,
    listener: Listener,
    clock: Clock,
    bury: WriteTombstones,
    new_logs: NewLogs = random_logs,
) -> AsyncGenerator[Catalog]:
    """Open a catalog that receives other processes' changes while the block runs.

    The listener runs as long. `new_logs` chooses the logs of partitions.
    """
    catalog = Catalog(database, listener, clock, bury, new_logs)
    async with running(listener):
        await listener.attempted()
        try:
            async with (
                in_background(catalog.keep_warm(), "warm-catalog"),
                up_to_date(catalog.namespaces),
            ):
                yield catalog
        finally:
            await catalog.close()


def _parents(children: Sequence[Shard]) -> set[int]:
    return {index for child in children for index in child.parents}


def _view(name: StreamName, queue: Queue | None) -> Stream:
    if queue is None or not queue.spec.stream_view:
        raise stream_not_found(name)
    return view_of(queue)
