"""Repository of the routes of topics: revisions, and the version of each route table."""

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import ColumnElement, Row, delete, exists, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased
from sqlmodel import col

from storage.domain.errors import StorageUnavailable
from storage.domain.names import QUEUE_PREFIX, TOPIC_PREFIX, LogId, RouteName, StreamName, TopicName
from storage.domain.streams.stream import Stream
from storage.domain.topics.report import RouteNumbers
from storage.domain.topics.route import RouteHistory, RouteSpec, RouteTarget, TopicRoute
from storage.postgres.queries import query
from storage.postgres.repository import Repository
from storage.postgres.rows import rows_of, struct_of
from storage.postgres.tables import RouteLagRow, RouteRow, StreamRow, TopicShardRow

_STREAM_FIELDS = ("topic", "stream", "spread")
"""Fields of targets that can be streams."""


class RouteChanges(NamedTuple):
    """Version of a topic's route table, and the revisions changed since another one.

    `current`: number of current routes. Revisions that have ended are forgotten in time, so a reader that missed the end of some
    has more than that.
    """

    version: int
    routes: Sequence[TopicRoute]
    current: int


class LockedRoutes:
    """Route table of a topic, locked until the transaction ends; publishers wait to read it."""

    def __init__(self, session: AsyncSession, topic: TopicName, table: Row[Any]) -> None:
        self.session = session
        self._topic = topic
        self._stream_id: LogId = table.stream_id
        self.version: int = table.routes_version

    async def find(self, route: str) -> TopicRoute | None:
        """Return the current revision of a route."""
        rows = await self.session.execute(_current_of(self._stream_id, route))
        return next(iter(_routes(self._topic, rows)), None)

    async def count(self) -> int:
        """Return the number of routes."""
        return await _count(self.session, self._stream_id)

    async def count_history_readers(self) -> int:
        """Return the number of targets for which revisions have not read their history to its end."""
        unread = (col(RouteRow.history).is_not(None), ~col(RouteRow.history_done))
        statement = _of(self._stream_id).where(*unread, ~col(RouteRow.removed))
        routes = _routes(self._topic, await self.session.execute(statement))
        return sum(len(route.branches) for route in routes if route.unread_history is not None)

    async def count_unindexed(self) -> int:
        """Return the number of routes with an SQL condition alone."""
        has_where = col(RouteRow.spec)["match"].astext.contains('"where"')
        is_current = col(RouteRow.until_offsets).is_(None)
        rows = await self.session.execute(_of(self._stream_id).where(is_current, has_where))
        return sum(route.spec.is_unindexed for route in _routes(self._topic, rows))

    async def advance(self, version: int) -> None:
        """Set the version of the table."""
        self.version = version
        row = col(StreamRow.stream_id) == self._stream_id
        await self.session.execute(update(StreamRow).where(row).values(routes_version=version))

    async def begin_at(self, positions: Mapping[int, int]) -> None:
        """Let the router of a stream begin at positions, instead of where it was for other routes."""
        for table in (TopicShardRow, RouteLagRow):
            await self.session.execute(delete(table).where(col(table.stream_id) == self._stream_id))
        rows = [
            {"stream_id": self._stream_id, "shard": shard, "position": position, "fence": 0}
            for shard, position in positions.items()
        ]
        await self.session.execute(insert(TopicShardRow), rows)

    async def has_revisions(self) -> bool:
        """Return whether there is a revision, current or with messages to deliver."""
        rows = await self.session.execute(_of(self._stream_id).limit(1))
        return rows.first() is not None

    async def insert(self, route: TopicRoute) -> None:
        """Store a new revision."""
        values = _values(route) | {"created_at_ms": route.created_at_ms, "name": route.name.route}
        ids = {
            "stream_id": self._stream_id,
            "number": route.number,
            "history": None if route.history is None else msgspec.to_builtins(route.history),
        }
        row = values | ids | {"table_version": self.version}
        await self.session.execute(insert(RouteRow).values(**row))

    async def update(self, route: TopicRoute) -> None:
        """Store a change of a revision."""
        row = (col(RouteRow.stream_id) == self._stream_id, col(RouteRow.number) == route.number)
        values = _values(route) | {"table_version": self.version}
        await self.session.execute(update(RouteRow).where(*row).values(**values))

    async def remove_former(self, route: str) -> None:
        """Mark former revisions of a route as removed: what they have not delivered is dropped."""
        of_route = (col(RouteRow.stream_id) == self._stream_id, col(RouteRow.name) == route)
        former = update(RouteRow).where(*of_route, col(RouteRow.removed).is_(False))
        values = {"removed": True, "table_version": self.version}
        await self.session.execute(former.values(**values))

    async def has_url(self, route: str) -> bool:
        """Return whether a revision of the route posts to a URL."""
        has_url = col(RouteRow.spec)["target"]["url"].astext.is_not(None)
        of_route = (col(RouteRow.name) == route, col(RouteRow.removed).is_(False), has_url)
        rows = await self.session.execute(_of(self._stream_id).where(*of_route))
        return rows.first() is not None


