"""Match of stored messages, for routes that start in the past and for back-tests."""

from collections.abc import Sequence
from typing import Any

from storage.domain.filters.matches import FailedCondition
from storage.domain.log.record_batch import Record
from storage.domain.names import TopicName
from storage.domain.topics.route import UNMATCHED, TopicRoute, compile_match
from storage.domain.topics.topic import NewPublication, routes_of


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


class StoredMessage:
    """Message of a topic's log as matches see it, decoded once for all of them."""

    __slots__ = ("document", "routes")

    def __init__(self, topic: TopicName, record: Record) -> None:
        self.document = NewPublication.of_record(record).document(topic)
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
