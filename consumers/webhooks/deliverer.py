"""Deliverer: a process that serves its share of the webhooks.

    every second,     beat: renew what is held ──▶ stop what is another's, or was changed
    and at a change   share: too few ──▶ claim      too many ──▶ stop some, and release them

A webhook is served by one deliverer at a time. One without a response from the database for as long as a lease lasts
sends nothing more; one that is killed loses its webhooks to the others within WEBHOOK_LEASE_MS and a beat.
"""

import asyncio
import logging
import os
import random
import secrets
import socket
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from msgspec.structs import replace

from consumers.webhooks.delivery_log import DeliveryLogWriter
from consumers.webhooks.endpoint import DeliveryObserver, Endpoint
from consumers.webhooks.group_source import GroupSource
from consumers.webhooks.http_sender import DeliveryTracing, Sender
from consumers.webhooks.queue_source import QueueSource
from consumers.webhooks.ssrf_guard import Resolve, resolve
from storage.bootstrap import Storage
from storage.concurrency.periodic import periodic
from storage.concurrency.tasks import end
from storage.domain import limits
from storage.domain.access.egress import Egress
from storage.domain.clock import Clock, SystemClock
from storage.domain.errors import MillstreamError, StaleGeneration
from storage.domain.webhooks import DisabledReason, LeasedWebhook, SourceKind

logger = logging.getLogger(__name__)

_CLOCK = SystemClock()
_LEASE_S = limits.WEBHOOK_LEASE_MS / limits.SECOND_MS
_END_S = 2 * limits.WEBHOOK_STOP_MS / limits.SECOND_MS
_BEAT_S = limits.WEBHOOK_HEARTBEAT_MS / limits.SECOND_MS
_IDLE_BEAT_S = limits.WEBHOOK_IDLE_HEARTBEAT_MS / limits.SECOND_MS


def source_of(endpoint: Endpoint, storage: Storage) -> QueueSource | GroupSource:
    """Return the source that delivers to this endpoint."""
    if endpoint.spec.source.kind is SourceKind.QUEUE:
        return QueueSource(endpoint, storage)
    return GroupSource(endpoint, storage)


class WebhookServer:
    """One webhook while it is served."""

    def __init__(self, served: LeasedWebhook, endpoint: Endpoint, storage: Storage) -> None:
        self.leased = served
        self.endpoint = endpoint
        self._storage = storage
        self._is_lost = False
        self.task = asyncio.create_task(self._serve())

    async def _serve(self) -> None:
        subject = f"webhooks/{self.leased.webhook.name}"
        while True:
            with suppress(MillstreamError):  # an outage of the store
                await self._storage.isolation.visit("deliver", subject, self._run, None)
            if self._is_lost:
                return
            await asyncio.sleep(limits.WEBHOOK_SOURCE_RETRY_MS / limits.SECOND_MS)

    async def _run(self) -> None:
        """Deliver until cancelled, or until another deliverer has the lease."""
        try:
            await source_of(self.endpoint, self._storage).run()
        except StaleGeneration:
            logger.info("webhook_lease_lost", extra={"webhook": str(self.leased.webhook.name)})
            self._is_lost = True
        except Exception as error:
            self.endpoint.report_source_error(f"Internal error: {error!r}")
            raise

    async def stop(self) -> None:
        """Stop; deliveries in flight have a moment, which a second cancellation would cut short."""
        self.task.cancel()
        await asyncio.wait([self.task], timeout=_END_S)
        await end(self.task)
        await self.endpoint.close()


