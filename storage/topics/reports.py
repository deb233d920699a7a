"""Reports on topics: progress of routes, published messages, and results of matches."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

import attrs

from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import (
    MessageNotFound,
    MillstreamError,
    OffsetExpired,
    OffsetOutOfRange,
    ShardNotFound,
    StreamRecreated,
)
from storage.domain.filters.documents import Document
from storage.domain.filters.matches import FailedCondition
from storage.domain.names import RouteName, TopicName
from storage.domain.streams.lineage import have_passed
from storage.domain.streams.stream import LogRecord, ReadFrom, ShardState, Stream
from storage.domain.topics.message_id import TopicMessageId
from storage.domain.topics.read_match import HistoryMatch, StreamRoutes
from storage.domain.topics.report import (
    MemberProgress,
    MessageRoute,
    MessageRouteState,
    RouteExplanation,
    RouteNumbers,
    RouteProgress,
    TopicStatus,
)
from storage.domain.topics.route import UNMATCHED, TopicRoute
from storage.domain.topics.routing import TopicPositions
from storage.domain.topics.targets.branch import RouteBranch
from storage.domain.topics.topic import routes_of
from storage.postgres.repositories.topic_positions import TopicPositionRows
from storage.streams.read import RecordReader
from storage.topics.engine import Topics
from storage.topics.route_table import RouteTables
from storage.topics.routes import TopicRoutes

_Ages = dict[tuple[int, int], int]
"""Age in milliseconds of the message at a shard and an offset."""


@attrs.define(eq=False, slots=False, kw_only=True)
class TopicReports:
    """Reports on topics. Every verb raises TopicNotFound for one that does not exist."""

    _topics: Topics
    _routes: TopicRoutes
    _tables: RouteTables
    _positions: TopicPositionRows
    _reader: RecordReader
    _clock: Clock

    async def status(self, name: TopicName) -> TopicStatus:
        """Return counts of the topic, and of messages not yet examined for all routes."""
        [status] = await self.statuses([await self._topics.fresh(name)])
        return status

    async def statuses(self, topics: Sequence[Stream]) -> list[TopicStatus]:
        """Return the counts of several topics, with one read of Postgres for each table."""
        ids = [topic.stream_id for topic in topics]
        positions, numbers, with_history = await asyncio.gather(
            self._positions.read_all(ids),
            self._routes.numbers(topics),
            self._routes.with_history(topics),
        )
        return await asyncio.gather(
            *(
                self._status(
                    topic,
                    numbers.get(topic.stream_id, RouteNumbers()),
                    positions[topic.stream_id].shards,
                    _behind(positions[topic.stream_id], with_history.get(topic.stream_id, ())),
                )
                for topic in topics
            )
        )

    async def _status(
        self,
        stream: Stream,
        numbers: RouteNumbers,
        positions: Mapping[int, int],
        behind: Iterable[Mapping[int, int]],
    ) -> TopicStatus:
        states = await self._reader.shards(stream.name, stream.stream_id)
        lags = _lowest(_lags(stream, one, states) for one in (positions, *behind))
        ages = await self._ages(stream, set(lags.items()))
        return TopicStatus(
            shards=states,
            routes=numbers.routes,
            paused_routes=numbers.paused,
            lag_messages=_messages(lags, states),
            lag_ms=max(ages.values(), default=0),
        )

    async def progress(self, name: RouteName) -> RouteProgress:
        """Return the progress of a route. Raises RouteNotFound."""
        route = await self._routes.get(name)
        [progress] = await self.progress_of(name.topic, [route])
        return progress

    async def progress_of(
        self, name: TopicName, routes: Sequence[TopicRoute]
    ) -> list[RouteProgress]:
        """Return the progress of some routes of a topic."""
        stream = await self._topics.fresh(name)
        positions = await self._positions.read(stream.stream_id)
        states = await self._reader.shards(stream.name, stream.stream_id)
        lags = {
            branch.own_key: _lags(stream, _positions_of(route, branch, positions), states)
            for route in routes
            for branch in route.branches
        }
        ages = await self._ages(stream, {place for each in lags.values() for place in each.items()})

        def lag_of(*branches: RouteBranch) -> dict[str, int]:
            lag = _lowest(lags[branch.own_key] for branch in branches)
            lag_ms = max((ages[place] for place in lag.items()), default=0)
            return {"lag_messages": _messages(lag, states), "lag_ms": lag_ms}

        return [
            RouteProgress(
                route=route,
                members=[
                    MemberProgress(member, **lag_of(branch))
                    for branch in route.branches
                    if (member := route.member_of(branch)) is not None
                ],
                **lag_of(*route.branches),
            )
            for route in routes
        ]

    async def lagging(self, namespace: str) -> list[RouteProgress]:
        """Return the progress of routes that are behind their router, failing ones first.

        At most LAGGING_ROUTES_MAX. A topic that cannot be read is left out.
        """
        topics: dict[TopicName, list[TopicRoute]] = {}
        for route in await self._routes.lagging(namespace):
            topics.setdefault(route.name.topic, []).append(route)
        reports = await asyncio.gather(*(self._progress_or_none(*one) for one in topics.items()))
        return [progress for report in reports for progress in report]

    async def _progress_or_none(
        self, name: TopicName, routes: Sequence[TopicRoute]
    ) -> Sequence[RouteProgress]:
        try:
            return await self.progress_of(name, routes)
        except MillstreamError:
            return ()

    async def _ages(self, stream: Stream, places: set[tuple[int, int]]) -> _Ages:
        """Return the age of the message at each shard and offset; 0 if it has expired."""
        now_ms = self._clock.now_ms()
        ages: _Ages = {}
        for shard, offset in places:
            read = await self._reader.read_shard(
                stream.name,
                shard,
                ReadFrom(offset=offset),
                records_max=1,
                bytes_max=1,
                stream_id=stream.stream_id,
                skip_expired=True,
            )
            first = read.records[0].arrival_ms if read.records else now_ms
            ages[shard, offset] = max(0, now_ms - first)
        return ages

    # One message

    async def message(self, name: TopicName, message_id: TopicMessageId) -> LogRecord:
        """Return a published message. Raises MessageNotFound."""
        await self._topics.get(name)
        where = ReadFrom(offset=message_id.offset)
        try:
            read = await self._reader.read_one(
                name.stream, message_id.shard, where, message_id.stream_id
            )
        except (ShardNotFound, OffsetExpired, OffsetOutOfRange, StreamRecreated):
            raise _no_message(name) from None
        if not read.records or read.records[0].offset != message_id.offset:
            raise _no_message(name)
        return read.records[0]

    async def routes_of_message(
        self, name: TopicName, message_id: TopicMessageId
    ) -> list[MessageRoute]:
        """Return the routes that take a published message, and its state for each.

        Raises MessageNotFound.
        """
        message = await self.message(name, message_id)
        stream = await self._topics.fresh(name)
        with_history = (await self._routes.with_history([stream])).get(stream.stream_id, ())
        numbers = routes_of(message.record.headers)
        if name.is_of_stream:
            revisions = _taking_record(stream, with_history, message_id.shard, message)
        else:
            revisions = await self._routes.of_numbers(name, numbers)
        for route in with_history:
            if _takes_earlier(route, stream, message_id, message):
                revisions[route.number] = route
        positions = await self._positions.read(stream.stream_id)
        return [
            _message_route(
                number,
                revisions.get(number),
                stream,
                positions,
                message_id=message_id,
                message=message,
            )
            for number in sorted({*numbers, *revisions})
        ]

    async def explain(
        self, name: TopicName, document: Document, route: str = "", place: str = ""
    ) -> AsyncIterator[RouteExplanation]:
        """Yield what each route, or one of them, makes of a message, by name.

        `place`: id of a published message. Raises RouteNotFound.
        """
        if route:
            routes = [await self._routes.get(RouteName(name, route))]
            for explanation in await self._explanations(name, routes, document, place):
                yield explanation
            return
        after = ""
        while routes := await self._routes.list(name, after=after, limit=limits.PAGE_ITEMS_MAX):
            for explanation in await self._explanations(name, routes, document, place):
                yield explanation
            after = routes[-1].name.route

    async def _explanations(
        self, name: TopicName, routes: Sequence[TopicRoute], document: Document, place: str
    ) -> list[RouteExplanation]:
        others: Sequence[str] = ()
        if any(route.spec.takes_unmatched for route in routes):
            others = await self._live_matches(name, document)
        return [_explanation(route, document, others, place) for route in routes]

    async def _live_matches(self, name: TopicName, document: Document) -> list[str]:
        """Return the names of the first live routes whose match takes a message."""
        stream = await self._topics.get(name)
        table = await self._tables.refresh(name, stream.stream_id)
        numbers = table.matching(document)[: limits.EXPLAINED_ROUTES_MAX]
        routes = await self._routes.of_numbers(name, numbers)
        return [route.name.route for route in routes.values()]


def _lags(
    stream: Stream, positions: Mapping[int, int], states: Sequence[ShardState]
) -> dict[int, int]:
    """Return the first offset that is not yet examined in each shard that has one."""
    return {
        state.shard.index: max(positions.get(state.shard.index, 0), state.start)
        for state in states
        if state.start < state.next
        and not have_passed(stream, positions, {state.shard.index: state.next})
    }


def _messages(lags: Mapping[int, int], states: Sequence[ShardState]) -> int:
    ends = {state.shard.index: state.next for state in states}
    return sum(ends[shard] - offset for shard, offset in lags.items())


def _lowest(lags: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """Return the lowest offset of each shard that has one."""
    lowest: dict[int, int] = {}
    for each in lags:
        for shard, offset in each.items():
            lowest[shard] = min(lowest.get(shard, offset), offset)
    return lowest


def _positions_of(
    route: TopicRoute, branch: RouteBranch, positions: TopicPositions
) -> Mapping[int, int]:
    """Return the positions of a branch's copies, of a history that is not begun its start."""
    if route.unread_history is not None and branch.own_key not in positions.lags:
        return route.unread_history.start
    return positions.of(branch)


