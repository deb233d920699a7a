"""Leases of jobs, and the locks by which others see that a worker runs."""

import asyncio

import psycopg
import pytest

from storage.bootstrap import open_storage
from storage.domain import limits
from storage.domain.jobs import JobPart, JobState, LeaseLost, RequestedState
from storage.postgres.database import conninfo
from tests.conditions import wait_until
from tests.databases import execute
from tests.integration.jobs.operations import KINDS, claim, submit

pytestmark = pytest.mark.one_store

_HOLDERS = """
    SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock' AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


def holders(database_url):
    """Return the processes of Postgres that hold the lock of a worker."""
    with psycopg.connect(conninfo(database_url)) as connection:
        return [pid for (pid,) in connection.execute(_HOLDERS)]


async def interrupt_worker(database_url):
    """End the listening connection of the only worker; wait until it holds its lock again."""
    [former] = holders(database_url)
    execute(database_url, f"SELECT pg_terminate_backend({former})")
    await asyncio.to_thread(wait_until, lambda: holders(database_url) not in ([], [former]))


async def test_job_with_expired_lease_restarts_and_fences_old_claim(jobs, later):
    await submit(jobs)
    stale = (await jobs.claim("w1", KINDS)).claim
    later(limits.JOB_LEASE_MS)

    claim = await jobs.claim("w2", KINDS)

    assert (claim.attempt, claim.failures, claim.worker) == (2, 1, "w2")
    for write in (
        jobs.heartbeat(stale, {"n": 9}),
        jobs.finish(stale),
        jobs.fail(stale, "no"),
        jobs.release(stale),
        jobs.save_parts(stale, [JobPart("0", 5, False, {})]),
    ):
        with pytest.raises(LeaseLost):
            await write
    job = await jobs.get(claim.job_id)
    assert (job.state, job.progress) == (JobState.RUNNING, {})
    assert await jobs.parts(claim.job_id) == {}


async def test_job_of_lost_worker_is_taken_over_before_its_lease_ends(jobs, later, settings):
    """Once its connection has ended and no heartbeat has come for a while; not on either alone."""
    await submit(jobs)
    async with open_storage(settings, worker="w1") as other:
        lease = (await claim(other.jobs)).claim
        later(limits.JOB_ORPHANED_MS)
        assert await jobs.claim("w2", KINDS) is None
        await other.jobs.heartbeat(lease)
    assert await jobs.claim("w2", KINDS) is None
    later(limits.JOB_ORPHANED_MS)

    taken = await jobs.claim("w2", KINDS)

    assert (taken.attempt, taken.failures, taken.worker) == (2, 1, "w2")
    with pytest.raises(LeaseLost):
        await jobs.heartbeat(lease)


async def test_worker_that_was_disconnected_waits_for_leases(jobs, later, settings):
    """An outage of Postgres ends the connections of all workers: others may not have theirs back."""
    await submit(jobs)
    async with open_storage(settings, worker="w1") as other:
        await other.jobs.claim("w1", KINDS)
    later(limits.JOB_ORPHANED_MS)
    async with open_storage(settings, worker="w2") as other:
        await interrupt_worker(settings.database_url)

        assert await other.jobs.claim("w2", KINDS) is None
        later(limits.JOB_LEASE_MS - limits.JOB_ORPHANED_MS)
        assert await other.jobs.claim("w2", KINDS) is not None


async def test_worker_holds_its_lock_again_once_it_is_connected(jobs, later, settings):
    await submit(jobs)
    async with open_storage(settings, worker="w1") as other:
        await other.jobs.claim("w1", KINDS)
        await interrupt_worker(settings.database_url)
        later(limits.JOB_ORPHANED_MS)

        assert await jobs.claim("w2", KINDS) is None


@pytest.mark.parametrize("worker_lock", [None, "w0"])
async def test_lease_of_worker_without_a_lock_ends_by_time_alone(
    jobs, later, worker_lock, database_url
):
    """Of an earlier version, which leaves the lock of a former worker in the row."""
    await submit(jobs)
    await jobs.claim("w1", KINDS)
    with psycopg.connect(conninfo(database_url)) as connection:
        connection.execute("update jobs set worker_lock = %s", (worker_lock,))

    later(limits.JOB_LEASE_MS - limits.JOB_HEARTBEAT_MS)
    assert await jobs.claim("w2", KINDS) is None
    later(limits.JOB_HEARTBEAT_MS)
    assert (await jobs.claim("w2", KINDS)).attempt == 2


async def test_abandoned_job_of_lost_worker_ends_before_its_lease(jobs, later, settings):
    await submit(jobs)
    async with open_storage(settings, worker="w1") as other:
        job = await claim(other.jobs)
        await jobs.cancel(job.job_id)
    later(limits.JOB_ORPHANED_MS)

    assert await jobs.claim("w2", KINDS) is None
    assert (await jobs.get(job.job_id)).state is JobState.CANCELLED


async def test_earlier_attempt_of_same_worker_is_stale(jobs, later):
    await submit(jobs)
    stale = (await jobs.claim("w1", KINDS)).claim
    later(limits.JOB_LEASE_MS)
    await jobs.claim("w1", KINDS)

    with pytest.raises(LeaseLost):
        await jobs.heartbeat(stale)


async def test_heartbeat_renews_lease_and_stores_progress(jobs, later):
    await submit(jobs)
    job = await jobs.claim("w1", KINDS)
    later(limits.JOB_LEASE_MS - 5_000)

    wish = await jobs.heartbeat(job.claim, {"records": 7})
    later(limits.JOB_LEASE_MS - 5_000)

    assert wish is RequestedState.NONE
    assert await jobs.claim("w2", KINDS) is None
    assert (await jobs.get(job.job_id)).progress == {"records": 7}


async def test_late_heartbeat_keeps_unclaimed_job(jobs, later):
    await submit(jobs)
    job = await jobs.claim("w1", KINDS)
    later(limits.JOB_LEASE_MS + 30_000)

    await jobs.heartbeat(job.claim)

    assert await jobs.claim("w2", KINDS) is None


async def test_job_that_always_loses_its_worker_fails(jobs, later):
    made = await submit(jobs, attempts_max=3)
    for _ in range(3):
        assert await jobs.claim("w1", KINDS) is not None
        later(limits.JOB_LEASE_MS)

    assert await jobs.claim("w1", KINDS) is None
    job = await jobs.get(made.job_id)
    assert (job.state, job.failures, job.attempt) == (JobState.FAILED, 3, 3)
    assert job.failure == "The worker was lost."


async def test_stale_worker_of_ended_job_is_rejected(jobs, later):
    await submit(jobs, attempts_max=1)
    stale = (await jobs.claim("w1", KINDS)).claim
    later(limits.JOB_LEASE_MS)
    await jobs.claim("w2", KINDS)

    with pytest.raises(LeaseLost):
        await jobs.finish(stale)


async def test_progress_resets_attempts(jobs, later):
    await submit(jobs, attempts_max=2)
    for n in range(5):
        job = await jobs.claim("w1", KINDS)
        await jobs.save_parts(job.claim, [JobPart("0", n, False, {"records": n})])
        later(limits.JOB_LEASE_MS)

    assert (await jobs.claim("w1", KINDS)).attempt == 6
