"""Jobs over a real Postgres, whose clock decides; tests shift the stored times."""

import asyncio

import pytest

from storage.bootstrap import open_storage
from storage.domain import limits
from storage.domain.errors import JobNotFound, JobRefused, NamespaceNotFound, ValidationFailed
from storage.domain.jobs import (
    CALL_KINDS,
    WAITING_FOR,
    JobKind,
    JobLease,
    JobPart,
    JobState,
    LeaseLost,
    Outcome,
    RequestedState,
)
from storage.postgres.database import open_database
from storage.postgres.repositories.jobs import attempt_outcome, end_attempt
from storage.settings import StorageSettings
from tests.integration.jobs.operations import KINDS, submit

pytestmark = pytest.mark.one_store


@pytest.mark.parametrize("kind", JobKind)
async def test_failed_jobs_leave_out_those_of_calls(jobs, kind):
    await submit(jobs, kind=kind, attempts_max=1)
    await jobs.fail((await jobs.claim("w1", [kind])).claim, "boom", retry=False)

    failed = await jobs.failed("default", 10)

    assert [job.kind for job in failed] == ([] if kind in CALL_KINDS else [kind])


async def test_job_is_queued_and_claimed(jobs):
    made = await submit(jobs)

    claimed = await jobs.claim("w1", KINDS)

    assert (made.state, made.attempt, made.spec) == (JobState.QUEUED, 0, {"n": 1})
    assert (claimed.state, claimed.job_id) == (JobState.RUNNING, made.job_id)
    assert claimed.claim == JobLease(made.job_id, 1, "w1")
    assert claimed.started_at_ms >= made.created_at_ms
    assert await jobs.claim("w2", KINDS) is None


async def test_worker_claims_only_kinds_it_supports(jobs):
    await submit(jobs, kind=JobKind.COMPACT)

    assert await jobs.claim("w1", KINDS) is None


async def test_one_job_is_open_per_kind_namespace_and_subject(jobs):
    first = await submit(jobs)

    with pytest.raises(JobRefused) as refused:
        await submit(jobs)

    assert refused.value.facts["job_id"] == first.job_id
    assert (await submit(jobs, take_open=True)).job_id == first.job_id
    assert (await submit(jobs, "others")).job_id != first.job_id
    assert (await jobs.open_of("default", JobKind.ARCHIVE, "logs")).job_id == first.job_id


async def test_next_job_can_be_submitted_after_last_ended(jobs):
    await submit(jobs)
    claimed = await jobs.claim("w1", KINDS)
    await jobs.finish(claimed.claim, progress={"files": 3})

    again = await submit(jobs)

    assert (await jobs.get(claimed.job_id)).progress == {"files": 3}
    assert again.job_id != claimed.job_id


async def test_submit_with_id_is_idempotent(jobs):
    first = await submit(jobs, job_id="replay-1")
    await jobs.cancel("replay-1")

    again = await submit(jobs, job_id="replay-1")

    assert (again.job_id, again.state) == (first.job_id, JobState.CANCELLED)
    with pytest.raises(JobRefused):
        await submit(jobs, "others", job_id="replay-1")


async def test_unknown_namespace_has_no_jobs(jobs):
    with pytest.raises(NamespaceNotFound, match="fresh"):
        await jobs.submit("fresh", JobKind.ARCHIVE, "logs", {})


async def test_concurrent_submits_open_one_job(jobs):
    made = await asyncio.gather(*(submit(jobs, take_open=True) for _ in range(20)))

    assert len({job.job_id for job in made}) == 1


async def test_concurrent_claims_get_each_job_once(redis_url, database_url):
    settings = StorageSettings(redis_url=redis_url, database_url=database_url)
    async with open_storage(settings) as storage, open_storage(settings) as two:
        job_ids = {(await submit(storage.jobs, f"s{n}")).job_id for n in range(60)}

        async def work(jobs, worker):
            results = []
            while (claimed := await jobs.claim(worker, KINDS)) is not None:
                results.append(claimed.job_id)
                await jobs.finish(claimed.claim)
            return results

        results = await asyncio.gather(
            work(storage.jobs, "w1"),
            work(storage.jobs, "w2"),
            work(two.jobs, "w3"),
            work(two.jobs, "w4"),
        )

    everything = [job_id for some in results for job_id in some]
    assert len(everything) == 60
    assert set(everything) == job_ids
    assert sum(bool(some) for some in results) > 1


async def test_delayed_job_is_due_later(jobs, later):
    await submit(jobs, delay_ms=5_000)
    assert await jobs.claim("w1", KINDS) is None

    later(5_000)

    assert await jobs.claim("w1", KINDS) is not None


