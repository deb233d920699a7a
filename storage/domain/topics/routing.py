"""Progress of a router in a topic, and what it has done for each route."""

from collections.abc import Mapping

import msgspec

from storage.domain.topics.targets.branch import RouteBranch


class TopicPositions(msgspec.Struct, frozen=True):
    """Positions in a topic's shards: of the router, and of each buffer that is behind it.

    Everything before a position was delivered, dead-lettered, or counted as dropped, for the routes that it covers; or it is
    in `expired`: the messages that retention removed before the router, or a buffer behind it, had read them. What took them
    is lost with them, so they are counted for the topic alone, and for each reader that missed them; those of a shard that
    was deleted unread are not in it, since their number is unknown.
    """

    shards: Mapping[int, int]
    lags: Mapping[str, Mapping[int, int]] = {}
    expired: int = 0

    def of(self, branch: RouteBranch) -> Mapping[int, int]:
        """Return the positions of a branch's copies: its own, its target's, or the router's."""
        return self.lags.get(branch.own_key) or self.of_target(branch.target_key)

    def of_target(self, key: str) -> Mapping[int, int]:
        """Return the positions of a target's buffer: its own, or the router's."""
        return self.lags.get(key) or self.shards


class RouteCounts(msgspec.Struct):
    """Messages that a router has finished for a route since its last report.

    `failure` is the last one, empty after a success; None if there was neither.
    """

    delivered: int = 0
    dropped: int = 0
    dead_lettered: int = 0
    shadowed: int = 0
    failure: str | None = None

    def subtract(self, other: "RouteCounts") -> None:
        """Subtract what is counted already."""
        self.delivered -= other.delivered
        self.dropped -= other.dropped
        self.dead_lettered -= other.dead_lettered
        self.shadowed -= other.shadowed

    def add(self, later: "RouteCounts") -> None:
        """Add what was counted later."""
        self.delivered += later.delivered
        self.dropped += later.dropped
        self.dead_lettered += later.dead_lettered
        self.shadowed += later.shadowed
        self.failure = self.failure if later.failure is None else later.failure
