"""Match of earlier messages, for a route that starts in the past."""

from storage.domain.streams.stream import LogRecord
from storage.domain.topics.route import TopicRoute
from storage.domain.topics.topic import NewPublication, routes_of


class HistoryMatch:
    """Match of a route for messages that were accepted before it was created."""

    def __init__(self, route: TopicRoute) -> None:
        self.route = route
        self._until = {} if route.history is None else route.history.until
        self._match = None if route.spec.takes_unmatched else route.spec.compile_match()

    def covers(self, shard: int, offset: int) -> bool:
        """Return whether a message was accepted before the route was created."""
        return offset < self._until.get(shard, 0)

    def takes(self, entry: LogRecord) -> bool:
        """Return whether the route takes an earlier message."""
        record = entry.record
        if self._match is None:
            return not routes_of(record.headers)
        document = NewPublication.of_record(record).document(self.route.name.topic)
        return self._match.matches(document)