async def test_retry_delay_grows_after_errors(jobs, later):
    await submit(jobs, attempts_max=3)
    first = await jobs.claim("w1", KINDS)
    await jobs.fail(first.claim, "no")
    assert await jobs.claim("w1", KINDS) is None

    later(1_000)
    second = await jobs.claim("w1", KINDS)
    await jobs.fail(second.claim, "no again")
    later(1_000)
    too_early = await jobs.claim("w1", KINDS)
    later(1_000)
    third = await jobs.claim("w1", KINDS)
    state = await jobs.fail(third.claim, "no, thrice")

    assert too_early is None
    assert state is JobState.FAILED
    job = await jobs.get(first.job_id)
    assert (job.failures, job.failure) == (3, "no, thrice")


async def test_permanent_error_ends_job(jobs):
    await submit(jobs)
    claimed = await jobs.claim("w1", KINDS)

    assert await jobs.fail(claimed.claim, "no such stream", retry=False) is JobState.FAILED


async def test_failed_job_can_be_retried_unless_replaced(jobs):
    await submit(jobs)
    claimed = await jobs.claim("w1", KINDS)
    await jobs.fail(claimed.claim, "no", retry=False)

    retried = await jobs.retry(claimed.job_id)
    again = await jobs.claim("w1", KINDS)
    await jobs.fail(again.claim, "no", retry=False)
    await submit(jobs)

    assert (retried.state, retried.failures, retried.ended_at_ms) == (JobState.QUEUED, 0, None)
    assert again.attempt == 2
    with pytest.raises(JobRefused):
        await jobs.retry(claimed.job_id)


async def test_ending_attempt_is_idempotent(jobs):
    for say in (
        lambda claim: jobs.finish(claim),
        lambda claim: jobs.release(claim),
        lambda claim: jobs.fail(claim, "no"),
    ):
        made = await submit(jobs)
        claimed = await jobs.claim("w1", KINDS)

        first = await say(claimed.claim)
        again = await say(claimed.claim)

        assert first == again == (await jobs.get(made.job_id)).state
        await jobs.cancel(made.job_id) if not first.is_over else None


async def test_queued_job_is_paused_resumed_and_cancelled_immediately(jobs):
    made = await submit(jobs)

    assert (await jobs.pause(made.job_id)).state is JobState.PAUSED
    assert await jobs.claim("w1", KINDS) is None
    assert (await jobs.resume(made.job_id)).state is JobState.QUEUED
    cancelled = await jobs.cancel(made.job_id)
    assert (cancelled.state, cancelled.ended_at_ms is None) == (JobState.CANCELLED, False)
    assert await jobs.claim("w1", KINDS) is None


@pytest.mark.parametrize(
    ("word", "requested_state", "state"),
    [
        ("pause", RequestedState.PAUSE, JobState.PAUSED),
        ("cancel", RequestedState.CANCEL, JobState.CANCELLED),
    ],
)
async def test_running_job_stops_as_requested_by_its_owner(jobs, word, requested_state, state):
    made = await submit(jobs)
    claimed = await jobs.claim("w1", KINDS)

    told = await getattr(jobs, word)(made.job_id)
    seen = await jobs.heartbeat(claimed.claim)
    stopped = await jobs.release(claimed.claim, {"records": 4})

    assert (told.state, told.requested_state, seen, stopped) == (
        JobState.RUNNING,
        requested_state,
        requested_state,
        state,
    )
    job = await jobs.get(made.job_id)
    assert (job.requested_state, job.progress) == (RequestedState.NONE, {"records": 4})


async def test_resume_before_worker_stops_requeues_job(jobs):
    made = await submit(jobs)
    claimed = await jobs.claim("w1", KINDS)
    await jobs.pause(made.job_id)
    await jobs.heartbeat(claimed.claim)

    await jobs.resume(made.job_id)

    assert await jobs.release(claimed.claim) is JobState.QUEUED
    assert (await jobs.claim("w2", KINDS)).attempt == 2


async def test_pause_request_survives_loss_of_worker(jobs, later):
    made = await submit(jobs)
    claimed = await jobs.claim("w1", KINDS)
    await jobs.pause(made.job_id)
    later(limits.JOB_LEASE_MS)

    assert await jobs.claim("w2", KINDS) is None

    assert (await jobs.get(made.job_id)).state is JobState.PAUSED
    with pytest.raises(LeaseLost):
        await jobs.release(claimed.claim)


async def test_job_of_lost_worker_is_cancelled_immediately(jobs, later):
    made = await submit(jobs)
    stale = (await jobs.claim("w1", KINDS)).claim
    later(limits.JOB_LEASE_MS)

    assert (await jobs.cancel(made.job_id)).state is JobState.CANCELLED
    with pytest.raises(LeaseLost):
        await jobs.finish(stale)