def _behind(
    positions: TopicPositions, with_history: Iterable[TopicRoute]
) -> list[Mapping[int, int]]:
    """Return the positions of buffers behind the router, and those of unread histories."""
    starts = (
        route.unread_history.start
        for route in with_history
        if route.unread_history is not None and not route.removed
        if any(branch.own_key not in positions.lags for branch in route.branches)
    )
    return [*positions.lags.values(), *starts]


def _message_route(
    number: int,
    route: TopicRoute | None,
    stream: Stream,
    positions: TopicPositions,
    *,
    message_id: TopicMessageId,
    message: LogRecord,
) -> MessageRoute:
    if route is None or route.removed:
        return MessageRoute(number, MessageRouteState.REMOVED, route)
    if route.spec.is_shadow:
        return MessageRoute(number, MessageRouteState.SHADOW, route)
    branch = route.branch_of(message_id.shard, message_id.offset, message.record)
    end = {message_id.shard: message_id.offset + 1}
    is_done = have_passed(stream, _positions_of(route, branch, positions), end)
    state = MessageRouteState.FINISHED if is_done else MessageRouteState.WAITING
    return MessageRoute(number, state, route, route.member_of(branch))


def _taking_record(
    stream: Stream, revisions: Iterable[TopicRoute], shard: int, record: LogRecord
) -> dict[int, TopicRoute]:
    """Return the revisions that take a stream's record. Each of them has a history."""
    routes = StreamRoutes(stream.name)
    routes.update(revisions)
    return {route.number: route for route in routes.of(shard, record)}


def _takes_earlier(
    route: TopicRoute, stream: Stream, message_id: TopicMessageId, message: LogRecord
) -> bool:
    """Return whether a route takes a message as a part of its history."""
    history = route.history
    if history is None or not history.has(stream, message_id.shard, message_id.offset):
        return False
    return HistoryMatch(route).takes(message.record)


def _explanation(
    route: TopicRoute, document: Document, others: Sequence[str], place: str
) -> RouteExplanation:
    """Return what a route makes of a message, which some other live routes take."""
    failed = _failed(route, document, others)
    member = None if failed else route.spec.member_for(document, place)
    return RouteExplanation(route, failed, member)


def _failed(
    route: TopicRoute, document: Document, others: Sequence[str]
) -> Sequence[FailedCondition]:
    if not route.spec.takes_unmatched:
        return route.spec.compile_match().explain(document)
    return [FailedCondition(0, "routes", UNMATCHED, [*others])] if others else ()


def _no_message(name: TopicName) -> MessageNotFound:
    return MessageNotFound(f"Topic '{name.name}' does not have the message, or no longer.")
