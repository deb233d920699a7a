"""Routes of topics: create, replace, pause, delete, list.

    put ─▶ lock the route table ─▶ next version ─▶ set its token on every log: the cut ─▶ rows ─▶ commit

A message accepted before the cut was matched with the former table, one accepted later with the new one. The cut is also where
the history of a route that starts in the past ends, which its router matches. A change that fails or
dies leaves a token that Postgres does not have, and the next publisher replaces it (`storage.topics.route_table`).

The records of a stream that is not a topic have no decision: its logs get no token, the cut is at their next offsets, and the
router matches each record with the revisions that were current when the stream got it (ADR 0099).
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple, Unpack

import attrs
from msgspec.structs import replace

from storage.catalog.catalog import Catalog
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.definitions import (
    PutOptions,
    check_version,
    could_be_name,
    next_version,
    page_limit,
)
from storage.domain.errors import (
    AlreadyExists,
    InvalidCursor,
    RouteCycle,
    RouteNotFound,
    StreamNotFound,
    TooManyRoutes,
    ValidationFailed,
)
from storage.domain.names import LogId, RouteName, StreamName, TopicName
from storage.domain.streams.start_at import StartAt
from storage.domain.streams.stream import Stream
from storage.domain.topics.read_match import check_unmatched
from storage.domain.topics.report import RouteNumbers
from storage.domain.topics.route import RouteHistory, RouteSpec, TopicRoute
from storage.domain.webhooks import Secret
from storage.postgres.repositories.routes import LockedRoutes, RouteRows, lock_routes
from storage.streams.read import RecordReader
from storage.streams.seek import positions_since
from storage.topics.endpoints import RouteEndpoints
from storage.topics.engine import Topics
from storage.topics.fences import RouteFences
from storage.topics.of_topic import described, of_topic


class PutRoute(NamedTuple):
    """Route after a put, the one before, and the signing secret of a URL's new webhook."""

    definition: TopicRoute
    created: bool
    before: TopicRoute | None
    secret: Secret | None = None


