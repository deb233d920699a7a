"""Endpoints of routes to URLs: a queue that has the copies, and a webhook that posts them.

    put ──▶ route, queue and webhook in one transaction          delete ──▶ route, queue and webhook in one transaction
             └── another kind of target ──▶ the former revision is delivered ──▶ queue is empty ──▶ queue and webhook deleted

The route is what their owner has put; both follow from it. Only they themselves are paused, enabled, purged and so on (ADR 0096).
"""

from collections.abc import AsyncIterator
from typing import NamedTuple

import attrs
from msgspec.structs import replace
from sqlalchemy.ext.asyncio import AsyncSession

from storage.catalog.catalog import Catalog
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import QueueNotFound, StreamNotFound, ValidationFailed
from storage.domain.names import LogId, QueueName, RouteName
from storage.domain.queues.queue import QueueSpec
from storage.domain.topics.route import RouteSpec, RouteTarget, TopicRoute
from storage.domain.webhooks import Secret, Webhook
from storage.postgres.repositories.route_endpoints import (
    RouteEndpointRows,
    delete_endpoint,
)
from storage.postgres.repositories.routes import lock_routes
from storage.queues.engine import Queues
from storage.webhooks.engine import PutWebhook, Webhooks

DeletedQueues = dict[QueueName, LogId]
"""Deleted queues of routes, with their logs."""


class EndpointPut(NamedTuple):
    """Outcome of putting a route's endpoint.

    `spec`: the route's, as it is stored: with the names of headers, and no secret values. `webhook`: None unless the target is a URL.
    """

    spec: RouteSpec
    webhook: PutWebhook | None = None

    @property
    def is_changed(self) -> bool:
        """True if the webhook was created or changed."""
        if self.webhook is None:
            return False
        before = self.webhook.before
        return before is None or before.version != self.webhook.definition.version

    @property
    def secret(self) -> Secret | None:
        """Signing secret of a new webhook."""
        return None if self.webhook is None else self.webhook.secret

    def redact(self, route: TopicRoute | None) -> TopicRoute | None:
        """Return the route before the put, with markers for the secret values that it replaces."""
        if route is None or route.spec.target.url is None or self.webhook is None:
            return route
        before = self.webhook.before
        if before is None:
            return route
        target = _with_values_of(before, route.spec)
        return replace(route, spec=replace(route.spec, target=target))


def _with_values_of(webhook: Webhook, spec: RouteSpec) -> RouteTarget:
    """Return the target of a route with what its webhook shows of secret values."""
    hidden = webhook.spec
    return replace(spec.target, headers=hidden.headers, credentials=hidden.credentials)


@attrs.define(eq=False, slots=False, kw_only=True)
class RouteEndpoints:
    """Queues and webhooks of routes, changed in the transaction of their route's change."""

    _catalog: Catalog
    _queues: Queues
    _webhooks: Webhooks
    _rows: RouteEndpointRows
    _clock: Clock

    async def put(
        self, session: AsyncSession, name: RouteName, spec: RouteSpec, *, dry_run: bool = False
    ) -> EndpointPut:
        """Create the endpoint of a route to a URL, or give it the route's settings.

        Does nothing for another target. Raises ValidationFailed, SecretsOff.
        """
        if spec.target.url is None:
            return EndpointPut(spec)
        async with session.begin_nested() as savepoint:
            webhook = await self._put(session, name, spec)
            if dry_run:
                await savepoint.rollback()
        target = _with_values_of(webhook.definition, spec)
        return EndpointPut(replace(spec, target=target), webhook)

    async def _put(self, session: AsyncSession, name: RouteName, spec: RouteSpec) -> PutWebhook:
        await self._put_queue(session, name.queue, spec.target.queue_spec())
        webhook_spec = spec.target.webhook_spec(name.endpoint, paused=spec.paused)
        try:
            return await self._webhooks.put_of_route(session, name.webhook, webhook_spec)
        except ValidationFailed as error:
            faults = [replace(one, pointer=f"/target{one.pointer}") for one in error.faults]
            raise ValidationFailed("The route's configuration is invalid.", *faults) from None

    async def _put_queue(self, session: AsyncSession, name: QueueName, spec: QueueSpec) -> None:
        try:
            await self._catalog.put_route_queue(session, name, spec)
        except ValidationFailed as error:
            if error.faults[0].pointer != "/type":
                raise
            detail = (
                "Immutable while the route's queue exists: delete the route, or create another one"
            )
            raise ValidationFailed.at("/target/ordered", detail, "immutable") from None

    async def pause(self, session: AsyncSession, name: RouteName, *, paused: bool) -> None:
        """Pause the webhook with its route, or resume it."""
        await self._webhooks.pause_of_route(session, name.webhook, paused=paused)

    async def delete(self, session: AsyncSession, name: RouteName) -> DeletedQueues:
        """Delete the endpoint of a route, with what waits."""
        return await delete_endpoint(session, name, self._clock.now_ms())

    async def release(self, deleted: DeletedQueues) -> None:
        """Release what deleted queues used, after the commit; a sweep repeats what fails."""
        await self._catalog.release_route_queues(deleted)

    async def wait_until_in_force(self, route: TopicRoute) -> bool:
        """Wait until no deliverer posts by former settings; return whether that is so."""
        webhook: Webhook = await self._webhooks.get(route.name.webhook)
        return await self._webhooks.wait_until_in_force(webhook)

    # Maintenance

    async def unused(self) -> AsyncIterator[list[RouteName]]:
        """Yield pages of routes that have an endpoint, and another target now."""
        after: QueueName | None = None
        while page := await self._rows.unused(after, limits.PAGE_ITEMS_MAX):
            yield page
            after = page[-1].queue

    async def delete_unused(self, name: RouteName) -> bool:
        """Delete an endpoint, unless a revision of its route has a URL, or the queue a message."""
        deleted: DeletedQueues = {}
        changing = self._catalog.changing_stream(name.topic.stream)
        try:
            async with changing as (locked, stream):
                routes = await lock_routes(locked.session, name.topic, stream.stream_id)
                if routes is None or await routes.has_url(name.route) or await self._waits(name):
                    return False
                deleted = await self.delete(locked.session, name)
        except StreamNotFound:  # deleted since it was listed, with the endpoint
            return False
        await self.release(deleted)
        return bool(deleted)

    async def _waits(self, name: RouteName) -> bool:
        """Return whether the queue has a message or dead letter."""
        try:
            stats = await self._queues.stats(name.queue)
        except QueueNotFound:
            return False
        messages = stats.ready + stats.delayed + stats.in_flight + stats.parked
        return messages + stats.moving + stats.dead_lettered > 0
