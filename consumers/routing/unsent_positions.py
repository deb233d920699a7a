"""Positions of a router's report: everything before them was sent, and none goes back.

A copy is counted once the position that covers it has passed it, and a successor begins there. So a position that went back would
have copies counted again: of a buffer that rejoins the router, or whose target has recovered, while it still has earlier copies;
and of one that has sent more than the others.
"""

from collections.abc import Mapping
from typing import Protocol

from storage.domain.streams.lineage import falls_behind, furthest, nearest
from storage.domain.topics.routing import TopicPositions

Positions = Mapping[int, int]


class UnsentCopies(Protocol):
    """Buffer of a target."""

    @property
    def is_failing(self) -> bool:
        """Return whether the last attempt failed."""

    def oldest(self) -> Positions:
        """Return the lowest unsent offset of each shard."""


def unsent_positions(
    read: Positions,
    buffers: Mapping[str, UnsentCopies],
    lags: Mapping[str, Positions],
    reported: TopicPositions,
) -> TopicPositions:
    """Return the positions before which every copy was sent.

    `read` are those of the router, `lags` those of buffers with readers of their own. Of the other buffers, by target, one has
    its own positions, as a lag, while its target fails: the other targets have what lies behind them. So has one while any
    other positions would be before those that were `reported` for it.
    """
    shards, lags = dict(read), dict(lags)
    for key, buffer in buffers.items():
        unsent = furthest(nearest(read, buffer.oldest()), reported.lags.get(key, {}))
        if buffer.is_failing or falls_behind(unsent, reported.shards):
            lags[key] = unsent
        else:
            shards = nearest(shards, unsent)
    for key, earlier in reported.lags.items():
        present = lags.get(key.partition("#")[0], shards)
        if key not in lags and falls_behind(present, earlier):
            lags[key] = furthest(present, earlier)
    return TopicPositions(shards, lags)