@attrs.define(eq=False, slots=False, kw_only=True)
class TopicRoutes:
    """The routes of topics. Every verb raises TopicNotFound for a topic that does not exist."""

    _topics: Topics
    _catalog: Catalog
    _rows: RouteRows
    _fences: RouteFences
    _endpoints: RouteEndpoints
    _reader: RecordReader
    _clock: Clock

    async def put(
        self, name: RouteName, spec: RouteSpec, **options: Unpack[PutOptions]
    ) -> PutRoute:
        """Create the route, or replace its configuration.

        Every matching message accepted after this returns is delivered, and none accepted before it was called; of a change, the
        former revision receives what was accepted for it. `paused` stays as it is. With a `start` other than LATEST, a new route also
        takes earlier messages. Raises ValidationFailed, PreconditionFailed, AlreadyExists, TooManyRoutes, SecretsOff.
        """
        dry_run, create_only = options.get("dry_run", False), options.get("create_only", False)
        spec.check()
        _check_source(name.topic, spec)
        await self._check_cycle(name.topic, spec)
        if not await self._topics.ensure_of_queue(name.topic, dry_run=dry_run):
            return PutRoute(_first_revision(name, spec, self._clock.now_ms()), True, None)
        history = await self._history_start(name.topic, spec)
        async with self._changing(name.topic) as (routes, stream):
            before = await routes.find(name.route)
            check_version(before, options.get("if_match"))
            if before is None:
                await _check_count(routes)
            elif not options.get("replace_pause", False):
                spec = replace(spec, paused=before.spec.paused)
            is_kept = not dry_run and not (create_only and before is not None)
            endpoint = await self._endpoints.put(routes.session, name, spec, dry_run=not is_kept)
            shown, spec = endpoint.redact(before), endpoint.spec
            if create_only and shown is not None:
                raise AlreadyExists("route", name.route, shown)
            if before is not None and before.spec == spec and not endpoint.is_changed:
                return PutRoute(before, False, shown)
            _check_start(before, spec)
            if spec.is_unindexed and not (before and before.spec.is_unindexed):
                await _check_unindexed(routes)
            after = self._revision(name, stream, routes, before, spec)
            if before is None and history is not None:
                await _check_history_readers(routes, after)
            if is_kept:
                after = await self._store(routes, stream, before, after, history)
            return PutRoute(after, before is None, shown, endpoint.secret)

    async def change(
        self,
        name: RouteName,
        change: Callable[[RouteSpec], RouteSpec],
        *,
        if_match: int | None = None,
    ) -> TopicRoute:
        """Replace the configuration by the result of a function, atomically, as `put` does."""
        async with self._changing(name.topic) as (routes, stream):
            before = await _existing(routes, name)
            check_version(before, if_match)
            spec = change(before.spec)
            spec.check()
            _check_source(name.topic, spec)
            await self._check_cycle(name.topic, spec)
            endpoint = await self._endpoints.put(routes.session, name, spec)
            return await self._replace(
                routes, stream, before, endpoint.spec, always=endpoint.is_changed
            )

    async def pause(
        self, name: RouteName, *, paused: bool, if_match: int | None = None
    ) -> TopicRoute:
        """Pause the route, or resume it; what it takes meanwhile waits in the topic's log.

        The webhook of a URL is paused and resumed with it.
        """
        async with self._changing(name.topic) as (routes, stream):
            before = await _existing(routes, name)
            check_version(before, if_match)
            if before.spec.target.url is not None:
                await self._endpoints.pause(routes.session, name, paused=paused)
            spec = replace(before.spec, paused=paused)
            return await self._replace(routes, stream, before, spec)

    async def delete(self, name: RouteName, *, if_match: int | None = None) -> TopicRoute:
        """Delete the route at once; what it has taken and not delivered is dropped."""
        async with self._changing(name.topic) as (routes, stream):
            before = await _existing(routes, name)
            check_version(before, if_match)
            ends = await self._cut(name.topic, routes, stream)
            await routes.update(replace(before, until=ends, removed=True))
            await routes.remove_former(name.route)
            deleted = await self._endpoints.delete(routes.session, name)
        await self._endpoints.release(deleted)
        return before

    async def wait_until_in_force(self, route: TopicRoute) -> bool:
        """Wait until no deliverer posts to a URL by former settings; return whether that is so."""
        if route.spec.target.url is None:
            return True
        return await self._endpoints.wait_until_in_force(route)

    async def get(self, name: RouteName) -> TopicRoute:
        """Return the route as Postgres has it now. Raises RouteNotFound."""
        stream_id = (await self._topic(name.topic)).stream_id
        route = await self._rows.find(name, stream_id)
        if route is None:
            raise _route_not_found(name)
        return route

    async def list(
        self,
        name: TopicName,
        *,
        prefix: str = "",
        after: str = "",
        limit: int = limits.PAGE_ITEMS_DEFAULT,
    ) -> list[TopicRoute]:
        """Return the topic's routes whose names begin with `prefix`, by name.

        Strictly after `after`; at most PAGE_ITEMS_MAX. Raises InvalidCursor.
        """
        if not could_be_name(after):
            raise InvalidCursor
        stream_id = (await self._topic(name)).stream_id
        if not could_be_name(prefix):
            return []
        return await self._rows.page(name, stream_id, prefix, after, page_limit(limit))

    async def numbers(self, topics: Sequence[Stream]) -> dict[LogId, RouteNumbers]:
        """Return the numbers of routes of those topics that have any, by stream."""
        return await self._rows.numbers([topic.stream_id for topic in topics])

    async def lagging(self, namespace: str) -> Sequence[TopicRoute]:
        """Return current routes behind their router that are not paused, failing ones first.

        At most LAGGING_ROUTES_MAX.
        """
        return await self._rows.lagging(namespace, limits.LAGGING_ROUTES_MAX)

    async def with_history(self, topics: Sequence[Stream]) -> dict[LogId, Sequence[TopicRoute]]:
        """Return the revisions that also take messages from before they were created, by stream."""
        return {**await self._rows.with_history(topics)}

    async def of_numbers(self, name: TopicName, numbers: Sequence[int]) -> dict[int, TopicRoute]:
        """Return the revisions with these numbers that are not forgotten."""
        stream_id = (await self._topic(name)).stream_id
        routes = await self._rows.of_numbers(name, stream_id, numbers)
        return {route.number: route for route in routes}

    async def _check_cycle(self, topic: TopicName, spec: RouteSpec) -> None:
        """Raise RouteCycle if the target leads back to the topic, by the routes of now.

        Two changes at the same time may still make a cycle; TOPIC_HOPS_MAX ends it.
        """
        target_streams = [
            stream
            for stream in spec.target.target_streams(topic.namespace)
            if stream == topic.stream or await self._may_lead_on(stream)
        ]
        if not target_streams:
            return
        targets: dict[str, set[str]] = {}
        for source, target in await self._rows.stream_targets(topic):
            targets.setdefault(source, set()).add(target)
        reached, pending = set[str](), [stream.name for stream in target_streams]
        while pending:
            if (current := pending.pop()) == topic.stream.name:
                raise RouteCycle(f"{described(topic)} would get its own messages.")
            if current not in reached:
                reached.add(current)
                pending += targets.get(current, ())

    async def _may_lead_on(self, stream: StreamName) -> bool:
        """Return whether a target can have routes itself; a queue has a topic of its own then."""
        if stream.topic.queue is None:
            return True
        try:
            await self._catalog.stream(stream)
        except StreamNotFound:
            return False
        return True

    async def _replace(
        self,
        routes: LockedRoutes,
        stream: Stream,
        before: TopicRoute,
        spec: RouteSpec,
        *,
        always: bool = False,
    ) -> TopicRoute:
        """Store the next version, unless the specification is the same and not `always`."""
        if before.spec == spec and not always:
            return before
        _check_start(before, spec)
        if spec.is_unindexed and not before.spec.is_unindexed:
            await _check_unindexed(routes)
        after = self._revision(before.name, stream, routes, before, spec)
        return await self._store(routes, stream, before, after)

    def _revision(
        self,
        name: RouteName,
        stream: Stream,
        routes: LockedRoutes,
        before: TopicRoute | None,
        spec: RouteSpec,
    ) -> TopicRoute:
        """Return the next revision; other messages or another target need a new number."""
        now_ms = self._clock.now_ms()
        if before is not None and spec.takes_as(before.spec):
            return next_version(before, now_ms, spec=spec)
        return TopicRoute(
            name=name,
            stream_id=stream.stream_id,
            number=routes.version + 1,
            spec=spec,
            version=1 if before is None else before.version + 1,
            created_at_ms=now_ms if before is None else before.created_at_ms,
            changed_at_ms=now_ms,
        )

    async def _store(
        self,
        routes: LockedRoutes,
        stream: Stream,
        before: TopicRoute | None,
        after: TopicRoute,
        history_start: dict[int, int] | None = None,
    ) -> TopicRoute:
        """Store a revision; return it with its number, the table's version that it begins with.

        A new route takes the history from `history_start` on. The revision of a stream's route has one, even if it is empty, since
        that ends where the revision begins.
        """
        topic = after.name.topic
        ends = await self._cut(topic, routes, stream)
        if topic.is_of_stream and not await routes.has_revisions():
            await routes.begin_at({one.index: ends[one.index] for one in stream.open_shards})
        if before is not None and before.number == after.number:
            await routes.update(after)
            return after
        history = None
        if before is not None:
            await routes.update(replace(before, until=ends))
        elif history_start is not None:
            history = _history(stream, history_start, ends)
        if topic.is_of_stream and history is None:
            history = replace(_history(stream, {}, ends), is_empty=True)
        after = replace(after, number=routes.version, history=history)
        await routes.insert(after)
        return after

    async def _cut(self, topic: TopicName, routes: LockedRoutes, stream: Stream) -> dict[int, int]:
        """Begin a version of the locked table; return the next offset of each shard.

        Of a stream, what was closed before ends at OFFSET_MAX.
        """
        if not topic.is_of_stream:
            return await self._fences.advance(routes, stream)
        await routes.advance(routes.version + 1)
        return _with_closed(stream, await self._reader.next_offsets(stream))

    async def _history_start(self, topic: TopicName, spec: RouteSpec) -> dict[int, int] | None:
        """Return the positions at which the history of a new route begins; None without any."""
        if spec.start is StartAt.LATEST:
            return None
        time_ms = spec.start_time_ms or 0
        async with of_topic(topic):
            return await positions_since(self._reader, self._catalog, topic.stream, time_ms)

    @asynccontextmanager
    async def _changing(self, topic: TopicName) -> AsyncGenerator[tuple[LockedRoutes, Stream]]:
        """Lock the topic's name and route table, and announce the topic's change."""
        changing = self._catalog.changing_stream(topic.stream)
        async with of_topic(topic), changing as (locked, stream):
            routes = await lock_routes(locked.session, topic, stream.stream_id)
            assert routes is not None, "its name is locked"
            version = routes.version
            yield routes, stream
            if routes.version != version:
                await locked.announce()

    async def _topic(self, name: TopicName) -> Stream:
        async with of_topic(name):
            return await self._catalog.stream(name.stream)