class Deliverer:
    """Server of webhooks, until it is cancelled.

    `allow`: the destinations allowed for webhooks, in the syntax of the settings.
    """

    def __init__(
        self,
        storage: Storage,
        allow: Iterable[str],
        metrics: DeliveryObserver,
        *,
        clock: Clock = _CLOCK,
        resolver: Resolve = resolve,
        chance: Callable[[], float] = random.random,  # noqa: S311 - jitter
        tracing: DeliveryTracing | None = None,
    ) -> None:
        self._tracing = tracing
        self.name = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self.delivery_log = DeliveryLogWriter(storage.deliveries)
        self._storage = storage
        self._egress = Egress.of(allow)
        self._metrics = metrics
        self._clock = clock
        self._resolver = resolver
        self._chance = chance
        self._serving: dict[str, WebhookServer] = {}
        self._ending: dict[str, asyncio.Task[None]] = {}
        self._lease_until = 0.0
        self._changed = asyncio.Event()
        self._has_active = False
        storage.deliveries.changes.observe(self._note_change)

    @property
    def served(self) -> list[str]:
        """The names of the webhooks that it serves now."""
        return sorted(one.leased.webhook.name.name for one in self._serving.values())

    async def run(self) -> None:
        """Serve until cancelled; then release everything."""
        try:
            await periodic(
                _BEAT_S, self._beat, "deliverer", wake=self._changed, idle_s=_IDLE_BEAT_S
            )
        finally:
            await self._leave()

    def _note_change(self, webhook_id: str) -> None:
        """Begin the next round at once for a webhook that is served here, and for the first one."""
        if webhook_id in self._serving or not self._has_active:
            self._changed.set()

    async def _beat(self) -> int:
        """Run one round; if it fails, stop what this deliverer has no valid lease for.

        Returns the number of active webhooks: while there are none, the next round may be later.
        """
        try:
            return await self.heartbeat()
        except Exception:  # the webhooks that are served must not end with one round
            await self._stop_what_has_run_out()
            raise

    async def heartbeat(self) -> int:
        """Run one round: renew, stop, claim or release; return the number of active webhooks.

        Raises StorageUnavailable.
        """
        loop = asyncio.get_running_loop()
        asked_at = loop.time()
        leased = {
            one.lease.webhook_id: one for one in await self._storage.deliveries.heartbeat(self.name)
        }
        self._lease_until = asked_at + _LEASE_S
        changed = [
            webhook_id
            for webhook_id, one in self._serving.items()
            if webhook_id not in leased
            or leased[webhook_id].lease != one.leased.lease
            or leased[webhook_id].version != one.leased.webhook.version
            or one.endpoint.to_disable is not None
            or one.task.done()
        ]
        for webhook_id in changed:
            self._serving[webhook_id].endpoint.retire()
        strays = [one for one in leased if one not in self._serving and one not in self._ending]
        if strays:
            await self._storage.deliveries.release(self.name, strays)
        await self._stop(changed)
        return await self._share()

    async def _share(self) -> int:
        shares = await self._storage.deliveries.shares()
        self._metrics.disabled(shares.disabled)
        share = -(-shares.active // max(1, shares.deliverers))
        missing = share - len(self._serving) - len(self._ending)
        if surplus := list(self._serving)[share:]:
            await self._stop(surplus)
        elif missing > 0:
            for served in await self._storage.deliveries.claim(self.name, missing):
                await self._begin_or_disable(served)
        self._has_active = shares.active > 0
        return shares.active

    async def _begin_or_disable(self, served: LeasedWebhook) -> None:
        """Serve a webhook; disable one that cannot be started, so that it affects no other.

        Raises StorageUnavailable.
        """
        try:
            self._begin(served)
        except Exception as error:
            webhook = served.webhook
            logger.exception("webhook_start_failed", extra={"webhook": str(webhook.name)})
            failure = f"The webhook could not be started: {error!r}"
            health = replace(
                webhook.health, last_failure=failure, last_failure_at_ms=self._clock.now_ms()
            )
            await self._storage.deliveries.disable(served.lease, DisabledReason.INVALID, health)

    def _begin(self, served: LeasedWebhook) -> None:
        sender = Sender(
            served=served,
            egress=self._egress,
            clock=self._clock,
            resolver=self._resolver,
            tracing=self._tracing,
        )
        endpoint = Endpoint(
            served=served,
            sender=sender,
            delivery_log=self.delivery_log,
            clock=self._clock,
            metrics=self._metrics,
            chance=self._chance,
            may_send=self._lease_lasts,
        )
        self._serving[served.webhook.webhook_id] = WebhookServer(served, endpoint, self._storage)

    def _lease_lasts(self) -> bool:
        """Return whether the leases are certain to last.

        A process that was suspended finds out here before it sends.
        """
        return asyncio.get_running_loop().time() < self._lease_until

    async def _stop(self, webhook_ids: Sequence[str]) -> None:
        """Stop serving these webhooks and release them, without delaying the heartbeat."""
        for webhook_id in webhook_ids:
            ending = asyncio.create_task(self._end(self._serving.pop(webhook_id)))
            self._ending[webhook_id] = ending
            ending.add_done_callback(lambda _, webhook_id=webhook_id: self._ending.pop(webhook_id))  # type: ignore[misc]
        if self._ending:
            await asyncio.wait(list(self._ending.values()), timeout=_BEAT_S)

    async def _end(self, serving: WebhookServer) -> None:
        await serving.stop()
        endpoint = serving.endpoint
        try:
            if endpoint.to_disable is not None:
                extra = {
                    "webhook": str(endpoint.webhook.name),
                    "reason": endpoint.to_disable.value,
                }
                logger.warning("webhook_disabled", extra=extra)
                await self._storage.deliveries.disable(
                    serving.leased.lease, endpoint.to_disable, endpoint.health
                )
            await self._storage.deliveries.release(self.name, [serving.leased.lease.webhook_id])
        except MillstreamError as error:
            facts = {"webhook": str(endpoint.webhook.name), "reason": error.detail}
            logger.warning("webhook_release_failed", extra=facts)

    async def _stop_what_has_run_out(self) -> None:
        if not self._lease_lasts():
            await self._stop(list(self._serving))

    async def _leave(self) -> None:
        try:
            await self._stop(list(self._serving))
            await asyncio.gather(*self._ending.values())
            await self.delivery_log.close()
            await self._storage.deliveries.deregister(self.name)
        except MillstreamError as error:
            logger.warning("deregister_failed", extra={"reason": error.detail})
