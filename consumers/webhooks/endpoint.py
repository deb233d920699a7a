"""Receiver of a webhook as its deliverer sees it: capacity, health, and whether served."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Protocol

from msgspec.structs import replace

from consumers.webhooks.circuit_breaker import CircuitBreaker
from consumers.webhooks.delivery_log import DeliveryLogWriter
from consumers.webhooks.http_sender import Sender
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.webhooks import (
    Attempt,
    AttemptOutcome,
    DeliveryHealth,
    DeliveryLogEntry,
    DisabledReason,
    Event,
    LeasedWebhook,
    SourceKind,
)

logger = logging.getLogger(__name__)

_PATIENCE_MS = 2_000  # for the circuit breaker, while a message is held


class DeliveryObserver(Protocol):
    """Metrics of a deliverer."""

    def attempted(self, kind: SourceKind, outcome: AttemptOutcome) -> None: ...

    def disabled(self, count: int) -> None: ...


class EndpointUnavailable(Exception):
    """Nothing was sent: the receiver is left alone for a while, or another deliverer has it."""


class Endpoint:
    """One webhook that is served.

    `may_send` returns whether its lease is certain to last.
    """

    def __init__(
        self,
        *,
        served: LeasedWebhook,
        sender: Sender,
        delivery_log: DeliveryLogWriter,
        clock: Clock,
        metrics: DeliveryObserver,
        chance: Callable[[], float],
        may_send: Callable[[], bool] = lambda: True,
    ) -> None:
        self.served = served
        self.webhook = served.webhook
        self.spec = served.webhook.spec
        self.clock = clock
        self.chance = chance
        self.delivery_log = delivery_log
        self.health: DeliveryHealth = served.webhook.health
        self.to_disable: DisabledReason | None = None
        self._sender = sender
        self._metrics = metrics
        self._may_send = may_send
        self._breaker = CircuitBreaker(self.spec.rate)
        self._slots = asyncio.Semaphore(self.spec.in_flight_max)
        self._back = asyncio.Event()
        self._is_retired = False
        self.over = asyncio.Event()

    @property
    def wait_ms(self) -> int | None:
        """The time in ms until a delivery may begin; 0 for now.

        None: not before one in flight has finished.
        """
        if self._is_retired or self.to_disable is not None or not self._may_send():
            return None
        return self._breaker.wait_ms(self.clock.now_ms())

    @property
    def is_mine(self) -> bool:
        """Return whether the lease is certain to last."""
        return self._may_send()

    @property
    def capacity(self) -> int:
        """Number of deliveries to prefetch.

        Enough to be busy, and few to release when it cannot be.
        """
        if self._breaker.is_half_open:
            return 1
        most = 2 * self.spec.in_flight_max
        if self.spec.rate is not None:
            most = min(most, max(1, round(2 * self.spec.rate)))
        return most

    async def wait_until_closed(self) -> None:
        """Wait until a delivery may begin, but not for long: the state may change."""
        wait_ms = self.wait_ms
        most = limits.WEBHOOK_HEARTBEAT_MS if wait_ms is None else wait_ms
        await self._something_or(min(most, limits.WEBHOOK_SOURCE_RETRY_MS))

    async def attempt(self, event: Event, number: int) -> Attempt:
        """Send an event for the `number`th time, when it is its turn.

        Raises EndpointUnavailable.
        """
        async with self._turn():
            attempt = await self._sender.post(event, number)
            self._judge(attempt)
            return attempt

    @asynccontextmanager
    async def _turn(self) -> AsyncGenerator[None]:
        async with self._slots:
            while wait_ms := self._wait_or_refuse():
                await self._something_or(wait_ms)
            self._breaker.record_start(self.clock.now_ms())
            try:
                yield
            except BaseException:
                self._breaker.record_result(None, self.clock.now_ms())
                raise
            finally:
                self._back.set()

    def _wait_or_refuse(self) -> int:
        wait_ms = self.wait_ms
        if wait_ms is None or wait_ms > _PATIENCE_MS:
            raise EndpointUnavailable
        return wait_ms

    async def _something_or(self, wait_ms: int) -> None:
        """Wait until a delivery has finished, or for `wait_ms`."""
        self._back.clear()
        try:
            async with asyncio.timeout(wait_ms / limits.SECOND_MS):
                await self._back.wait()
        except TimeoutError:
            return

    def _judge(self, attempt: Attempt) -> None:
        now_ms = self.clock.now_ms()
        self._breaker.record_result(attempt, now_ms)
        self._metrics.attempted(self.spec.source.kind, attempt.outcome)
        if attempt.succeeded:
            self._report_health(
                replace(
                    self.health,
                    delivered=self.health.delivered + 1,
                    failing_since_ms=None,
                    last_success_at_ms=now_ms,
                )
            )
            return
        since_ms = self.health.failing_since_ms
        since_ms = attempt.at_ms if since_ms is None else since_ms
        self._report_health(
            replace(
                self.health,
                failed=self.health.failed + 1,
                failing_since_ms=since_ms,
                last_failure_at_ms=now_ms,
                last_failure=attempt.error,
            )
        )
        self._log_failure(attempt)
        if attempt.outcome is AttemptOutcome.GONE:
            self._end(DisabledReason.GONE)
        elif now_ms - since_ms >= self.spec.disable_after_ms:
            self._end(DisabledReason.FAILING)

    def _log_failure(self, attempt: Attempt) -> None:
        logger.info(
            "webhook_delivery_failed",
            extra={
                "webhook": str(self.webhook.name),
                "outcome": attempt.outcome.value,
                "status": attempt.status,
                "duration_ms": attempt.duration_ms,
            },
        )

    def report_source_error(self, detail: str) -> None:
        """Report an error of the source, which does not count as a failure of the receiver."""
        if self.health.last_failure != detail:
            now_ms = self.clock.now_ms()
            self._report_health(
                replace(self.health, last_failure=detail, last_failure_at_ms=now_ms)
            )

    def blocked(self, shard: int, failure: str | None) -> None:
        """Record that a shard waits for its first record; None: it no longer does."""
        if self.health.blocked.get(shard) == failure:
            return
        others = {one: word for one, word in self.health.blocked.items() if one != shard}
        self._report_health(
            replace(self.health, blocked=others if failure is None else {**others, shard: failure})
        )

    def _report_health(self, health: DeliveryHealth) -> None:
        self.health = health
        self.delivery_log.record_health(self.served.lease, health)

    def _end(self, because: DisabledReason) -> None:
        if self.to_disable is None:
            self.to_disable = because
            self.over.set()

    def retire(self) -> None:
        """Begin no more deliveries: the webhook was changed, and is no longer what it was."""
        self._is_retired = True

    async def log(self, entry: DeliveryLogEntry) -> None:
        """Add to the webhook's log."""
        await self.delivery_log.append(self.webhook, entry)

    async def close(self) -> None:
        """Close the connections to the receiver."""
        await self._sender.close()