class RouteRows(Repository):
    """Routes of all topics. Every method raises StorageUnavailable or StorageBusy."""

    async def changes(self, topic: TopicName, stream_id: LogId, since: int) -> RouteChanges | None:
        """Return the changes after version `since`, waiting for a change; None without the topic."""
        async with self._database.writing(unknown=StorageUnavailable) as session:
            table = await _lock(session, "share_route_table", stream_id)
            if table is None:
                return None
            changed = _of(stream_id).where(col(RouteRow.table_version) > since)
            statement = changed.order_by(col(RouteRow.number))
            routes = _routes(topic, await session.execute(statement))
            return RouteChanges(table.routes_version, routes, await _count(session, stream_id))

    async def find(self, name: RouteName, stream_id: LogId) -> TopicRoute | None:
        """Return the current revision of a route."""
        async with self._database.reading() as session:
            rows = await session.execute(_current_of(stream_id, name.route))
            return next(iter(_routes(name.topic, rows)), None)

    async def page(
        self, topic: TopicName, stream_id: LogId, prefix: str, after: str, limit: int
    ) -> list[TopicRoute]:
        """Return the current routes of a topic with a prefix by name, strictly after `after`."""
        name = col(RouteRow.name)
        is_current = col(RouteRow.until_offsets).is_(None)
        listed = (is_current, name > after, name.startswith(prefix, autoescape=True))
        statement = _of(stream_id).where(*listed).order_by(name).limit(limit)
        async with self._database.reading() as session:
            return _routes(topic, await session.execute(statement))

    async def sources(self, namespace: str) -> list[StreamName]:
        """Return the streams of a namespace that have routes and are not topics, by name."""
        return [name for name, _ in await self._sources(col(StreamRow.namespace) == namespace)]

    async def source_ids(self) -> set[LogId]:
        """Return the ids of streams with revisions to deliver that are not topics."""
        return {stream_id for _, stream_id in await self._sources()}

    async def _sources(self, *conditions: ColumnElement[bool]) -> list[tuple[StreamName, LogId]]:
        name, stream_id = col(StreamRow.name), col(StreamRow.stream_id)
        has_routes = exists().where(col(RouteRow.stream_id) == stream_id)
        is_source = ~name.startswith(TOPIC_PREFIX) & (col(StreamRow.routes_version) > 0)
        statement = (
            select(col(StreamRow.namespace), name, stream_id)
            .where(is_source, col(StreamRow.deleted_at_ms).is_(None), has_routes, *conditions)
            .order_by(name)
        )
        async with self._database.reading() as session:
            rows = await session.execute(statement)
            return [(StreamName(stream, namespace), id_) for namespace, stream, id_ in rows]

    async def numbers(self, stream_ids: Sequence[LogId]) -> dict[LogId, RouteNumbers]:
        """Return the numbers of routes of those topics that have any."""
        stream_id = col(RouteRow.stream_id)
        is_current = col(RouteRow.until_offsets).is_(None)
        is_paused = col(RouteRow.spec)["paused"].as_boolean()
        counts = select(stream_id, func.count(), func.count().filter(is_paused))
        statement = counts.where(stream_id.in_(stream_ids), is_current).group_by(stream_id)
        async with self._database.reading() as session:
            rows = await session.execute(statement)
            return {topic: RouteNumbers(routes, paused) for topic, routes, paused in rows}

    async def stream_targets(self, of: TopicName) -> list[tuple[str, str]]:
        """Return the pairs of source and target stream of all routes of a topic's namespace.

        That of a queue is the one of the topic that takes its messages, if there is one or it is this topic.
        """
        target, taking = col(RouteRow.spec)["target"], aliased(StreamRow)
        queue_stream = f"{TOPIC_PREFIX}{QUEUE_PREFIX}" + target["queue"].astext
        has_streams = or_(
            *(target[kind].astext.is_not(None) for kind in _STREAM_FIELDS),
            exists().where(
                col(taking.namespace) == of.namespace,
                col(taking.name) == queue_stream,
                col(taking.deleted_at_ms).is_(None),
            ),
            queue_stream == of.stream.name,
        )
        is_current = col(RouteRow.until_offsets).is_(None)
        pairs = (
            select(col(StreamRow.name), target)
            .join(RouteRow, col(RouteRow.stream_id) == col(StreamRow.stream_id))
            .where(col(StreamRow.namespace) == of.namespace, is_current, has_streams)
            .distinct()
        )
        async with self._database.reading() as session:
            rows = (await session.execute(pairs)).all()
        return [
            (source, stream.name)
            for source, stored in rows
            for stream in msgspec.convert(stored, RouteTarget).target_streams(of.namespace)
        ]

    async def of_numbers(
        self, topic: TopicName, stream_id: LogId, numbers: Sequence[int]
    ) -> list[TopicRoute]:
        """Return the revisions with these numbers that are not forgotten, by number."""
        number = col(RouteRow.number)
        statement = _of(stream_id).where(number.in_(numbers)).order_by(number)
        async with self._database.reading() as session:
            return _routes(topic, await session.execute(statement))

    async def with_history(self, topics: Sequence[Stream]) -> dict[LogId, list[TopicRoute]]:
        """Return the revisions with a history, by topic, that are not forgotten."""
        names = {topic.stream_id: topic.name.topic for topic in topics}
        of_topics = col(RouteRow.stream_id).in_(names)
        statement = rows_of(RouteRow).where(of_topics, col(RouteRow.history).is_not(None))
        routes: dict[LogId, list[TopicRoute]] = {}
        async with self._database.reading() as session:
            for row in await session.execute(statement):
                routes.setdefault(row.stream_id, []).append(_route(names[row.stream_id], row))
        return routes

    async def end_history(self, stream_id: LogId, number: int) -> None:
        """Store that the router has read the history of a revision."""
        row = (col(RouteRow.stream_id) == stream_id, col(RouteRow.number) == number)
        async with self._database.writing(unknown=StorageUnavailable) as session:
            await session.execute(update(RouteRow).where(*row).values(history_done=True))

    async def lagging(self, namespace: str, limit: int) -> list[TopicRoute]:
        """Return current routes with a buffer behind the router, not paused, failing ones first."""
        values = {"namespace": namespace, "limit": limit}
        async with self._database.reading() as session:
            rows = (await session.execute(query("lagging_routes"), values)).all()
        return [_route(StreamName(row.topic, namespace).topic, row) for row in rows]

    async def ended(self, topic: TopicName, stream_id: LogId) -> list[TopicRoute]:
        """Return the revisions that have ended and are not forgotten yet."""
        statement = _of(stream_id).where(col(RouteRow.until_offsets).is_not(None))
        async with self._database.reading() as session:
            return _routes(topic, await session.execute(statement))

    async def delete_ended(self, stream_id: LogId, numbers: Iterable[int]) -> None:
        """Delete revisions that have ended and received everything."""
        row = (col(RouteRow.stream_id) == stream_id, col(RouteRow.number).in_(list(numbers)))
        ended = col(RouteRow.until_offsets).is_not(None)
        async with self._database.writing(unknown=StorageUnavailable) as session:
            await session.execute(delete(RouteRow).where(*row, ended))

    @asynccontextmanager
    async def repairing(
        self, topic: TopicName, stream_id: LogId
    ) -> AsyncGenerator[LockedRoutes | None]:
        """Lock the table of a topic, to change the fences of its logs; None without the topic."""
        async with self._database.writing(unknown=StorageUnavailable) as session:
            yield await lock_routes(session, topic, stream_id)


