"""Jobs over a real Postgres. Its clock decides; a test moves time by moving what the rows say."""

import asyncio

import psycopg
import pytest

from storage.bootstrap import open_storage
from storage.domain.errors import JobNotFound, JobRefused, NamespaceNotFound, ValidationFailed
from storage.domain.jobs import Claim, JobKind, JobPart, JobState, LeaseLost, Outcome, Wish
from storage.postgres.database import conninfo, open_database
from storage.postgres.repositories.jobs import ended, let_go
from storage.settings import StorageSettings

pytestmark = pytest.mark.one_store

KINDS = [JobKind.ARCHIVE, JobKind.REPLAY]


@pytest.fixture
def jobs(engines):
    return engines.jobs


@pytest.fixture
def later(database_url):
    """Let time pass for all jobs."""

    def move(ms: int) -> None:
        with psycopg.connect(conninfo(database_url)) as connection:
            connection.execute(
                "update jobs set run_after_ms = run_after_ms - %(ms)s,"
                " lease_until_ms = lease_until_ms - %(ms)s, ended_at_ms = ended_at_ms - %(ms)s",
                {"ms": ms},
            )

    return move


def submit(jobs, subject="logs", kind=JobKind.ARCHIVE, **options):
    return jobs.submit("default", kind, subject, {"n": 1}, **options)


async def test_a_job_is_queued_and_given_to_the_worker_that_asks(jobs):
    made = await submit(jobs)

    claimed = await jobs.claim("w1", KINDS)

    assert (made.state, made.attempt, made.spec) == (JobState.QUEUED, 0, {"n": 1})
    assert (claimed.state, claimed.job_id) == (JobState.RUNNING, made.job_id)
    assert claimed.claim == Claim(made.job_id, 1, "w1")
    assert claimed.started_at_ms >= made.created_at_ms
    assert await jobs.claim("w2", KINDS) is None


async def test_a_worker_is_given_only_what_it_can_do(jobs):
    await submit(jobs, kind=JobKind.COMPACT)

    assert await jobs.claim("w1", KINDS) is None


async def test_of_one_kind_namespace_and_subject_one_job_is_open(jobs):
    first = await submit(jobs)

    with pytest.raises(JobRefused) as refused:
        await submit(jobs)

    assert refused.value.facts["job_id"] == first.job_id
    assert (await submit(jobs, take_open=True)).job_id == first.job_id
    assert (await submit(jobs, "others")).job_id != first.job_id
    assert (await jobs.open_of("default", JobKind.ARCHIVE, "logs")).job_id == first.job_id


async def test_when_a_job_is_over_another_may_be_submitted(jobs):
    await submit(jobs)
    claimed = await jobs.claim("w1", KINDS)
    await jobs.finish(claimed.claim, progress={"files": 3})

    again = await submit(jobs)

    assert (await jobs.get(claimed.job_id)).progress == {"files": 3}
    assert again.job_id != claimed.job_id


async def test_submitting_with_an_id_may_be_repeated(jobs):
    first = await submit(jobs, job_id="replay-1")
    await jobs.cancel("replay-1")

    again = await submit(jobs, job_id="replay-1")

    assert (again.job_id, again.state) == (first.job_id, JobState.CANCELLED)
    with pytest.raises(JobRefused):
        await submit(jobs, "others", job_id="replay-1")


async def test_a_namespace_that_is_not_there_has_no_jobs(jobs):
    with pytest.raises(NamespaceNotFound, match="fresh"):
        await jobs.submit("fresh", JobKind.ARCHIVE, "logs", {})


async def test_many_submit_at_once_and_one_job_is_open(jobs):
    made = await asyncio.gather(*(submit(jobs, take_open=True) for _ in range(20)))

    assert len({job.job_id for job in made}) == 1


async def test_workers_that_race_are_given_each_job_once(redis_url, database_url):
    settings = StorageSettings(redis_url=redis_url, database_url=database_url)
    async with open_storage(settings) as one, open_storage(settings) as two:
        wanted = {(await submit(one.jobs, f"s{n}")).job_id for n in range(60)}

        async def work(jobs, worker):
            given = []
            while (claimed := await jobs.claim(worker, KINDS)) is not None:
                given.append(claimed.job_id)
                await jobs.finish(claimed.claim)
            return given

        given = await asyncio.gather(
            work(one.jobs, "w1"), work(one.jobs, "w2"), work(two.jobs, "w3"), work(two.jobs, "w4")
        )

    everything = [job_id for some in given for job_id in some]
    assert len(everything) == 60
    assert set(everything) == wanted
    assert sum(bool(some) for some in given) > 1


