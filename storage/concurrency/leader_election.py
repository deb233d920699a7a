"""Leader election by a lease with a fencing number, which its holder renews.

    candidate ──acquired──▶ leader ──renewed in time──▶ leader
        ▲                     ├──not renewed: the work is cancelled LEADER_MARGIN_MS before the lease ends ──▶ candidate
        │                     └──stopped: the work is cancelled, then the lease is released ──▶ the next candidate
        └──another has it: tries again when that lease may have ended, or after LEADER_RENEWAL_MS

The store's clock decides when a lease ends. The holder counts from before it asked, by its monotonic clock, so it stops
before any other can begin; one that was suspended meanwhile is why the work must be safe under two leaders (ADR 0058). The
fencing number rises with each leader, for work that has to check it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NamedTuple, Protocol

from storage.concurrency.periodic import pause_seconds
from storage.concurrency.tasks import end
from storage.domain import limits
from storage.domain.errors import MillstreamError

Lead = Callable[[int], Awaitable[object]]
"""Leads until cancelled, given the fencing number of its lease."""


class LeaderLease(NamedTuple):
    """Stored state of a lease. `remaining_ms`: until it ends, unless it is renewed."""

    holder: str
    fence: int
    remaining_ms: int


class LeaseTimes(NamedTuple):
    """Times of a lease. `margin_ms`: how long before its end the work is cancelled."""

    lease_ms: int = limits.LEADER_LEASE_MS
    renewal_ms: int = limits.LEADER_RENEWAL_MS
    margin_ms: int = limits.LEADER_MARGIN_MS


_LEASE_TIMES = LeaseTimes()


class LeaderLeases(Protocol):
    """A store of leases."""

    async def acquire(self, name: str, holder: str, lease_ms: int) -> LeaderLease:
        """Acquire or renew the lease if it is free; return the lease as it is now.

        Raises StorageUnavailable, StorageBusy, OutcomeUnknown.
        """
        ...

    async def release(self, name: str, holder: str) -> None:
        """Release the lease if the holder has it; its fencing number stays."""
        ...


class LeaderElection:
    """One candidate for one lease, which leads while it has it."""

    def __init__(
        self,
        leases: LeaderLeases,
        name: str,
        holder: str,
        times: LeaseTimes = _LEASE_TIMES,
    ) -> None:
        self._leases = leases
        self._name = name
        self._holder = holder
        self._lease_ms = times.lease_ms
        self._renewal_s = times.renewal_ms / limits.SECOND_MS
        self._usable_s = (times.lease_ms - times.margin_ms) / limits.SECOND_MS
        self._until_s = 0.0
        self._leading: asyncio.Task[object] | None = None

    @property
    def is_leader(self) -> bool:
        """Return whether the work runs here."""
        return self._leading is not None

    async def run(self, lead: Lead) -> None:
        """Lead whenever this candidate has the lease, until cancelled. Raises what `lead` does."""
        try:
            while True:
                await self._pause(await self._attempt(lead))
        finally:
            await self._stop()
            with suppress(MillstreamError, TimeoutError):
                async with asyncio.timeout(self._renewal_s):
                    await self._leases.release(self._name, self._holder)

    async def _attempt(self, lead: Lead) -> float:
        """Acquire or renew the lease, and start or stop leading; return when to try again."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        try:
            async with asyncio.timeout_at(self._until_s if self._leading else None):
                lease = await self._leases.acquire(self._name, self._holder, self._lease_ms)
        except (MillstreamError, TimeoutError):
            if loop.time() >= self._until_s:
                await self._stop()
            return self._renewal_s
        if lease.holder != self._holder:
            await self._stop()
            return min(self._renewal_s, max(1, lease.remaining_ms) / limits.SECOND_MS)
        self._until_s = began_s + self._usable_s
        if self._leading is None and loop.time() < self._until_s:
            self._leading = asyncio.ensure_future(lead(lease.fence))
        return self._renewal_s

    async def _pause(self, pause_s: float) -> None:
        """Wait for the next attempt; while leading, at most until the lease must be given up."""
        now_s = asyncio.get_running_loop().time()
        pause_s = pause_seconds(pause_s, now_s)
        if self._leading is None:
            await asyncio.sleep(pause_s)
            return
        left_s = max(0.0, self._until_s - now_s)
        await asyncio.wait([self._leading], timeout=min(pause_s, left_s))
        if self._leading.done():
            leading, self._leading = self._leading, None
            await leading

    async def _stop(self) -> None:
        if self._leading is not None:
            leading, self._leading = self._leading, None
            await end(leading)