async def test_parts_are_stored_together_and_replaced(jobs):
    made = await submit(jobs, kind=JobKind.REPLAY)
    claimed = await jobs.claim("w1", KINDS)

    await jobs.save_parts(
        claimed.claim, [JobPart("0", 5, False, {"sent": 5}), JobPart("1", 2, False, {})]
    )
    await jobs.save_parts(claimed.claim, [JobPart("0", 9, True, {"sent": 9})])

    assert await jobs.parts(made.job_id) == {
        "0": JobPart("0", 9, True, {"sent": 9}),
        "1": JobPart("1", 2, False, {}),
    }


async def test_too_many_parts_are_rejected(jobs):
    await submit(jobs)
    claimed = await jobs.claim("w1", KINDS)

    with pytest.raises(ValidationFailed):
        await jobs.save_parts(claimed.claim, [JobPart(str(n), 0, False, {}) for n in range(1_001)])


async def test_jobs_are_listed_newest_first_in_pages(jobs):
    for n in range(5):
        await submit(jobs, f"s{n}", kind=KINDS[n % 2])

    first = await jobs.list(limit=3)
    rest = await jobs.list(after=(first[-1].created_at_ms, first[-1].job_id))

    assert len(first) == 3
    assert len({job.job_id for job in [*first, *rest]}) == 5
    assert [job.created_at_ms for job in [*first, *rest]] == sorted(
        (job.created_at_ms for job in [*first, *rest]), reverse=True
    )
    assert {job.kind for job in await jobs.list(kind=JobKind.REPLAY)} == {JobKind.REPLAY}
    assert await jobs.list(state=JobState.DONE) == []
    assert await jobs.list(namespace="other") == []


@pytest.mark.parametrize("kind", [JobKind.VIEW_PLAN, JobKind.VIEW_SEARCH, JobKind.QUERY])
async def test_jobs_that_return_a_result_are_kept_for_a_day(jobs, later, kind):
    """Each page of a row's sources left a job of some kilobytes for 30 days."""
    await jobs.submit("default", kind, "subject", {})
    claimed = await jobs.claim("w1", [kind])
    await jobs.finish(claimed.claim, progress={"result": {}})

    later(23 * 3_600_000)
    assert await jobs.delete_old() == 0
    later(2 * 3_600_000)
    assert await jobs.delete_old() == 1


async def test_old_ended_jobs_are_deleted_with_their_parts(jobs, later):
    made = await submit(jobs)
    claimed = await jobs.claim("w1", KINDS)
    await jobs.save_parts(claimed.claim, [JobPart("0", 1, True, {})])
    await jobs.finish(claimed.claim)
    open_one = await submit(jobs)

    assert await jobs.delete_old() == 0
    later(31 * 24 * 3_600_000)

    assert await jobs.delete_old() == 1
    with pytest.raises(JobNotFound):
        await jobs.get(made.job_id)
    assert await jobs.parts(made.job_id) == {}
    assert (await jobs.get(open_one.job_id)).state is JobState.QUEUED


async def test_job_ends_atomically_with_writes_of_its_attempt(database_url, jobs):
    made = await submit(jobs)
    claim = (await jobs.claim("w1", KINDS)).claim
    settings = StorageSettings(redis_url="", database_url=database_url)
    done = Outcome(state=JobState.DONE)
    async with open_database(settings) as database:

        async def write(then):
            async with database.writing() as session:
                before = await attempt_outcome(session, claim)
                await end_attempt(session, claim, {"files": 1}, lambda _: done)
                return then(before)

        with pytest.raises(ZeroDivisionError):
            await write(lambda _: 1 / 0)
        undone = await jobs.get(made.job_id)
        first = await write(str)
        again = await write(str)

    assert (undone.state, undone.progress) == (JobState.RUNNING, {})
    assert (first, again) == ("None", "done")
    assert (await jobs.get(made.job_id)).progress == {"files": 1}


async def test_waiting_job_gives_its_place_back_for_a_while(jobs, later):
    waiting = await submit(jobs, "waiting")
    claimed = await jobs.claim("w", list(JobKind))

    state = await jobs.release(claimed.claim, {WAITING_FOR: "readers"}, wait_ms=5_000)
    other = await submit(jobs, "other")
    early = [await jobs.claim("w", list(JobKind)), await jobs.claim("w", list(JobKind))]
    later(6_000)
    again = await jobs.claim("w", list(JobKind))

    assert (state, claimed.job_id) == (JobState.QUEUED, waiting.job_id)
    assert [None if job is None else job.job_id for job in early] == [other.job_id, None]
    assert (again.job_id, again.failures, again.attempt) == (waiting.job_id, 0, 2)


@pytest.mark.parametrize(
    ("word", "state"), [("pause", JobState.PAUSED), ("cancel", JobState.CANCELLED)]
)
async def test_waiting_job_obeys_its_owner(jobs, word, state):
    job = await submit(jobs)
    claimed = await jobs.claim("w", list(JobKind))
    await getattr(jobs, word)(job.job_id)

    assert await jobs.release(claimed.claim, wait_ms=5_000) is state
