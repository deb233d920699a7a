"""Matches evaluated when a message is read: routes in the past, of streams, back-tests."""

from collections.abc import Iterable, Sequence
from typing import Any

from storage.domain.errors import ValidationFailed
from storage.domain.filters.documents import document_of, meta_of
from storage.domain.filters.match_index import MatchIndex
from storage.domain.filters.matches import FailedCondition
from storage.domain.log.record_batch import Record
from storage.domain.names import StreamName, TopicName
from storage.domain.streams.stream import LogRecord
from storage.domain.topics.route import UNMATCHED, TopicRoute, compile_match
from storage.domain.topics.topic import routes_of


class StoredMatch:
    """Match of a route, or UNMATCHED, for messages of a topic's log.

    A message was unmatched if no route is stored with it.
    """

    def __init__(self, match: Any) -> None:
        self._match = None if match == UNMATCHED else compile_match(match)

    def takes(self, message: "StoredMessage") -> bool:
        """Return whether the match takes a message."""
        if self._match is None:
            return not message.routes
        return self._match.matches(message.document)

    def explain(self, message: "StoredMessage") -> Sequence[FailedCondition]:
        """Return the conditions that a message does not meet; empty if it is taken."""
        if self._match is not None:
            return self._match.explain(message.document)
        routes = message.routes
        return [FailedCondition(0, "routes", UNMATCHED, [*routes])] if routes else []


def check_unmatched(topic: TopicName, match: Any, pointer: str) -> None:
    """Raise ValidationFailed for UNMATCHED of a stream, which stores no decisions."""
    if topic.is_of_stream and match == UNMATCHED:
        detail = "A stream does not store which of its records were unmatched"
        raise ValidationFailed.at(pointer, detail, "not_supported")


class StoredMessage:
    """Message of a topic's log as matches see it, decoded once for all of them."""

    __slots__ = ("document", "routes")

    def __init__(self, topic: TopicName, record: Record) -> None:
        self.document = document_of(record, meta_of(topic.stream))
        self.routes = routes_of(record.headers)


class HistoryMatch:
    """Match of a route for messages that were accepted before it was created."""

    def __init__(self, route: TopicRoute) -> None:
        self.route = route
        self._until = {} if route.history is None else route.history.until
        self._match = StoredMatch(route.spec.match)

    def covers(self, shard: int, offset: int) -> bool:
        """Return whether a message was accepted before the route was created."""
        return offset < self._until.get(shard, 0)

    def takes(self, record: Record) -> bool:
        """Return whether the route takes an earlier message."""
        return self._match.takes(StoredMessage(self.route.name.topic, record))


class StreamRoutes:
    """Revisions of a stream's routes, current ones and those with records to receive.

    What they take depends on a record and the stored revisions alone, so every reader finds the same (ADR 0099).
    """

    def __init__(self, stream: StreamName) -> None:
        self._meta = meta_of(stream)
        self._revisions: dict[int, TopicRoute] = {}
        self._index = MatchIndex()
        self._unmatched: set[int] = set()

    def update(self, routes: Iterable[TopicRoute]) -> None:
        """Add revisions, or replace them; the match of a revision never changes."""
        for route in routes:
            if route.number not in self._revisions:
                self._add(route)
            self._revisions[route.number] = route

    def _add(self, route: TopicRoute) -> None:
        if route.spec.takes_unmatched:
            self._unmatched.add(route.number)
        else:
            self._index.add(route.number, route.spec.compile_match())

    def discard(self, number: int) -> None:
        """Leave out a revision that has received everything."""
        self._revisions.pop(number, None)
        self._index.discard(number)
        self._unmatched.discard(number)

    def of(self, shard: int, entry: LogRecord) -> list[TopicRoute]:
        """Return the revisions that take a record."""
        if not self._revisions:
            return []
        numbers = self._index.find(document_of(entry.record, self._meta))
        taking = self._covering(numbers, shard, entry.offset)
        if not self._unmatched or any(not route.spec.is_shadow for route in taking):
            return taking
        return [*taking, *self._covering(self._unmatched, shard, entry.offset)]

    def _covering(self, numbers: Iterable[int], shard: int, offset: int) -> list[TopicRoute]:
        revisions = (self._revisions[number] for number in numbers)
        return [route for route in revisions if route.covers(shard, offset)]
