"""Copies of a topic's messages, as a queue or a stream receives them."""

from typing import NamedTuple

from storage.domain.log.record_batch import CONTENT_TYPE, RESERVED, Header, Headers, Record
from storage.domain.names import TopicName
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import QueueType
from storage.domain.topics.route import TopicRoute
from storage.domain.topics.topic import SUBJECT, subject_of

TOPIC = ":topic"
"""Header of a copy: the topic that it was published to."""

ROUTE = ":route"
"""Header of a copy: the route that brought it."""

COPY_HEADERS = frozenset({CONTENT_TYPE, TOPIC, SUBJECT, ROUTE})
"""Reserved headers of a copy in a stream."""


class Copy(NamedTuple):
    """Message for a route: a record of the topic's log, at its shard and offset."""

    shard: int
    offset: int
    record: Record
    route: TopicRoute

    @property
    def producer_id(self) -> str:
        """Id of the monotonic producer that it belongs to; the offset is its sequence."""
        return self.route.producer_id(self.shard)

    def as_message(self, queue_type: QueueType) -> NewMessage:
        """Return the copy for a queue; in a FIFO queue the key is its message group."""
        is_fifo = queue_type is QueueType.FIFO
        record = self.record
        content_type = next(
            (value.decode() for name, _, value in record.headers if name == CONTENT_TYPE), ""
        )
        return NewMessage(
            record.data,
            headers=_public(record.headers),
            content_type=content_type,
            group=record.key if is_fifo else "",
            dedup_id=f"{self.route.stream_id}.{self.shard}.{self.offset}" if is_fifo else "",
            system=self._origin(),
        )

    def as_record(self) -> Record:
        """Return the copy for a stream."""
        record = self.record
        content_type = tuple(one for one in record.headers if one[0] == CONTENT_TYPE)
        headers = (*_public(record.headers), *content_type, *self._origin())
        return Record(record.data, record.key, headers, record.event_time_ms)

    def _origin(self) -> Headers:
        topic: TopicName = self.route.name.topic
        origin: list[Header] = [(TOPIC, "", topic.name.encode())]
        if subject := subject_of(self.record.headers):
            origin.append((SUBJECT, "", subject.encode()))
        return (*origin, (ROUTE, "", self.route.name.route.encode()))


def _public(headers: Headers) -> Headers:
    return tuple(one for one in headers if not one[0].startswith(RESERVED))
