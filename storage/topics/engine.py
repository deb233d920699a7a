"""Topic engine: topics, and publishing to them.

publish ─▶ match with the route table of version v ─▶ append record + numbers of its routes, with the token of v
                                                        └ another token: nothing happened; refresh, match again
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Unpack

import attrs
from msgspec.structs import replace

from storage.catalog.catalog import Catalog
from storage.concurrency.tasks import in_batches
from storage.domain import limits
from storage.domain.definitions import Put, PutOptions, could_be_name, page_limit
from storage.domain.errors import (
    AlreadyExists,
    FanOutTooLarge,
    FenceMismatch,
    MillstreamError,
    StorageBusy,
    StreamNotFound,
    TopicReadOnly,
    Unroutable,
)
from storage.domain.log.record_batch import headers_size_bytes
from storage.domain.names import STREAM_PREFIX, TOPIC_PREFIX, LogId, StreamName, TopicName
from storage.domain.streams.idempotence import SequencedBatch
from storage.domain.streams.stream import Appended, Stream, StreamSpec
from storage.domain.streams.topic_spec import TopicSpec
from storage.domain.topics.message_id import TopicMessageId
from storage.domain.topics.topic import DEAD_LETTER_PREFIX, NO_OPTIONS, NewPublication, Published
from storage.postgres.repositories.routes import RouteRows
from storage.streams.engine import Streams
from storage.topics.of_topic import no_topic, of_topic
from storage.topics.route_table import RouteTable, RouteTables

TOPIC_OF_QUEUE = StreamSpec(
    record_bytes_max=limits.RECORD_BYTES_MAX,
    retention_ms=limits.TOPIC_RETENTION_MS_DEFAULT,
    archive=False,
    topic=TopicSpec(),
)
"""Configuration of the topic that takes the messages of a queue, which its first route creates."""


@attrs.define(eq=False, slots=False, kw_only=True)
class Topics:
    """Topics of a deployment. Every verb raises TopicNotFound for one that does not exist.

    Those that change or publish raise TopicReadOnly for a topic that stands for a stream, those that publish also for one that
    takes the messages of a queue.
    """

    _catalog: Catalog
    _streams: Streams
    _tables: RouteTables
    _rows: RouteRows

    # Topics

    async def put(
        self, name: TopicName, spec: StreamSpec, **options: Unpack[PutOptions]
    ) -> Put[Stream]:
        """Create the topic, or replace its configuration, which is a stream's.

        Raises QueueNotFound for a topic that takes the messages of a queue, without that queue.
        """
        _check_writable(name)
        queue_id = await self._queue_id(name)
        spec = replace(spec, topic=(spec.topic or TopicSpec()).with_source(queue_id))
        if queue_id and not options.get("dry_run", False):
            await self._delete_former(name, queue_id)
        try:
            return await self._catalog.put_stream(name.stream, spec, **options)
        except AlreadyExists as error:
            raise AlreadyExists("topic", name.name, error.current) from None

    async def ensure_of_queue(self, name: TopicName, *, dry_run: bool) -> bool:
        """Create the topic that takes the messages of a queue, unless it exists.

        Returns whether it exists now. Raises QueueNotFound.
        """
        if name.queue is None:
            return True
        try:
            await self.put(name, TOPIC_OF_QUEUE, dry_run=dry_run, create_only=True)
        except AlreadyExists:
            return True
        return not dry_run

    async def _queue_id(self, name: TopicName) -> LogId:
        return "" if name.queue is None else (await self._catalog.fresh_queue(name.queue)).log_id

    async def _delete_former(self, name: TopicName, queue_id: LogId) -> None:
        """Delete the topic of a queue that was deleted itself, and whose name is used again."""
        with suppress(StreamNotFound):
            topic = (await self._catalog.fresh_stream(name.stream)).spec.topic
            if topic is not None and topic.queue_id != queue_id:
                await self._catalog.delete_topic(name)

    async def get(self, name: TopicName) -> Stream:
        """Return the topic as the stream that it is, from the cache if possible."""
        try:  # a context manager would cost as much as the rest
            return await self._catalog.stream(name.stream)
        except StreamNotFound:
            raise no_topic(name) from None

    async def fresh(self, name: TopicName) -> Stream:
        """Return the topic as Postgres has it now."""
        async with of_topic(name):
            return await self._catalog.fresh_stream(name.stream)

    async def change(
        self,
        name: TopicName,
        change: Callable[[StreamSpec], StreamSpec],
        *,
        if_match: int | None = None,
    ) -> Stream:
        """Replace the configuration by the result of a function, atomically."""
        _check_writable(name)

        def changed(spec: StreamSpec) -> StreamSpec:
            topic, after = spec.topic or TopicSpec(), change(spec)
            return replace(after, topic=(after.topic or TopicSpec()).with_source(topic.queue_id))

        async with of_topic(name):
            return await self._catalog.change_stream(name.stream, changed, if_match=if_match)

    async def list_topics(
        self,
        namespace: str,
        *,
        prefix: str = "",
        after: str = "",
        limit: int = limits.PAGE_ITEMS_DEFAULT,
    ) -> list[Stream]:
        """Return topics whose names begin with a prefix, by name, strictly after `after`.

        Streams with routes follow, as `stream:<name>`.
        """
        topics: list[Stream] = []
        if not after.startswith(STREAM_PREFIX):
            topics = await self._catalog.list_streams(
                namespace, prefix=TOPIC_PREFIX + prefix, after=TOPIC_PREFIX + after, limit=limit
            )
        if len(topics) < (size := page_limit(limit)):
            topics += await self._list_sources(namespace, prefix, after, size - len(topics))
        return topics

    async def _list_sources(
        self, namespace: str, prefix: str, after: str, limit: int
    ) -> list[Stream]:
        if not could_be_name(prefix):
            return []
        names = await self._rows.sources(namespace)
        listed = [
            name
            for name in names
            if name.topic.name.startswith(prefix)
            and (name.topic.name > after or not after.startswith(STREAM_PREFIX))
        ]
        streams = await in_batches(listed[:limit], self._source, limits.ROUTE_LOG_CONCURRENCY_MAX)
        return [stream for stream in streams if stream is not None]

    async def _source(self, name: StreamName) -> Stream | None:
        try:
            return await self._catalog.stream(name)
        except StreamNotFound:  # deleted since it was listed
            return None

    async def delete(self, name: TopicName, *, if_match: int | None = None) -> Stream:
        """Delete the topic with its messages and routes; return its last definition."""
        _check_writable(name)
        async with of_topic(name):
            return await self._catalog.delete_topic(name, if_match=if_match)

    # Publishing

    async def publish(
        self,
        name: TopicName,
        messages: Sequence[NewPublication],
        *,
        idempotency_key: str = "",
    ) -> list[Published | MillstreamError]:
        """Accept messages, and decide which routes take them; return one result each, in order.

        A message is on disk with the numbers of its routes when this returns. Messages for one shard are accepted together or
        not at all. A repeat with the same idempotency key within ten minutes adds nothing, nor does a message of a FIFO topic
        whose deduplication id was accepted within five minutes. Raises ValidationFailed for a message without what the topic's
        type requires. If one message is refused, as Unroutable
        or FanOutTooLarge, none that is not accepted already is. Raises what `Streams.append` does.
        """
        stream = await self.get(name)
        messages = _checked(stream, messages)
        table = self._tables.cached(stream.stream_id)
        table = table or await self._tables.refresh(name, stream.stream_id)
        version = table.version
        results = [*await self._try(name, stream, table, messages, idempotency_key)]
        for _ in range(limits.STALE_ROUTES_RETRIES_MAX):
            refused = [nth for nth, one in enumerate(results) if isinstance(one, FenceMismatch)]
            if not refused:
                return results
            table = await self._tables.repair(name, stream.stream_id, refused=version)
            chosen, version = [messages[nth] for nth in refused], table.version
            answers = await self._try(name, stream, table, chosen, idempotency_key)
            for nth, answer in zip(refused, answers, strict=True):
                results[nth] = answer
        busy = _routes_are_changing()
        return [busy if isinstance(one, FenceMismatch) else one for one in results]

    async def take_dead_letters(
        self, name: TopicName, batch: SequencedBatch, letters: Sequence[NewPublication]
    ) -> None:
        """Accept dead letters of a queue, each once however often it is sent.

        What would be refused, since no route takes it, is accepted too. Raises what `Streams.append_idempotent_batch` does.
        """
        stream = await self.get(name)
        letters = [_fitting(letter, stream.spec.record_bytes_max) for letter in letters]

        async def append(table: RouteTable) -> None:
            routes = [table.numbers_for(letter.document(name)) for letter in letters]
            await self._streams.append_idempotent_batch(
                name.stream,
                batch,
                [letter.record(one) for letter, one in zip(letters, routes, strict=True)],
                publishes=True,
                stream_id=stream.stream_id,
                fence=table.fence,
            )

        await self.append_fenced(name, stream, append)

    async def publish_idempotent(
        self, name: TopicName, batch: SequencedBatch, messages: Sequence[NewPublication]
    ) -> None:
        """Accept the messages of monotonic producers, each once however often it is sent.

        All or none for each shard; the call is repeated until it has succeeded. Raises Unroutable and FanOutTooLarge for the first
        message that is refused, ValidationFailed as `publish` does, and what `Streams.append_idempotent_batch` does. The sequences
        alone make a repeat a duplicate: on a FIFO topic a deduplication id is required of these messages, and unique (ADR 0095).
        """
        stream = await self.get(name)
        messages = _checked(stream, messages)

        async def append(table: RouteTable) -> None:
            routes, table = await self._decide(name, stream, table, messages)
            await self._streams.append_idempotent_batch(
                name.stream,
                batch,
                [message.record(one) for message, one in zip(messages, routes, strict=True)],
                publishes=True,
                stream_id=stream.stream_id,
                fence=table.fence,
            )

        await self.append_fenced(name, stream, append)

    async def append_fenced(
        self, name: TopicName, stream: Stream, append: Callable[[RouteTable], Awaitable[None]]
    ) -> None:
        """Append what can be repeated, with the route table that the logs agree with.

        Raises StorageBusy while the routes are changing, and what `append` does.
        """
        table = self._tables.cached(stream.stream_id)
        table = table or await self._tables.refresh(name, stream.stream_id)
        for _ in range(limits.STALE_ROUTES_RETRIES_MAX):
            version = table.version
            try:
                await append(table)
            except FenceMismatch:
                table = await self._tables.repair(name, stream.stream_id, refused=version)
            else:
                return
        raise _routes_are_changing()

    async def _decide(
        self,
        name: TopicName,
        stream: Stream,
        table: RouteTable,
        messages: Sequence[NewPublication],
    ) -> tuple[list[Sequence[int]], RouteTable]:
        """Return the routes' numbers for each message, and the table that decided.

        A refusal is that of the present table. Raises Unroutable, FanOutTooLarge.
        """
        try:
            return _routes_for(name, stream, table, messages), table
        except (Unroutable, FanOutTooLarge):
            table = await self._tables.refresh(name, stream.stream_id)
            return _routes_for(name, stream, table, messages), table

    async def _try(
        self,
        name: TopicName,
        stream: Stream,
        table: RouteTable,
        messages: Sequence[NewPublication],
        idempotency_key: str,
    ) -> Sequence[Published | MillstreamError]:
        """Append messages that are matched with a version of the route table.

        The log refuses the numbers of an old table; a refusal by the table itself is repeated with the present one.
        """
        try:
            routes, table = await self._decide(name, stream, table, messages)
        except (Unroutable, FanOutTooLarge) as refusal:
            return [refusal] * len(messages)
        appended = await self._streams.append(
            name.stream,
            [message.record(one) for message, one in zip(messages, routes, strict=True)],
            idempotency_key=idempotency_key,
            publishes=True,
            stream_id=stream.stream_id,
            fence=table.fence,
            dedup_keys=_dedup_keys(stream, messages),
        )
        return [
            answer
            if isinstance(answer, MillstreamError)
            else _published(stream.stream_id, answer, len(table.live(one)))
            for answer, one in zip(appended, routes, strict=True)
        ]


def _checked(stream: Stream, messages: Sequence[NewPublication]) -> Sequence[NewPublication]:
    """Return the messages, with their deduplication ids if the topic is FIFO.

    Raises ValidationFailed for the first one that the topic does not accept, TopicReadOnly.
    """
    topic, is_batch = stream.spec.topic, len(messages) > 1
    if topic is None or topic.queue_id:
        raise TopicReadOnly
    for place, message in enumerate(messages):
        if topic.is_fifo or message.options is not NO_OPTIONS:
            message.check(topic, f"/messages/{place}" if is_batch else "")
    return [one.with_dedup_id() for one in messages] if topic.is_fifo else messages


def _routes_are_changing() -> StorageBusy:
    return StorageBusy("The topic's routes are changing; try again.")


def _fitting(letter: NewPublication, bytes_max: int) -> NewPublication:
    """Return a dead letter without the headers about it, if it would be too large with them."""
    size = len(letter.body) + len(letter.key) + headers_size_bytes(letter.headers)
    if size <= bytes_max:
        return letter
    own = [header for header in letter.headers if not header[0].startswith(DEAD_LETTER_PREFIX)]
    return replace(letter, headers=tuple(own))


def _check_writable(name: TopicName) -> None:
    """Raise TopicReadOnly for a topic that stands for a stream."""
    if name.is_of_stream:
        raise TopicReadOnly


def _dedup_keys(stream: Stream, messages: Sequence[NewPublication]) -> Sequence[str]:
    topic = stream.spec.topic
    if topic is None or not topic.is_fifo:
        return ()
    return [topic.dedup_key(message.key, message.options.dedup_id) for message in messages]


def _routes_for(
    topic: TopicName, stream: Stream, table: RouteTable, messages: Sequence[NewPublication]
) -> list[Sequence[int]]:
    """Return the routes' numbers for each message. Raises Unroutable, FanOutTooLarge."""
    refuses = stream.spec.topic is not None and stream.spec.topic.refuses_unmatched
    routes = [table.numbers_for(message.document(topic)) for message in messages]
    for place, (message, numbers) in enumerate(zip(messages, routes, strict=True)):
        live = table.live(numbers)
        if refuses and not live:
            raise Unroutable(f"Message {place}: no route takes it, and the topic refuses it.")
        if len(live) * len(message.body) > limits.FAN_OUT_BYTES_MAX:
            raise FanOutTooLarge(
                f"Message {place} has {len(message.body)} bytes and goes to {len(live)} routes; "
                f"their product can be at most {limits.FAN_OUT_BYTES_MAX}."
            )
    return routes


def _published(stream_id: LogId, answer: Appended, routes: int) -> Published:
    message_id = TopicMessageId(stream_id, answer.shard, answer.offset)
    return Published(message_id, None if answer.duplicate else routes)
