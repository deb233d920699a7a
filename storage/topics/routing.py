"""Topics as routers see them: shares of all topics, and what is stored of their routing.

A stream that has routes is one of them.
"""

from collections.abc import Set

import attrs

from storage.catalog.catalog import Catalog
from storage.concurrency.leader_election import LeaderElection, LeaderLeases
from storage.domain import limits
from storage.domain.names import LogId
from storage.domain.streams.stream import Stream
from storage.postgres.repositories.routes import RouteRows
from storage.postgres.repositories.topic_positions import TopicPositionRows


@attrs.define(eq=False, slots=False, kw_only=True)
class TopicRouting:
    """Shares of the topics of every namespace, and their leases.

    `routes` and `positions` are the revisions of routes, and the positions of routers.
    """

    _catalog: Catalog
    _leases: LeaderLeases
    routes: RouteRows
    positions: TopicPositionRows

    async def topics(self) -> dict[int, list[Stream]]:
        """Return the topics of every namespace by share; a share without a topic is left out."""
        streams = (await self._catalog.all_streams()).values()
        sources: Set[LogId] = set()
        if any(stream.spec.topic is None and stream.routes_version for stream in streams):
            sources = await self.routes.source_ids()
        shares: dict[int, list[Stream]] = {}
        for stream in streams:
            if stream.spec.topic is not None or stream.stream_id in sources:
                share = int(stream.stream_id, 16) % limits.ROUTER_LEASES
                shares.setdefault(share, []).append(stream)
        return shares

    def election(self, share: int, holder: str) -> LeaderElection:
        """Return a candidate for the lease of a share of the topics."""
        return LeaderElection(self._leases, f"router:{share}", holder)
