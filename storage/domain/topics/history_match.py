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

    def __init__(self, topic: TopicName, match: Any) -> None:
        self._topic = topic
        self._match = None if match == UNMATCHED else compile_match(match)

    def takes(self, record: Record) -> bool:
        """Return whether the match takes a message."""
        if self._match is None:
            return not routes_of(record.headers)
        document = NewPublication.of_record(record).document(self._topic)
        return self._match.matches(document)

    def explain(self, record: Record) -> Sequence[FailedCondition]:
        """Return the conditions that a message does not meet; empty if it is taken."""
        if self._match is not None:
            return self._match.explain(NewPublication.of_record(record).document(self._topic))
        numbers = routes_of(record.headers)
        return [FailedCondition(0, "routes", UNMATCHED, [*numbers])] if numbers else []


class HistoryMatch:
    """Match of a route for messages that were accepted before it was created."""

    def __init__(self, route: TopicRoute) -> None:
        self.route = route
        self._until = {} if route.history is None else route.history.until
        self._match = StoredMatch(route.name.topic, route.spec.match)

    def covers(self, shard: int, offset: int) -> bool:
        """Return whether a message was accepted before the route was created."""
        return offset < self._until.get(shard, 0)

    def takes(self, record: Record) -> bool:
        """Return whether the route takes an earlier message."""
        return self._match.takes(record)