async def lock_routes(
    session: AsyncSession, topic: TopicName, stream_id: LogId
) -> LockedRoutes | None:
    """Lock the route table of a topic in a transaction; None for a deleted topic."""
    table = await _lock(session, "lock_route_table", stream_id)
    return None if table is None else LockedRoutes(session, topic, table)


async def _lock(session: AsyncSession, statement: str, stream_id: LogId) -> Row[Any] | None:
    rows = await session.execute(query(statement), {"stream_id": stream_id})
    return rows.one_or_none()


async def _count(session: AsyncSession, stream_id: LogId) -> int:
    is_current = col(RouteRow.until_offsets).is_(None)
    of_topic = col(RouteRow.stream_id) == stream_id
    statement = select(func.count()).select_from(RouteRow).where(of_topic, is_current)
    return int(await session.scalar(statement) or 0)


def _of(stream_id: LogId) -> Any:
    return rows_of(RouteRow).where(col(RouteRow.stream_id) == stream_id)


def _current_of(stream_id: LogId, route: str) -> Any:
    is_current = col(RouteRow.until_offsets).is_(None)
    return _of(stream_id).where(is_current, col(RouteRow.name) == route)


def _routes(topic: TopicName, rows: Iterable[Row[Any]]) -> list[TopicRoute]:
    return [_route(topic, row) for row in rows]


def _route(topic: TopicName, row: Row[Any]) -> TopicRoute:
    return struct_of(
        TopicRoute,
        row,
        name=RouteName(topic, row.name),
        spec=msgspec.convert(row.spec, RouteSpec),
        until=None if row.until_offsets is None else dict(row.until_offsets),
        history=msgspec.convert(row.history, RouteHistory | None, strict=False),
    )


def _values(route: TopicRoute) -> dict[str, Any]:
    return {
        "spec": msgspec.to_builtins(route.spec),
        "version": route.version,
        "changed_at_ms": route.changed_at_ms,
        "until_offsets": None
        if route.until is None
        else [list(one) for one in route.until.items()],
        "removed": route.removed,
    }