async def test_a_delayed_job_is_due_later(jobs, later):
    await submit(jobs, delay_ms=5_000)
    assert await jobs.claim("w1", KINDS) is None

    later(5_000)

    assert await jobs.claim("w1", KINDS) is not None


async def test_a_job_whose_lease_ran_out_is_begun_again_and_the_old_attempt_writes_nothing(
    jobs, later
):
    await submit(jobs)
    stale = (await jobs.claim("w1", KINDS)).claim
    later(60_000)

    taken = await jobs.claim("w2", KINDS)

    assert (taken.attempt, taken.failures, taken.worker) == (2, 1, "w2")
    for write in (
        jobs.heartbeat(stale, {"n": 9}),
        jobs.finish(stale),
        jobs.fail(stale, "no"),
        jobs.give_back(stale),
        jobs.save_parts(stale, [JobPart("0", 5, False, {})]),
    ):
        with pytest.raises(LeaseLost):
            await write
    found = await jobs.get(taken.job_id)
    assert (found.state, found.progress) == (JobState.RUNNING, {})
    assert await jobs.parts(taken.job_id) == {}


async def test_the_same_worker_s_earlier_attempt_is_stale_as_well(jobs, later):
    await submit(jobs)
    stale = (await jobs.claim("w1", KINDS)).claim
    later(60_000)
    await jobs.claim("w1", KINDS)

    with pytest.raises(LeaseLost):
        await jobs.heartbeat(stale)


async def test_a_heartbeat_renews_the_lease_and_stores_progress(jobs, later):
    await submit(jobs)
    claimed = await jobs.claim("w1", KINDS)
    later(50_000)

    wish = await jobs.heartbeat(claimed.claim, {"records": 7})
    later(50_000)

    assert wish is Wish.NONE
    assert await jobs.claim("w2", KINDS) is None
    assert (await jobs.get(claimed.job_id)).progress == {"records": 7}


async def test_a_late_heartbeat_keeps_a_job_that_nobody_took(jobs, later):
    await submit(jobs)
    claimed = await jobs.claim("w1", KINDS)
    later(90_000)

    await jobs.heartbeat(claimed.claim)

    assert await jobs.claim("w2", KINDS) is None


async def test_a_job_that_loses_its_worker_every_time_fails_in_the_end(jobs, later):
    made = await submit(jobs, attempts_max=3)
    for _ in range(3):
        assert await jobs.claim("w1", KINDS) is not None
        later(60_000)

    assert await jobs.claim("w1", KINDS) is None
    found = await jobs.get(made.job_id)
    assert (found.state, found.failures, found.attempt) == (JobState.FAILED, 3, 3)
    assert found.failure == "Its worker was lost."


async def test_a_worker_that_comes_back_to_a_job_that_was_ended_for_it_is_told(jobs, later):
    await submit(jobs, attempts_max=1)
    stale = (await jobs.claim("w1", KINDS)).claim
    later(60_000)
    await jobs.claim("w2", KINDS)

    with pytest.raises(LeaseLost):
        await jobs.finish(stale)


async def test_a_job_that_gets_further_each_time_never_runs_out_of_attempts(jobs, later):
    await submit(jobs, attempts_max=2)
    for n in range(5):
        claimed = await jobs.claim("w1", KINDS)
        await jobs.save_parts(claimed.claim, [JobPart("0", n, False, {"records": n})])
        later(60_000)

    assert (await jobs.claim("w1", KINDS)).attempt == 6


async def test_an_error_is_followed_by_waits_that_grow(jobs, later):
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
    found = await jobs.get(first.job_id)
    assert (found.failures, found.failure) == (3, "no, thrice")


async def test_an_error_that_will_not_pass_ends_the_job(jobs):
    await submit(jobs)
    claimed = await jobs.claim("w1", KINDS)

    assert await jobs.fail(claimed.claim, "no such stream", retry=False) is JobState.FAILED


async def test_a_failed_job_can_be_tried_again_unless_another_took_its_place(jobs):
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


async def test_the_end_of_an_attempt_may_be_said_twice(jobs):
    for say in (
        lambda claim: jobs.finish(claim),
        lambda claim: jobs.give_back(claim),
        lambda claim: jobs.fail(claim, "no"),
    ):
        made = await submit(jobs)
        claimed = await jobs.claim("w1", KINDS)

        first = await say(claimed.claim)
        again = await say(claimed.claim)

        assert first == again == (await jobs.get(made.job_id)).state
        await jobs.cancel(made.job_id) if not first.is_over else None


