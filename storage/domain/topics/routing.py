"""Progress of a router in a topic, and what it has done for each route."""

from collections.abc import Mapping

import msgspec


class TopicPositions(msgspec.Struct, frozen=True):
    """Positions in a topic's shards: of the router, and of each buffer that is behind it.

    Everything before a position was delivered, or counted as dropped, for the routes that it covers.
    """

    shards: Mapping[int, int]
    lags: Mapping[str, Mapping[int, int]] = {}


class RouteCounts(msgspec.Struct):
    """Messages that a router has finished for a route since its last report.

    `failure` is the last one, empty after a success; None if there was neither.
    """

    delivered: int = 0
    dropped: int = 0
    failure: str | None = None

    def add(self, later: "RouteCounts") -> None:
        """Add what was counted later."""
        self.delivered += later.delivered
        self.dropped += later.dropped
        self.failure = self.failure if later.failure is None else later.failure
