"""Copies of a topic's messages for their targets, and their dead letters."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice

import msgspec

from consumers.feeds.blocks import Chunk
from storage.domain import limits
from storage.domain.log.record_batch import SUBJECT, Headers, Record
from storage.domain.queues.dead_letter_origin import DeadLetterOrigin
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import QueueType
from storage.domain.replays.replay import group_for, source_headers
from storage.domain.requests.token import REPLY_TO, deadline_of
from storage.domain.streams.stream import LogRecord
from storage.domain.streams.topic_spec import TopicSpec
from storage.domain.topics.copy_key import key_of
from storage.domain.topics.message_id import TopicMessageId
from storage.domain.topics.route import TopicRoute
from storage.domain.topics.routed_message import (
    TOO_MANY_HOPS,
    CopyContent,
    RoutedMessage,
    TransformFailed,
    content_of,
)
from storage.domain.topics.targets.branch import RouteBranch
from storage.domain.topics.topic import (
    HOPS,
    KEY,
    NewPublication,
    PublicationOptions,
    hops_of,
    options_of,
)

RoutesOf = Callable[[int, LogRecord], Sequence[TopicRoute]]
"""Function of a shard and a record that returns the routes that take the record."""


class SourceRecord(msgspec.Struct, frozen=True, gc=False):
    """Record of the topic's log, with what its copies share.

    `hops`: number of routes that it has passed before. `published`: the record without Millstream's own headers, as every
    unchanged copy in a stream has it; `subject_headers` come behind its headers.
    """

    shard: int
    offset: int
    arrival_ms: int
    record: Record
    content: CopyContent
    options: PublicationOptions
    hops: int
    size_bytes: int
    published: Record
    subject_headers: Headers

    @classmethod
    def of(cls, shard: int, entry: LogRecord) -> "SourceRecord":
        """Return a record as it was read from a shard."""
        record, content = entry.record, content_of(entry.record)
        options, hops = options_of(record.headers), hops_of(record.headers)
        published = Record(record.data, record.key, content.typed_headers, record.event_time_ms)
        return cls(
            *(shard, entry.offset, entry.arrival_ms, record, content),
            *(options, hops, record.size_bytes),
            *(published, _subject_headers(content.subject)),
        )

    def has_expired(self, now_ms: int) -> bool:
        """Return whether the message's own time to live is over."""
        ttl_ms = self.options.ttl_ms
        return ttl_ms > 0 and self.arrival_ms + ttl_ms <= now_ms