def _history(stream: Stream, start: dict[int, int], cut: Mapping[int, int]) -> RouteHistory:
    """Return the history up to a cut.

    A shard that was closed before belongs to it as a whole, one that is being opened up to the cut, as it may have messages.
    """
    until = _with_closed(stream, cut)
    return RouteHistory(start, {shard: end for shard, end in until.items() if end})


def _first_revision(name: RouteName, spec: RouteSpec, now_ms: int) -> TopicRoute:
    """Return a route as it would be the first of a topic, which does not exist."""
    return TopicRoute(
        name=name,
        stream_id="",
        number=1,
        spec=spec,
        version=1,
        created_at_ms=now_ms,
        changed_at_ms=now_ms,
    )


def _with_closed(stream: Stream, cut: Mapping[int, int]) -> dict[int, int]:
    return {**{shard.index: limits.OFFSET_MAX for shard in stream.shards}, **cut}


def _check_source(topic: TopicName, spec: RouteSpec) -> None:
    """Raise ValidationFailed for what a route of this source cannot have."""
    source, dead = topic.queue, spec.dead_letter_queue
    if source is not None and source.name == dead:
        detail = "The queue whose messages the route takes cannot be its dead-letter queue"
        raise ValidationFailed.at("/dead_letter_queue", detail, "not_allowed")
    if spec.start is not StartAt.LATEST:
        check_unmatched(topic, spec.match, "/start")


