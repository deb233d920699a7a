"""Route tables: the compiled routes of topics that this process publishes to.

    publish ──▶ table of version v ──▶ numbers of the routes ──▶ append with the fencing token of v
                      ▲                                              └ FenceMismatch: the log has another token
                      └── refresh: changes since v, once no change of routes is in progress ◀──┘

The token of a topic's logs names the version of its routes, so no table is ever trusted: one that is behind is refused by the
log, and nothing has happened. Where the log is behind, because a change was rolled back or the log restored, the refresh finds
nothing new and sets its token again (ADR 0092).
"""

from collections.abc import Sequence

import attrs

from storage.concurrency.bounded_cache import BoundedCache
from storage.concurrency.single_flight import SingleFlight
from storage.domain import limits
from storage.domain.filters.documents import Document
from storage.domain.filters.match_index import MatchIndex
from storage.domain.names import LogId, TopicName
from storage.domain.topics.route import TopicRoute
from storage.domain.topics.topic import fence_of
from storage.postgres.repositories.routes import RouteChanges, RouteRows
from storage.topics.fences import RouteFences
from storage.topics.of_topic import no_topic


class RouteTable:
    """Matches of the current routes of one topic, by their numbers.

    It is brought to later versions in place: what it decides, and the fence of that, are taken together, without an await between.
    """

    def __init__(self) -> None:
        self.version = 0
        self._numbers: set[int] = set()
        self._index = MatchIndex()
        self._unmatched: set[int] = set()
        self._shadows: set[int] = set()

    def accepts(self, changes: RouteChanges) -> bool:
        """Return whether the table is complete with these changes.

        It is not if it missed the end of a revision that is forgotten since.
        """
        changed = {route.number for route in changes.routes}
        added = sum(route.until is None for route in changes.routes)
        return len(self._numbers - changed) + added == changes.current

    def apply(self, changes: RouteChanges) -> None:
        """Bring the table to a later version."""
        for route in changes.routes:
            if route.until is None:
                self._add(route)
            else:
                self._index.discard(route.number)
                for numbers in (self._numbers, self._unmatched, self._shadows):
                    numbers.discard(route.number)
        self.version = changes.version

    def _add(self, route: TopicRoute) -> None:
        if route.spec.takes_unmatched:
            self._unmatched.add(route.number)
        else:
            self._index.add(route.number, route.spec.compile_match())
        if route.spec.is_shadow:
            self._shadows.add(route.number)
        self._numbers.add(route.number)

    @property
    def has_live_routes(self) -> bool:
        """True if some route delivers what it takes."""
        return len(self._numbers) > len(self._shadows)

    @property
    def fence(self) -> str:
        """Token of the logs that agree with the table."""
        return fence_of(self.version)

    def numbers_for(self, document: Document) -> Sequence[int]:
        """Return the numbers of the routes that take a message, in order."""
        numbers = self._index.find(document)
        if not self._unmatched or self.live(numbers):
            return numbers
        return sorted({*numbers, *self._unmatched})

    def matching(self, document: Document) -> Sequence[int]:
        """Return the numbers of the live routes whose match takes a message, in order."""
        return self.live(self._index.find(document))

    def live(self, numbers: Sequence[int]) -> Sequence[int]:
        """Return the numbers of routes that deliver what they take."""
        if not self._shadows:
            return numbers
        return [number for number in numbers if number not in self._shadows]


@attrs.define(eq=False, slots=False, kw_only=True)
class RouteTables:
    """Route tables by topic, as this process knows them."""

    _rows: RouteRows
    _fences: RouteFences
    _tables: BoundedCache[LogId, RouteTable] = attrs.field(
        factory=lambda: BoundedCache(limits.ROUTE_TABLES_CACHED_MAX), init=False
    )
    _refreshes: SingleFlight[LogId, RouteTable] = attrs.field(factory=SingleFlight, init=False)
    _repairs: SingleFlight[LogId, None] = attrs.field(factory=SingleFlight, init=False)

    def cached(self, stream_id: LogId) -> RouteTable | None:
        """Return the table as this process knows it; None if it was not read.

        A table without routes must be read as well: it would agree with a log that lost its token.
        """
        return self._tables.get(stream_id)

    async def refresh(self, topic: TopicName, stream_id: LogId) -> RouteTable:
        """Return the table with all changes answered before this call. Raises TopicNotFound."""
        return await self._refreshes.run_fresh(stream_id, lambda: self._refresh(topic, stream_id))

    async def repair(self, topic: TopicName, stream_id: LogId, *, refused: int) -> RouteTable:
        """Return the present table after a log refused the token of a version.

        If that is the present version, its token is set on every log again first.
        """
        table = await self.refresh(topic, stream_id)
        if table.version != refused:
            return table
        await self._repairs.run(stream_id, lambda: self._fences.repair(topic, stream_id))
        return await self.refresh(topic, stream_id)

    async def close(self) -> None:
        """Stop the reads and repairs in progress."""
        await self._refreshes.close()
        await self._repairs.close()

    async def _refresh(self, topic: TopicName, stream_id: LogId) -> RouteTable:
        table = self._tables.get(stream_id) or RouteTable()
        changes = await self._changes(topic, stream_id, table.version)
        if not table.accepts(changes):
            table, changes = RouteTable(), await self._changes(topic, stream_id, 0)
        table.apply(changes)
        self._tables[stream_id] = table
        return table

    async def _changes(self, topic: TopicName, stream_id: LogId, since: int) -> RouteChanges:
        changes = await self._rows.changes(topic, stream_id, since)
        if changes is None:
            raise no_topic(topic)
        return changes
