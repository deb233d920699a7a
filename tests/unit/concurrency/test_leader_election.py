"""Leader election: one leader, its end before its lease ends, and takeover."""

import asyncio

import pytest

from storage.concurrency.leader_election import LeaderElection, LeaderLease, LeaseTimes
from storage.concurrency.tasks import end
from storage.domain.errors import StorageUnavailable
from tests.conditions import PATIENCE_S


class Leases:
    """Leases in memory, by the time of the event loop."""

    def __init__(self) -> None:
        self.holder, self.fence, self.until_s = "", 0, 0.0
        self.is_down = False
        self.answers = asyncio.Event()
        self.answers.set()

    async def acquire(self, name: str, holder: str, lease_ms: int) -> LeaderLease:
        await self.answers.wait()
        if self.is_down:
            raise StorageUnavailable
        now_s = asyncio.get_running_loop().time()
        if self.holder not in ("", holder) and self.until_s > now_s:
            return LeaderLease(self.holder, self.fence, int(1_000 * (self.until_s - now_s)))
        if self.holder != holder or self.until_s <= now_s:
            self.fence += 1
        self.holder, self.until_s = holder, now_s + lease_ms / 1_000
        return LeaderLease(holder, self.fence, lease_ms)

    async def release(self, name: str, holder: str) -> None:
        if self.holder == holder:
            self.until_s = 0.0


class Candidate:
    """A candidate, and what it did."""

    def __init__(self, leases: Leases, holder: str) -> None:
        self.election = LeaderElection(leases, "maintenance", holder, LeaseTimes(400, 50, 100))
        self.fences: list[int] = []
        self.leads, self.stopped = asyncio.Event(), asyncio.Event()
        self.stopped_at_s = 0.0
        self.task = asyncio.create_task(self.election.run(self.lead))

    async def lead(self, fence: int) -> None:
        self.fences.append(fence)
        self.leads.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped_at_s = asyncio.get_running_loop().time()
            self.leads.clear()
            self.stopped.set()


@pytest.fixture
async def leases():
    return Leases()


@pytest.fixture
async def candidates(leases):
    started = [Candidate(leases, "one")]
    await started[0].leads.wait()
    started.append(Candidate(leases, "two"))
    yield started
    await end(*(candidate.task for candidate in started))


async def test_one_candidate_leads_and_renews(leases, candidates):
    first, second = candidates
    until_s = leases.until_s
    await asyncio.sleep(0.2)

    assert leases.until_s > until_s
    assert (first.election.is_leader, second.election.is_leader) == (True, False)
    assert (first.fences, second.fences) == ([1], [])


async def test_lease_is_released_when_leader_stops(leases, candidates):
    first, second = candidates
    await end(first.task)
    async with asyncio.timeout(0.3):  # less than a lease
        await second.leads.wait()

    assert first.stopped.is_set()
    assert second.fences == [2]


@pytest.mark.parametrize("outage", ["raises", "hangs"])
async def test_leader_stops_before_lease_that_is_not_renewed_ends(leases, candidates, outage):
    first, second = candidates
    if outage == "raises":
        leases.is_down = True
    else:
        leases.answers.clear()
    async with asyncio.timeout(PATIENCE_S):
        await first.stopped.wait()

    assert first.stopped_at_s < leases.until_s
    leases.is_down = False
    leases.answers.set()
    async with asyncio.timeout(PATIENCE_S):
        leading = [asyncio.create_task(one.leads.wait()) for one in (first, second)]
        await asyncio.wait(leading, return_when=asyncio.FIRST_COMPLETED)
        await end(*leading)


async def test_leader_stops_when_other_candidate_has_lease(leases, candidates):
    """A leader that was suspended finds out at its next renewal."""
    first, _ = candidates
    leases.holder, leases.fence, leases.until_s = "three", 7, leases.until_s + 60
    async with asyncio.timeout(PATIENCE_S):
        await first.stopped.wait()

    assert not first.election.is_leader


async def test_error_of_leading_ends_candidate(leases):
    async def fail(fence: int) -> None:
        raise ValueError("bug")

    election = LeaderElection(leases, "maintenance", "one")
    with pytest.raises(ValueError, match="bug"):
        await election.run(fail)

    assert leases.until_s == 0.0
