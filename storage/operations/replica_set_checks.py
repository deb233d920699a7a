"""Checks of a replica set: readiness, and findings for `millstream doctor`."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from storage.domain import limits
from storage.domain.errors import MillstreamError
from storage.domain.replication.replica_set import MemberState, Phase, ReplicaSetStatus
from storage.hot_store.members import WriteOutcome
from storage.operations.diagnostics import Diagnostic
from storage.operations.store_admin import StoreAdmin

_WAIT_S = 0.5  # for a member that hangs; a recent result is used then
_WRITES = 5
_WRITE_MS_MAX = 500  # a server that reports its disk to WAITAOF only once a second takes longer
_SKEW_MS_MAX = limits.SECOND_MS
_RECENT_MS = 15 * limits.SECOND_MS  # of the result before: supervisors check more often


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class ReplicaSetChecks:
    """Checks of the members. A fail-over takes less time than readiness tolerates.

    `read_faults` returns what is wrong with the settings of the members; `zones` has their zones, as far as known.
    """

    def __init__(
        self,
        stores: StoreAdmin,
        read_faults: Callable[[Iterable[str]], Awaitable[Sequence[str]]],
        now_ms: Callable[[], int] = _monotonic_ms,
        zones: Mapping[str, str] | None = None,
    ) -> None:
        self._stores = stores
        self._zones = zones or {}
        self._read_faults = read_faults
        self._now_ms = now_ms
        self._problem = "the replica set was not read yet"
        self._ready_at_ms: int | None = None
        self._read_at_ms: int | None = None
        self._reading: asyncio.Task[None] | None = None

    async def readiness(self) -> str:
        """Return 'ok', or the problem once it lasts longer than a fail-over does.

        A process that has never had enough replicas is not ready at once.
        """
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read(), name="replica-set-readiness")
        await asyncio.wait([self._reading], timeout=_WAIT_S if self._has_recent_result() else None)
        if not self._problem or self._tolerates_problem():
            return "ok"
        return self._problem

    def _has_recent_result(self) -> bool:
        read_at_ms = self._read_at_ms
        return read_at_ms is not None and self._now_ms() - read_at_ms <= _RECENT_MS

    def _tolerates_problem(self) -> bool:
        ready_at_ms = self._ready_at_ms
        tolerated_ms = limits.REPLICAS_MISSING_TOLERATED_MS
        return ready_at_ms is not None and self._now_ms() - ready_at_ms <= tolerated_ms

    async def _read(self) -> None:
        try:
            self._problem = _problem(await self._stores.status())
        except MillstreamError as error:
            self._problem = error.detail
        self._read_at_ms = self._now_ms()
        if not self._problem:
            self._ready_at_ms = self._read_at_ms

    async def close(self) -> None:
        """Stop a check that is under way."""
        if self._reading is not None:
            self._reading.cancel()
            with suppress(asyncio.CancelledError):
                await self._reading

    async def findings(self) -> list[Diagnostic]:
        """Return the findings about the members.

        Raises StorageUnavailable when Postgres is unreachable.
        """
        status = await self._stores.status()
        faults = await self._read_faults(status.replica_set.members)
        return [
            _copies_finding(status),
            Diagnostic(
                "store settings",
                not faults,
                "; ".join(faults) or "as replication needs them",
                "set them in the configuration file of the store: docs/how-to/replicate.md",
            ),
            _unknown_finding(status),
            _machines_finding(status),
            *_zone_findings(status, self._zones),
            await self._write_finding(),
            _clocks_finding(status),
        ]

    async def _write_finding(self) -> Diagnostic:
        """Time confirmed writes."""
        began_ms, hint = self._now_ms(), "check that enough stores are in sync"
        for _ in range(_WRITES):
            outcome = await self._stores.replica_set.confirm_write()
            if outcome is not WriteOutcome.CONFIRMED:
                return Diagnostic("confirmed write", False, outcome.value, hint)
        elapsed_ms = (self._now_ms() - began_ms) / _WRITES
        return Diagnostic(
            "confirmed write",
            True if elapsed_ms <= _WRITE_MS_MAX else None,
            f"{elapsed_ms:.1f} ms (mean of {_WRITES})",
            "check the disks and the network of the stores, and that each is Valkey or Redis: another server"
            " may answer WAITAOF only once a second",
        )


def _problem(status: ReplicaSetStatus) -> str:
    required = status.replica_set.min_insync_replicas
    if status.insync_replicas < required:
        return f"{status.insync_replicas} of {required} in-sync replicas"
    if status.replica_set.phase is not Phase.NORMAL:
        return f"the primary is being changed: {status.replica_set.phase}"
    return ""


def _copies_finding(status: ReplicaSetStatus) -> Diagnostic:
    count, total = status.insync_replicas, len(status.members)
    required = status.replica_set.min_insync_replicas
    others = [
        f"{member.address} is {member.state}"
        for member in status.members
        if member.state is not MemberState.INSYNC
    ]
    return Diagnostic(
        "store copies",
        False if count < required else (True if count == total else None),
        "; ".join([f"{count} of {total} stores in sync, {required} required", *others]),
        "start the stores that are away, or replace them: `millstream store replace OLD NEW`",
    )


def _unknown_finding(status: ReplicaSetStatus) -> Diagnostic:
    return Diagnostic(
        "unknown replicas",
        not status.unknown_replicas,
        ", ".join(status.unknown_replicas) or "none",
        "disconnect them from the primary, and change its password: they are counted as copies",
    )


def _zone_findings(status: ReplicaSetStatus, zones: Mapping[str, str]) -> list[Diagnostic]:
    """Check that enough stores are left without any one zone; nothing if no zones are set."""
    if not zones:
        return []
    members = status.replica_set.members
    unknown = [member for member in members if member not in zones]
    [(largest, count)] = Counter(zones.get(member, "") for member in members).most_common(1)
    expendable = len(members) - status.replica_set.min_insync_replicas
    if unknown:
        detail = f"no zone is set for {', '.join(unknown)}"
    else:
        detail = f"{count} of {len(members)} stores in {largest}"
    return [
        Diagnostic(
            "store zones",
            True if count <= expendable and not unknown else None,
            detail,
            "spread the stores over more zones, and name each in MILLSTREAM_STORE_ZONES: writes stop with a zone that"
            f" has more than {expendable} of them",
        )
    ]


def _clocks_finding(status: ReplicaSetStatus) -> Diagnostic:
    """Compare the clocks of the members that answer: the next primary continues with its own."""
    times = {
        member.address: member.time_ms for member in status.members if member.time_ms is not None
    }
    skew_ms = max(times.values(), default=0) - min(times.values(), default=0)
    return Diagnostic(
        "store clocks",
        skew_ms <= _SKEW_MS_MAX,
        f"{skew_ms} ms apart",
        "run an NTP client on each store's machine: leases and delays are measured by the primary's clock",
    )


def _machines_finding(status: ReplicaSetStatus) -> Diagnostic:
    """Check that the members have different hosts, as far as their addresses tell."""
    hosts = {member.address.rpartition(":")[0] for member in status.members}
    total = len(status.members)
    return Diagnostic(
        "store machines",
        True if len(hosts) == total else None,
        f"{total} stores on {len(hosts)} host{'' if len(hosts) == 1 else 's'}",
        "run each store on a machine of its own: those of one machine are lost together",
    )
