"""Queues and webhooks of routes to URLs, by ranges of their names."""

from sqlalchemy.ext.asyncio import AsyncSession

from storage.domain.names import LogId, QueueName, RouteName, TopicName
from storage.postgres.database import CHANGES_CATALOG
from storage.postgres.definition_table import CHANNEL
from storage.postgres.queries import query
from storage.postgres.repository import Repository

_AFTER_EVERY_CHARACTER = "\x7f"  # names are printable ASCII


class RouteEndpointRows(Repository):
    """Queues of routes. Every method raises StorageUnavailable or StorageBusy."""

    async def unused(self, after: QueueName | None, limit: int) -> list[RouteName]:
        """Return routes that have a queue and no revision with a URL, after a queue."""
        namespace, name = ("", "") if after is None else (after.namespace, after.name)
        values = {"namespace": namespace, "name": name, "limit": limit}
        async with self._database.reading() as session:
            rows = await session.execute(query("unused_route_queues"), values)
            return [RouteName.of_endpoint(row.name, row.namespace) for row in rows]


async def delete_endpoint(
    session: AsyncSession, route: RouteName, now_ms: int
) -> dict[QueueName, LogId]:
    """Delete the queue and the webhook of a route; return the queue and its log."""
    name = route.endpoint
    return await _delete(session, route.topic.namespace, name, name, now_ms)


async def delete_endpoints(
    session: AsyncSession, topic: TopicName, now_ms: int
) -> dict[QueueName, LogId]:
    """Delete the queues and webhooks of a topic's routes; return the queues and their logs."""
    first = RouteName(topic, "0").endpoint.removesuffix("0")
    return await _delete(session, topic.namespace, first, first + _AFTER_EVERY_CHARACTER, now_ms)


async def _delete(
    session: AsyncSession, namespace: str, first: str, last: str, now_ms: int
) -> dict[QueueName, LogId]:
    names = {"namespace": namespace, "first": first, "last": last}
    await session.execute(query("delete_route_webhooks"), names)
    queues = {**names, "channel": CHANNEL, "now_ms": now_ms}
    rows = (await session.execute(query("delete_route_queues"), queues)).all()
    if rows:
        session.info[CHANGES_CATALOG] = True
    return {QueueName(row.name, namespace): row.log_id for row in rows}