async def test_a_queued_job_is_paused_resumed_and_cancelled_at_once(jobs):
    made = await submit(jobs)

    assert (await jobs.pause(made.job_id)).state is JobState.PAUSED
    assert await jobs.claim("w1", KINDS) is None
    assert (await jobs.resume(made.job_id)).state is JobState.QUEUED
    cancelled = await jobs.cancel(made.job_id)
    assert (cancelled.state, cancelled.ended_at_ms is None) == (JobState.CANCELLED, False)
    assert await jobs.claim("w1", KINDS) is None


@pytest.mark.parametrize(
    ("word", "wish", "state"),
    [("pause", Wish.PAUSE, JobState.PAUSED), ("cancel", Wish.CANCEL, JobState.CANCELLED)],
)
async def test_a_running_job_stops_where_its_owner_wishes(jobs, word, wish, state):
    made = await submit(jobs)
    claimed = await jobs.claim("w1", KINDS)

    told = await getattr(jobs, word)(made.job_id)
    seen = await jobs.heartbeat(claimed.claim)
    stopped = await jobs.give_back(claimed.claim, {"records": 4})

    assert (told.state, told.wish, seen, stopped) == (JobState.RUNNING, wish, wish, state)
    found = await jobs.get(made.job_id)
    assert (found.wish, found.progress) == (Wish.NONE, {"records": 4})


async def test_a_pause_that_is_taken_back_before_the_worker_stops_queues_the_job(jobs):
    made = await submit(jobs)
    claimed = await jobs.claim("w1", KINDS)
    await jobs.pause(made.job_id)
    await jobs.heartbeat(claimed.claim)

    await jobs.resume(made.job_id)

    assert await jobs.give_back(claimed.claim) is JobState.QUEUED
    assert (await jobs.claim("w2", KINDS)).attempt == 2


async def test_a_wish_stands_when_the_worker_is_lost(jobs, later):
    made = await submit(jobs)
    claimed = await jobs.claim("w1", KINDS)
    await jobs.pause(made.job_id)
    later(60_000)

    assert await jobs.claim("w2", KINDS) is None

    assert (await jobs.get(made.job_id)).state is JobState.PAUSED
    with pytest.raises(LeaseLost):
        await jobs.give_back(claimed.claim)


async def test_a_lost_workers_job_is_cancelled_at_once(jobs, later):
    made = await submit(jobs)
    stale = (await jobs.claim("w1", KINDS)).claim
    later(60_000)

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


async def test_too_many_parts_at_once_are_refused(jobs):
    await submit(jobs)
    claimed = await jobs.claim("w1", KINDS)

    with pytest.raises(ValidationFailed):
        await jobs.save_parts(claimed.claim, [JobPart(str(n), 0, False, {}) for n in range(1_001)])


async def test_jobs_are_listed_page_by_page_the_newest_first(jobs):
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


async def test_what_was_over_long_ago_is_forgotten_with_its_parts(jobs, later):
    made = await submit(jobs)
    claimed = await jobs.claim("w1", KINDS)
    await jobs.save_parts(claimed.claim, [JobPart("0", 1, True, {})])
    await jobs.finish(claimed.claim)
    open_one = await submit(jobs)

    assert await jobs.forget_old() == 0
    later(31 * 24 * 3_600_000)

    assert await jobs.forget_old() == 1
    with pytest.raises(JobNotFound):
        await jobs.get(made.job_id)
    assert await jobs.parts(made.job_id) == {}
    assert (await jobs.get(open_one.job_id)).state is JobState.QUEUED


async def test_a_job_ends_together_with_what_its_attempt_writes_or_not_at_all(database_url, jobs):
    made = await submit(jobs)
    claim = (await jobs.claim("w1", KINDS)).claim
    settings = StorageSettings(redis_url="", database_url=database_url)
    done = Outcome(state=JobState.DONE)
    async with open_database(settings) as database:

        async def write(then):
            async with database.writing() as session:
                before = await ended(session, claim)
                await let_go(session, claim, {"files": 1}, lambda _: done)
                return then(before)

        with pytest.raises(ZeroDivisionError):
            await write(lambda _: 1 / 0)
        undone = await jobs.get(made.job_id)
        first = await write(str)
        again = await write(str)

    assert (undone.state, undone.progress) == (JobState.RUNNING, {})
    assert (first, again) == ("None", "done")
    assert (await jobs.get(made.job_id)).progress == {"files": 1}