class Copy(msgspec.Struct, frozen=True, gc=False):
    """Message for a branch of a route."""

    source: SourceRecord
    route: TopicRoute
    branch: RouteBranch

    @property
    def producer_id(self) -> str:
        """Id of the monotonic producer that it belongs to; the offset is its sequence."""
        return self.route.producer_ids[self.source.shard]

    @property
    def dead_producer_id(self) -> str:
        """Id of the monotonic producer of its dead letter; the offset is its sequence."""
        return self.route.dead_producer_id(self.source.shard, self.branch.member)

    def as_message(self, queue_type: QueueType, now_ms: int) -> NewMessage:
        """Return the copy for a queue; in a FIFO queue the key is its message group.

        Raises TransformFailed.
        """
        content, key = self._render()
        is_fifo, reply_to = queue_type is QueueType.FIFO, self._reply_to
        return NewMessage(
            content.body,
            headers=content.headers,
            content_type=content.content_type,
            group=key if is_fifo else "",
            dedup_id=self._dedup_id if is_fifo else "",
            delay_ms=self._delay_ms,
            system=(
                *self._origin(content.subject, "" if is_fifo else key),
                *reply_to,
                *self._hops(),
            ),
            ttl_ms=self._ttl_ms(reply_to, now_ms),
            priority=0 if is_fifo else self.source.options.priority,
        )

    def as_record(self) -> tuple[Record, Headers]:
        """Return the copy for a stream, and its reserved headers. Raises TransformFailed."""
        source, route = self.source, self.route
        if route.copies_are_unchanged and not source.hops:
            return source.published, source.subject_headers + route.origin_headers
        content, key = self._render()
        record = Record(content.body, key, content.typed_headers, source.record.event_time_ms)
        return record, (*self._origin(content.subject), *self._hops())

    def _hops(self) -> Headers:
        """Return the header with the number of routes that the copy has passed.

        What was published to this topic itself has none. Raises TransformFailed after too many.
        """
        if not self.source.hops and self.route.is_of_publications:
            return ()
        return ((HOPS, "", b"%d" % _one_more(self.source.hops)),)

    def as_publication(self, topic: TopicSpec, now_ms: int) -> NewPublication:
        """Return the copy for another topic. Raises TransformFailed, also after too many topics."""
        hops = _one_more(self.source.hops)
        content, key = self._render()
        reply_to = next((value.decode() for _, _, value in self._reply_to), "")
        options = PublicationOptions(
            self._dedup_id if topic.is_fifo else "",
            self.source.options.delay_ms,
            self._left_ms(now_ms),
            0 if topic.is_fifo else self.source.options.priority,
        )
        return NewPublication(
            content.body, content.subject, key, content.typed_headers, hops, reply_to, options
        )

    @property
    def has_no_dead_letter(self) -> bool:
        """True if the message is itself a dead letter of one that had passed too many topics."""
        return self.source.hops > limits.TOPIC_HOPS_MAX

    def as_dead_letter(self, queue_type: QueueType, origin: DeadLetterOrigin) -> NewMessage:
        """Return the message as it was published, for a dead-letter queue.

        It has passed one more topic: the routes of that queue may bring it back.
        """
        content, key = self.source.content, self.source.record.key
        is_fifo = queue_type is QueueType.FIFO
        source = () if self.route.is_of_stream else self._source_headers
        return NewMessage(
            content.body,
            headers=content.headers,
            content_type=content.content_type,
            group=group_for(key, self.source.shard, fifo=True) if is_fifo else "",
            dedup_id=self._dedup_id if is_fifo else "",
            system=(
                *self._origin(content.subject, key),
                *source,
                (HOPS, "", b"%d" % (self.source.hops + 1)),
                origin.to_header(),
            ),
        )

    @property
    def _reply_to(self) -> Headers:
        """Header with the token of the request that the message is, if it is one."""
        return tuple(header for header in self.source.record.headers if header[0] == REPLY_TO)

    @property
    def _delay_ms(self) -> int | None:
        """Delay of the message itself, or of the route; None for that of the queue."""
        own_ms = self.source.options.delay_ms
        return self.route.spec.delay_ms or None if own_ms is None else own_ms

    def _left_ms(self, now_ms: int) -> int:
        """Return what is left of the message's own time to live; 0 without one."""
        ttl_ms = self.source.options.ttl_ms
        return max(1, self.source.arrival_ms + ttl_ms - now_ms) if ttl_ms else 0

    def _ttl_ms(self, reply_to: Headers, now_ms: int) -> int:
        """Return the time to live of the message, or of the route; a request ends at its deadline."""
        ttl_ms = self._left_ms(now_ms) or self.route.spec.ttl_ms
        if not reply_to:
            return ttl_ms
        deadline_ms = deadline_of(reply_to[0][2].decode())
        left_ms = max(1, deadline_ms - self.source.arrival_ms - (self._delay_ms or 0))
        return min(ttl_ms or left_ms, left_ms)

    @property
    def _dedup_id(self) -> str:
        """Deduplication id that no other copy has, with the publisher's at its end (ADR 0095)."""
        source, route = self.source, self.route
        identity = f"{route.stream_id}.{source.shard}.{source.offset}.{route.number}"
        own = source.options.dedup_id
        return f"{identity}.{own}"[: limits.GROUP_CHARACTERS_MAX] if own else identity

    def _render(self) -> tuple[CopyContent, str]:
        """Return the content and the key of the copy, as the route makes them."""
        source, route, spec = self.source, self.route, self.route.spec
        if route.keeps_content:
            return source.content, source.record.key
        message_id = TopicMessageId(route.stream_id, source.shard, source.offset)
        message = RoutedMessage(route.name, message_id, source.arrival_ms, source.record)
        transform = spec.transform
        content = message.content if transform is None else transform.transformer.apply(message)
        return spec.format.apply(message, content), key_of(spec.key, message.document)

    @property
    def _source_headers(self) -> Headers:
        """Headers with the place of the record, as replays add them."""
        source = self.source
        stream = self.route.name.topic.stream.name
        return source_headers(stream, source.shard, source.offset, source.arrival_ms)

    def _origin(self, subject: str, key: str = "") -> Headers:
        own: Headers = ((KEY, "", key.encode()),) if key else ()
        place = self._source_headers if self.route.is_of_stream else ()
        return (*_subject_headers(subject), *place, *self.route.origin_headers, *own)


def _subject_headers(subject: str) -> Headers:
    return ((SUBJECT, "", subject.encode()),) if subject else ()


def _one_more(hops: int) -> int:
    """Return the hops of a copy. Raises TransformFailed if it has passed too many topics."""
    if hops >= limits.TOPIC_HOPS_MAX:
        detail = f"The message has passed {limits.TOPIC_HOPS_MAX} topics."
        raise TransformFailed(detail, TOO_MANY_HOPS)
    return hops + 1


def copies_of(shard: int, entry: LogRecord, routes: Sequence[TopicRoute]) -> list[Copy]:
    """Return the copies of a record for routes."""
    if not routes:
        return []
    source, record, offset = SourceRecord.of(shard, entry), entry.record, entry.offset
    return [Copy(source, route, route.branch_of(shard, offset, record)) for route in routes]


def blocks_of(chunk: Chunk, routes_of: RoutesOf) -> Iterator[list[Copy]]:
    """Yield the copies of a chunk's records, in order, in blocks of ROUTER_BLOCK_COPIES."""
    copies = chain.from_iterable(
        copies_of(chunk.shard, entry, routes_of(chunk.shard, entry)) for entry in chunk.records
    )
    while block := [*islice(copies, limits.ROUTER_BLOCK_COPIES)]:
        yield block


def by_target(copies: Iterable[Copy]) -> Iterable[list[Copy]]:
    """Return copies by the keys of their targets, each in order."""
    targets: defaultdict[str, list[Copy]] = defaultdict(list)
    for copy in copies:
        targets[copy.branch.target_key].append(copy)
    return targets.values()
