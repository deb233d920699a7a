"""Revisions of a topic's routes as its router knows them."""

from collections.abc import Iterable, Iterator, Sequence

import attrs
from msgspec.structs import replace

from storage.bootstrap import Storage
from storage.concurrency.bounded_cache import BoundedCache
from storage.domain import limits
from storage.domain.errors import StreamNotFound
from storage.domain.streams.stream import LogRecord, Stream
from storage.domain.topics.read_match import StreamRoutes
from storage.domain.topics.route import TopicRoute
from storage.domain.topics.targets.branch import RouteBranch
from storage.domain.topics.topic import packed_routes_of, unpack_routes


@attrs.define(eq=False)
class RouteRevisions:
    """Revisions of a topic's routes: current ones, and ended ones with messages to receive.

    `of_stream`: the same as they take records of a stream; None for a topic, whose messages have the numbers of their routes.
    """

    _storage: Storage
    _stream: Stream
    version: int = attrs.field(default=0, init=False)
    by_number: dict[int, TopicRoute] = attrs.field(factory=dict, init=False)
    of_stream: StreamRoutes | None = attrs.field(init=False)
    _of_packed: BoundedCache[bytes, Sequence[TopicRoute]] = attrs.field(
        factory=lambda: BoundedCache(limits.ROUTER_ROUTE_SETS_CACHED_MAX), init=False
    )

    def __attrs_post_init__(self) -> None:
        name = self._stream.name
        self.of_stream = None if name.is_of_topic else StreamRoutes(name)

    async def refresh(self) -> list[TopicRoute]:
        """Read the changed revisions, and return them. Raises StreamNotFound for a deleted topic."""
        topic, stream_id = self._stream.name.topic, self._stream.stream_id
        changes = await self._storage.topic_routing.routes.changes(topic, stream_id, self.version)
        if changes is None:
            raise StreamNotFound
        self.version = changes.version
        self._of_packed.clear()
        self.by_number |= {route.number: route for route in changes.routes}
        if self.of_stream is not None:
            self.of_stream.update(changes.routes)
        return [*changes.routes]

    def has_routes_of(self, records: Sequence[LogRecord]) -> bool:
        """Return whether no record can have a route of a later version: never so of a stream."""
        if self.of_stream is not None:
            return not records
        return all(self._has_routes_in(packed_routes_of(one.record.headers)) for one in records)

    def _has_routes_in(self, packed: bytes | None) -> bool:
        return (
            packed is None
            or packed in self._of_packed
            or max(unpack_routes(packed), default=0) <= self.version
        )

    def of(self, shard: int, entry: LogRecord) -> Sequence[TopicRoute]:
        """Return the revisions that take a record, except those that were deleted."""
        if self.of_stream is not None:
            return self.of_stream.of(shard, entry)
        packed = packed_routes_of(entry.record.headers)
        if packed is None:
            return ()
        routes = self._of_packed.get(packed)
        if routes is None:
            numbers = unpack_routes(packed)
            routes = [self.by_number[number] for number in numbers if number in self.by_number]
            self._of_packed[packed] = routes
        return routes

    def present(self, route: TopicRoute) -> TopicRoute:
        """Return the revision with its present settings."""
        return self.by_number.get(route.number, route)

    def is_removed(self, route: TopicRoute) -> bool:
        """Return whether the route has been deleted."""
        current = self.by_number.get(route.number)
        return current is None or current.removed

    def ended(self) -> Iterable[TopicRoute]:
        """Yield the revisions that take no more messages."""
        return [route for route in self.by_number.values() if route.until is not None]

    def paused(self) -> list[TopicRoute]:
        """Return the revisions of routes that are paused, also those that have ended."""
        names = {
            one.name for one in self.by_number.values() if one.until is None and one.spec.paused
        }
        return [one for one in self.by_number.values() if one.name in names and not one.removed]

    def branches(self) -> Iterator[RouteBranch]:
        """Yield the branches of all revisions."""
        for route in self.by_number.values():
            yield from route.branches

    def has_sibling(self, branch: RouteBranch) -> bool:
        """Return whether another revision has the branch's target."""
        others = (one for one in self.branches() if one.number != branch.number)
        return any(one.target_key == branch.target_key for one in others)

    def has_target(self, key: str) -> bool:
        """Return whether a revision has the target with a key."""
        return any(branch.target_key == key for branch in self.branches())

    def with_unread_history(self) -> list[TopicRoute]:
        """Return the revisions whose history is not read to its end."""
        routes = self.by_number.values()
        return [one for one in routes if one.unread_history is not None and not one.removed]

    def has_unread_history(self, number: int) -> bool:
        """Return whether the history of a revision is not read to its end."""
        return any(route.number == number for route in self.with_unread_history())

    def note_history_done(self, route: TopicRoute) -> None:
        """Note that the history of a revision is read to its end."""
        self.by_number[route.number] = replace(self.present(route), history_done=True)
        self._of_packed.clear()

    def discard(self, number: int) -> None:
        """Leave out a revision that has received everything."""
        del self.by_number[number]
        self._of_packed.clear()
        if self.of_stream is not None:
            self.of_stream.discard(number)
