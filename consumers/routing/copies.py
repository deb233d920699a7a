"""Copies of a topic's messages for their targets, and their dead letters."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from storage.domain import limits
from storage.domain.log.record_batch import CONTENT_TYPE, SUBJECT, Header, Headers, Record
from storage.domain.queues.dead_letter_origin import DeadLetterOrigin
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import QueueType
from storage.domain.replays.replay import ORIGIN_HEADERS, group_for, source_headers
from storage.domain.requests.token import REPLY_TO, deadline_of
from storage.domain.streams.stream import LogRecord
from storage.domain.streams.topic_spec import TopicSpec
from storage.domain.topics.copy_key import key_of
from storage.domain.topics.formats import CopyFormat
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
    NO_OPTIONS,
    ROUTE,
    TOPIC,
    NewPublication,
    PublicationOptions,
    hops_of,
    options_of,
)

COPY_HEADERS = ORIGIN_HEADERS | {CONTENT_TYPE, TOPIC, SUBJECT, ROUTE, HOPS}
"""Reserved headers of a copy in a stream."""


class Copy(NamedTuple):
    """Message for a branch of a route: a record of the topic's log, at its shard and offset.

    `content`, `options`, `size_bytes`: of the record, computed once for all routes that take it.
    """

    shard: int
    offset: int
    record: Record
    route: TopicRoute
    branch: RouteBranch
    arrival_ms: int
    content: CopyContent
    size_bytes: int
    options: PublicationOptions = NO_OPTIONS

    @property
    def producer_id(self) -> str:
        """Id of the monotonic producer that it belongs to; the offset is its sequence."""
        return self.route.producer_id(self.shard)

    @property
    def dead_producer_id(self) -> str:
        """Id of the monotonic producer of its dead letter; the offset is its sequence."""
        return self.route.dead_producer_id(self.shard, self.branch.member)

    def has_expired(self, now_ms: int) -> bool:
        """Return whether the message's own time to live is over."""
        ttl_ms = self.options.ttl_ms
        return ttl_ms > 0 and self.arrival_ms + ttl_ms <= now_ms

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
            priority=0 if is_fifo else self.options.priority,
        )

    def as_record(self) -> Record:
        """Return the copy for a stream. Raises TransformFailed."""
        content, key = self._render()
        headers = (*content.typed_headers, *self._origin(content.subject), *self._hops())
        return Record(content.body, key, headers, self.record.event_time_ms)

    def _hops(self) -> Headers:
        """Return the header with the number of routes that the copy has passed.

        What was published to this topic itself has none. Raises TransformFailed after too many.
        """
        before = hops_of(self.record.headers)
        if not before and self.route.is_of_publications:
            return ()
        return ((HOPS, "", b"%d" % _one_more(before)),)

    def as_publication(self, topic: TopicSpec, now_ms: int) -> NewPublication:
        """Return the copy for another topic. Raises TransformFailed, also after too many topics."""
        hops = _one_more(hops_of(self.record.headers))
        content, key = self._render()
        reply_to = next((value.decode() for _, _, value in self._reply_to), "")
        options = PublicationOptions(
            self._dedup_id if topic.is_fifo else "",
            self.options.delay_ms,
            self._left_ms(now_ms),
            0 if topic.is_fifo else self.options.priority,
        )
        return NewPublication(
            content.body, content.subject, key, content.typed_headers, hops, reply_to, options
        )

    def as_dead_letter(self, queue_type: QueueType, origin: DeadLetterOrigin) -> NewMessage:
        """Return the message as it was published, for a dead-letter queue."""
        content, key = self.content, self.record.key
        is_fifo = queue_type is QueueType.FIFO
        source = () if self.route.is_of_stream else self._source_headers
        return NewMessage(
            content.body,
            headers=content.headers,
            content_type=content.content_type,
            group=group_for(key, self.shard, fifo=True) if is_fifo else "",
            dedup_id=self._dedup_id if is_fifo else "",
            system=(
                *self._origin(content.subject, key),
                *source,
                origin.to_header(),
            ),
        )

    @property
    def _reply_to(self) -> Headers:
        """Header with the token of the request that the message is, if it is one."""
        return tuple(header for header in self.record.headers if header[0] == REPLY_TO)

    @property
    def _delay_ms(self) -> int | None:
        """Delay of the message itself, or of the route; None for that of the queue."""
        own_ms = self.options.delay_ms
        return self.route.spec.delay_ms or None if own_ms is None else own_ms

    def _left_ms(self, now_ms: int) -> int:
        """Return what is left of the message's own time to live; 0 without one."""
        ttl_ms = self.options.ttl_ms
        return max(1, self.arrival_ms + ttl_ms - now_ms) if ttl_ms else 0

    def _ttl_ms(self, reply_to: Headers, now_ms: int) -> int:
        """Return the time to live of the message, or of the route; a request ends at its deadline."""
        ttl_ms = self._left_ms(now_ms) or self.route.spec.ttl_ms
        if not reply_to:
            return ttl_ms
        deadline_ms = deadline_of(reply_to[0][2].decode())
        left_ms = max(1, deadline_ms - self.arrival_ms - (self._delay_ms or 0))
        return min(ttl_ms or left_ms, left_ms)

    @property
    def _dedup_id(self) -> str:
        """Deduplication id that no other copy has, with the publisher's at its end (ADR 0095)."""
        identity = f"{self.route.stream_id}.{self.shard}.{self.offset}.{self.route.number}"
        own = self.options.dedup_id
        return f"{identity}.{own}"[: limits.GROUP_CHARACTERS_MAX] if own else identity

    def _render(self) -> tuple[CopyContent, str]:
        """Return the content and the key of the copy, as the route makes them."""
        spec = self.route.spec
        if spec.transform is None and spec.key is None and spec.format is CopyFormat.BODY:
            return self.content, self.record.key
        message_id = TopicMessageId(self.route.stream_id, self.shard, self.offset)
        message = RoutedMessage(self.route.name, message_id, self.arrival_ms, self.record)
        transform = spec.transform
        content = message.content if transform is None else transform.transformer.apply(message)
        return spec.format.apply(message, content), key_of(spec.key, message.document)

    @property
    def _source_headers(self) -> Headers:
        """Headers with the place of the record, as replays add them."""
        stream = self.route.name.topic.stream.name
        return source_headers(stream, self.shard, self.offset, self.arrival_ms)

    def _origin(self, subject: str, key: str = "") -> Headers:
        route = self.route
        place = self._source_headers if route.is_of_stream else ((TOPIC, "", route.topic_value),)
        by_route: Header = (ROUTE, "", route.route_value)
        own: Headers = ((KEY, "", key.encode()),) if key else ()
        if not subject:
            return (*place, by_route, *own)
        return (*place, (SUBJECT, "", subject.encode()), by_route, *own)


def _one_more(hops: int) -> int:
    """Return the hops of a copy. Raises TransformFailed if it has passed too many topics."""
    if hops >= limits.TOPIC_HOPS_MAX:
        detail = f"The message has passed {limits.TOPIC_HOPS_MAX} topics."
        raise TransformFailed(detail, TOO_MANY_HOPS)
    return hops + 1


def copies_of(shard: int, entry: LogRecord, routes: Iterable[TopicRoute]) -> Iterator[Copy]:
    """Yield the copies of a record for routes."""
    record = entry.record
    content, options, size_bytes = (
        content_of(record),
        options_of(record.headers),
        record.size_bytes,
    )
    for route in routes:
        branch = route.branch_of(shard, entry.offset, record)
        yield Copy(
            *(shard, entry.offset, record, route, branch),
            *(entry.arrival_ms, content, size_bytes, options),
        )
