"""Leased token buckets of one process, and the calls that wait for tokens.

A call that finds too few waits for the store, which is queried once for all waiting calls; they are served in order of
arrival. A call that is known not to fit is rejected without a query.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from math import ceil

import attrs

from storage.concurrency.batcher import Batcher
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import (
    MillstreamError,
    OutcomeUnknown,
    QuotaExceeded,
    QuotaTooSmall,
    StorageUnavailable,
)
from storage.domain.quotas import QuotaStatus, Rates
from storage.hot_store.rates import LeaseRequest, RateStore
from storage.quotas.gcra import TokenLease

MEASURES = ("calls", "messages", "bytes")
_UNITS = ("requests", "messages", "content-bytes")

Cost = tuple[int, int, int]
"""Calls, messages, bytes."""


class _Waiter:
    """A call that waits for tokens from the store."""

    __slots__ = ("cost", "is_cancelled", "is_served")

    def __init__(self, cost: Cost) -> None:
        self.cost = cost
        self.is_served = False
        self.is_cancelled = False


@attrs.define(eq=False, kw_only=True)
class LeasedTokenBucket:
    """Rates of one bucket, and this process's leases of them.

    `is_low`: little of some measure was left in the store's last response.
    """

    _hot: RateStore
    namespace: str
    kind: str
    name: str
    bucket: str
    rates: Rates
    leases: list[TokenLease | None] = attrs.field(init=False)
    is_low: bool = attrs.field(default=False, init=False)
    _refills: Batcher[_Waiter, None] | None = attrs.field(default=None, init=False)

    @leases.default
    def _new_leases(self) -> list[TokenLease | None]:
        return [
            None if rate is None else TokenLease(rate, self.rates.burst_seconds)
            for rate in self.rates.per_second
        ]

    def has(self, cost: Cost, now_ms: int) -> bool:
        """Return whether `cost` can be spent without asking the store."""
        for lease, units in zip(self.leases, cost, strict=True):
            if lease is not None and units and not lease.has(units, now_ms):
                return False
        return True

    def take(self, cost: Cost) -> None:
        """Spend `cost`, which the leases have."""
        for lease, units in zip(self.leases, cost, strict=True):
            if lease is not None:
                lease.tokens -= units

    def release(self, cost: Cost) -> None:
        """Give the leases back a cost that was not spent after all."""
        for lease, units in zip(self.leases, cost, strict=True):
            if lease is not None:
                lease.tokens += units

    async def acquire(self, cost: Cost, clock: Clock) -> None:
        """Spend `cost`, once the store has granted it.

        Raises QuotaExceeded, QuotaTooSmall, StorageUnavailable.
        """
        now_ms = clock.now_ms()
        if self.has(cost, now_ms):
            self.take(cost)
            return
        if (refusal := self.refusal(cost, now_ms)) is not None:
            raise refusal
        if self._refills is None:
            self._refills = Batcher(partial(self._refill, clock), subject="the quota")
        waiter = _Waiter(cost)
        try:
            await self._refills.submit(waiter)
        except asyncio.CancelledError:
            waiter.is_cancelled = True
            if waiter.is_served:
                self.release(cost)
            raise

    async def _refill(
        self, clock: Clock, waiters: Sequence[_Waiter]
    ) -> list[MillstreamError | None]:
        """Request tokens for all waiting calls, and serve them in order of arrival."""
        await self._request([waiter.cost for waiter in waiters], clock)
        now_ms = clock.now_ms()
        return [self._serve(waiter, now_ms) for waiter in waiters]

    def _serve(self, waiter: _Waiter, now_ms: int) -> MillstreamError | None:
        """Spend the cost of a waiting call; return the refusal if there are too few tokens."""
        if waiter.is_cancelled:
            return None
        if self.has(waiter.cost, now_ms):
            self.take(waiter.cost)
            waiter.is_served = True
            return None
        return self.refusal(waiter.cost, now_ms, at_least_ms=1) or QuotaExceeded(
            policy=self.name, retry_after_seconds=1
        )

    async def _request(self, costs: Sequence[Cost], clock: Clock) -> None:
        now_ms = clock.now_ms()
        requests = {
            name: LeaseRequest(lease.unit_us, lease.burst_us, *lease.units_to_request(some, now_ms))
            for name, lease, some in zip(
                MEASURES, self.leases, zip(*costs, strict=True), strict=True
            )
            if lease is not None
        }
        try:
            grants = await self._hot.lease(
                self.namespace, self.bucket, requests, clock.script_time()
            )
        except OutcomeUnknown:  # granted tokens are lost, which does no harm
            raise StorageUnavailable("The store timed out.") from None
        for name, lease in zip(MEASURES, self.leases, strict=True):
            if lease is not None:
                lease.granted(*grants[name], now_ms)
        self.is_low = any(lease is not None and lease.is_low(now_ms) for lease in self.leases)

    def refusal(
        self, cost: Cost, now_ms: int, at_least_ms: int = 0
    ) -> QuotaExceeded | QuotaTooSmall | None:
        """Return why `cost` cannot pass now, or ever, if that is known."""
        for index, (lease, units) in enumerate(zip(self.leases, cost, strict=True)):
            if lease is None or not units or lease.has(units, now_ms):
                continue
            if units > lease.burst:
                return self._too_small(index, lease, units)
            if wait_ms := max(at_least_ms, lease.retry_after_ms(units, now_ms)):
                return self._exceeded(index, wait_ms, self.statuses(now_ms))
        return None

    def statuses(self, now_ms: int) -> list[QuotaStatus]:
        """Return the remaining quota of each measure."""
        window_s = max(1, round(self.rates.burst_seconds))
        return [
            QuotaStatus(
                self.name if index == 0 else f"{self.name}:{MEASURES[index]}",
                _UNITS[index],
                max(1, int((rate or 0.0) * window_s)),
                window_s,
                lease.remaining(now_ms),
                lease.reset_s(now_ms),
            )
            for index, (lease, rate) in enumerate(
                zip(self.leases, self.rates.per_second, strict=True)
            )
            if lease is not None
        ]

    def _exceeded(self, index: int, wait_ms: int, statuses: Sequence[QuotaStatus]) -> QuotaExceeded:
        rate, unit = self.rates.per_second[index], MEASURES[index]
        return QuotaExceeded(
            f"The quota '{self.name}' allows {rate:g} {unit} per second; nothing happened.",
            policy=self.name,
            limit=rate,
            unit=unit,
            retry_after_seconds=max(1, ceil(wait_ms / limits.SECOND_MS)),
        ).with_statuses(statuses)

    def _too_small(self, index: int, lease: TokenLease, units: int) -> QuotaTooSmall:
        unit = MEASURES[index]
        return QuotaTooSmall(
            f"The call has {units} {unit}, but the quota '{self.name}' allows at most {lease.burst} in one call. Send smaller calls.",
            policy=self.name,
            limit=lease.burst,
            unit=unit,
        )


class LimitSet:
    """The policies of one caller and one resource, and their leases by measure."""

    __slots__ = ("_leases", "policies", "rates")

    def __init__(self, rates: Rates | None, policies: Sequence[LeasedTokenBucket]) -> None:
        self.rates = rates
        self.policies = policies
        self._leases = [
            (index, lease)
            for policy in policies
            for index, lease in enumerate(policy.leases)
            if lease is not None
        ]

    def acquire(self, cost: Cost, now_ms: int) -> bool:
        """Spend from every lease, or from none.

        On the path of every call, so written out without helpers.
        """
        for index, lease in self._leases:
            units = cost[index]
            if units:
                left = lease.tokens - units
                if left < 0 or now_ms >= lease.expires_ms:
                    self._release(cost, lease)
                    return False
                lease.tokens = left
        return True

    def _release(self, cost: Cost, refusing: TokenLease) -> None:
        """Give a cost back to the leases before the one that refused it."""
        for index, lease in self._leases:
            if lease is refusing:
                return
            lease.tokens += cost[index]
