"""Topics as routers see them: shares of all topics, positions, and revisions of routes."""

from collections.abc import Mapping, Sequence

import attrs

from storage.catalog.catalog import Catalog
from storage.concurrency.leader_election import LeaderElection, LeaderLeases
from storage.domain import limits
from storage.domain.names import LogId, TopicName
from storage.domain.streams.stream import Stream
from storage.domain.topics.route import TopicRoute
from storage.domain.topics.routing import RouteCounts, TopicPositions
from storage.postgres.repositories.routes import RouteRows
from storage.postgres.repositories.topic_positions import TopicPositionRows


def topic_of(stream: Stream) -> TopicName:
    """Return the name of the topic that a stream is."""
    return TopicName(stream.name.name.partition(":")[2], stream.name.namespace)


@attrs.define(eq=False, slots=False, kw_only=True)
class TopicRouting:
    """Routing state of all topics. Every method raises StorageUnavailable or StorageBusy."""

    _catalog: Catalog
    _rows: RouteRows
    _positions: TopicPositionRows
    _leases: LeaderLeases

    async def topics(self) -> dict[int, list[Stream]]:
        """Return the topics of every namespace by share; a share without a topic is left out."""
        shares: dict[int, list[Stream]] = {}
        for stream in (await self._catalog.all_streams()).values():
            if stream.spec.topic is not None:
                share = int(stream.stream_id, 16) % limits.ROUTER_LEASES
                shares.setdefault(share, []).append(stream)
        return shares

    def election(self, share: int, holder: str) -> LeaderElection:
        """Return a candidate for the lease of a share of the topics."""
        return LeaderElection(self._leases, f"router:{share}", holder)

    async def positions(self, stream_id: LogId) -> TopicPositions:
        """Return the positions of a topic's router."""
        return await self._positions.read(stream_id)

    async def save(
        self,
        stream_id: LogId,
        positions: TopicPositions,
        counts: Mapping[int, RouteCounts],
        fence: int,
    ) -> bool:
        """Store positions and counts; return False, storing nothing, after a later router did."""
        return await self._positions.save(stream_id, positions, counts, fence)

    async def changes(self, stream: Stream, since: int) -> tuple[int, Sequence[TopicRoute]] | None:
        """Return the version of a topic's routes, and changed revisions; None without the topic."""
        changes = await self._rows.changes(topic_of(stream), stream.stream_id, since)
        return None if changes is None else (changes.version, changes.routes)

    async def delete_ended(self, stream_id: LogId, numbers: Sequence[int]) -> None:
        """Delete revisions that have ended and received everything."""
        await self._rows.delete_ended(stream_id, numbers)