def _check_start(before: TopicRoute | None, spec: RouteSpec) -> None:
    """Raise ValidationFailed if the start of an existing route would change."""
    for field, pointer in (("start", "/start"), ("start_time_ms", "/start_time")):
        if before is not None and getattr(before.spec, field) != getattr(spec, field):
            detail = "Immutable: create another route, or replay messages to its target"
            raise ValidationFailed.at(pointer, detail, "immutable")


async def _check_count(routes: LockedRoutes) -> None:
    if await routes.count() >= limits.ROUTES_MAX:
        raise TooManyRoutes(f"A topic can have at most {limits.ROUTES_MAX} routes.")


async def _check_history_readers(routes: LockedRoutes, route: TopicRoute) -> None:
    """Raise TooManyRoutes if a new route's history has too many targets, with others."""
    others, own = await routes.count_history_readers(), len(route.branches)
    if others + own > limits.ROUTE_HISTORY_READERS_MAX:
        raise TooManyRoutes(
            f"The topic's routes read its history for {others} of at most {limits.ROUTE_HISTORY_READERS_MAX} targets "
            f"at a time, and this route has {own}; try again when another one has caught up."
        )


async def _check_unindexed(routes: LockedRoutes) -> None:
    if await routes.count_unindexed() >= limits.WHERE_ROUTES_MAX:
        raise TooManyRoutes(
            f"A topic can have at most {limits.WHERE_ROUTES_MAX} routes with a match that has only `where`; "
            "add a subject or a filter."
        )


async def _existing(routes: LockedRoutes, name: RouteName) -> TopicRoute:
    route = await routes.find(name.route)
    if route is None:
        raise _route_not_found(name)
    return route


def _route_not_found(name: RouteName) -> RouteNotFound:
    return RouteNotFound(f"{described(name.topic)} has no route '{name.route}'.")
