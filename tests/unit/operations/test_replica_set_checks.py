"""Readiness and findings of a replica set."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest

from storage.domain import limits
from storage.domain.errors import StorageUnavailable
from storage.domain.replication.replica_set import (
    MemberRole,
    MemberState,
    MemberStatus,
    Phase,
    ReplicaSet,
    ReplicaSetStatus,
)
from storage.hot_store.members import WriteOutcome
from storage.operations.replica_set_checks import ReplicaSetChecks

ADDRESSES = ("store-1:6379", "store-2:6379", "store-3:6379")


def status(
    *states: MemberState,
    phase: Phase = Phase.NORMAL,
    addresses: tuple[str, ...] = ADDRESSES,
    unknown_replicas: tuple[str, ...] = (),
    times_ms: tuple[int | None, ...] = (1_000, 1_002, 1_001),
) -> ReplicaSetStatus:
    members = tuple(
        MemberStatus(address=address, role=MemberRole.REPLICA, state=state, time_ms=time_ms)
        for address, state, time_ms in zip(addresses, states, times_ms, strict=True)
    )
    replica_set = ReplicaSet(
        members=addresses,
        primary=addresses[0],
        term=3,
        epoch=3,
        phase=phase,
        min_insync_replicas=2,
    )
    return ReplicaSetStatus(
        replica_set=replica_set, members=members, unknown_replicas=unknown_replicas
    )


HEALTHY = status(MemberState.INSYNC, MemberState.INSYNC, MemberState.INSYNC)
DEGRADED = status(MemberState.INSYNC, MemberState.INSYNC, MemberState.AWAY)
TOO_FEW = status(MemberState.INSYNC, MemberState.BEHIND, MemberState.AWAY)


class Stores:
    """Stores with a given status, or error, and a clock."""

    def __init__(self) -> None:
        self.answer: ReplicaSetStatus | Exception | asyncio.Future[Any] = HEALTHY
        self.now_ms = 0
        self.wrong: list[str] = []
        self.write = WriteOutcome.CONFIRMED
        self.write_ms = 2
        self.replica_set = self

    async def confirm_write(self) -> WriteOutcome:
        self.now_ms += self.write_ms
        return self.write

    async def faults(self, addresses: Iterable[str]) -> list[str]:
        return [f"{address} has {fault}" for address in addresses for fault in self.wrong]

    async def status(self) -> ReplicaSetStatus:
        if isinstance(self.answer, Exception):
            raise self.answer
        if isinstance(self.answer, asyncio.Future):
            await self.answer
        assert isinstance(self.answer, ReplicaSetStatus)
        return self.answer


@pytest.fixture
def stores() -> Stores:
    return Stores()


@pytest.fixture
async def checks(stores: Stores) -> AsyncIterator[ReplicaSetChecks]:
    checks = ReplicaSetChecks(stores, stores.faults, lambda: stores.now_ms)  # type: ignore[arg-type]
    yield checks
    await checks.close()


@pytest.mark.parametrize("answer", [HEALTHY, DEGRADED])
async def test_ready_with_enough_replicas(checks, stores, answer):
    stores.answer = answer

    assert await checks.readiness() == "ok"


async def test_start_without_enough_replicas_is_not_ready(checks, stores):
    stores.answer = TOO_FEW

    assert await checks.readiness() == "1 of 2 in-sync replicas"


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (TOO_FEW, "1 of 2 in-sync replicas"),
        (
            status(*[MemberState.INSYNC] * 3, phase=Phase.FENCE),
            "the primary is being changed: fence",
        ),
        (StorageUnavailable("Postgres is unreachable."), "Postgres is unreachable."),
    ],
)
async def test_problem_is_tolerated_as_long_as_a_failover_takes(checks, stores, answer, problem):
    await checks.readiness()
    stores.answer = answer

    stores.now_ms = limits.REPLICAS_MISSING_TOLERATED_MS
    assert await checks.readiness() == "ok"
    stores.now_ms += 1
    assert await checks.readiness() == problem
    stores.answer = HEALTHY
    assert await checks.readiness() == "ok"


async def test_hanging_member_does_not_delay_readiness(checks, stores, monkeypatch):
    monkeypatch.setattr("storage.operations.replica_set_checks._WAIT_S", 0.01)
    await checks.readiness()
    stores.answer = asyncio.get_running_loop().create_future()

    assert [await checks.readiness() for _ in range(2)] == ["ok", "ok"]


async def test_old_result_is_not_used_for_a_hanging_member(checks, stores):
    """The first check of a minute said "ok" while two of three stores hung."""
    await checks.readiness()
    stores.answer = asyncio.get_running_loop().create_future()
    stores.now_ms = limits.MINUTE_MS

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(checks.readiness(), 0.05)


@pytest.mark.parametrize(
    ("answer", "ok", "detail"),
    [
        (HEALTHY, True, "3 of 3 stores in sync, 2 required"),
        (DEGRADED, None, "2 of 3 stores in sync, 2 required; store-3:6379 is away"),
        (TOO_FEW, False, "store-2:6379 is behind; store-3:6379 is away"),
    ],
)
async def test_doctor_reports_copies(checks, stores, answer, ok, detail):
    stores.answer = answer

    copies, *others = await checks.findings()

    assert copies.ok is ok
    assert detail in copies.detail
    assert [finding.ok for finding in others] == [True] * 5


async def test_doctor_reports_unknown_replicas_and_shared_machines(checks, stores):
    states = [MemberState.INSYNC] * 3
    addresses = ("10.0.0.1:6379", "10.0.0.1:6380", "[::1]:6379")
    stores.answer = status(*states, addresses=addresses, unknown_replicas=("10.0.0.9:6379",))

    _, _, unknown, machines, *_ = await checks.findings()

    assert (unknown.ok, unknown.detail) == (False, "10.0.0.9:6379")
    assert (machines.ok, machines.detail) == (None, "3 stores on 2 hosts")


async def test_doctor_reports_settings_of_members(checks, stores):
    stores.wrong = ["appendfsync everysec, not always"]

    _, settings, *_ = await checks.findings()

    assert settings.ok is False
    assert settings.detail.startswith("store-1:6379 has appendfsync everysec, not always; store-2")


@pytest.mark.parametrize(
    ("outcome", "write_ms", "ok", "detail"),
    [
        (WriteOutcome.CONFIRMED, 500, True, "500.0 ms"),
        (WriteOutcome.CONFIRMED, 501, None, "501.0 ms"),
        (WriteOutcome.UNCONFIRMED, 2, False, "unconfirmed"),
    ],
)
async def test_doctor_times_a_confirmed_write(checks, stores, outcome, write_ms, ok, detail):
    stores.write, stores.write_ms = outcome, write_ms

    [finding] = [one for one in await checks.findings() if one.check == "confirmed write"]

    assert finding.ok is ok
    assert finding.detail.startswith(detail)


@pytest.mark.parametrize(
    ("times_ms", "ok", "detail"),
    [
        ((1_000, 2_000, None), True, "1000 ms apart"),
        ((1_000, 2_001, 1_500), False, "1001 ms apart"),
        ((None, None, None), True, "0 ms apart"),
    ],
)
async def test_doctor_compares_clocks_of_members(checks, stores, times_ms, ok, detail):
    stores.answer = status(*[MemberState.INSYNC] * 3, times_ms=times_ms)

    [finding] = [one for one in await checks.findings() if one.check == "store clocks"]

    assert (finding.ok, finding.detail) == (ok, detail)


@pytest.mark.parametrize(
    ("zones", "ok", "detail"),
    [
        ("abc", True, "1 of 3 stores in a"),
        ("aab", None, "2 of 3 stores in a"),
        ("ab", None, "no zone is set for store-3:6379"),
    ],
)
async def test_doctor_reports_zone_that_writes_need(stores, zones, ok, detail):
    by_address = dict(zip(ADDRESSES, zones, strict=False))
    checks = ReplicaSetChecks(stores, stores.faults, lambda: stores.now_ms, by_address)

    [finding] = [one for one in await checks.findings() if one.check == "store zones"]

    assert (finding.ok, finding.detail) == (ok, detail)
