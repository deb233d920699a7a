"""State transitions of jobs: the rules of `storage.domain.jobs`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from storage.domain import limits
from storage.domain.errors import JobRefused
from storage.domain.jobs import (
    Job,
    JobCommand,
    JobKind,
    JobState,
    JobStatus,
    RequestedState,
    WaitReason,
    apply_command,
    failed,
    released,
    wait_after_ms,
)

QUEUED, RUNNING, PAUSED = JobState.QUEUED, JobState.RUNNING, JobState.PAUSED
DONE, FAILED, CANCELLED = JobState.DONE, JobState.FAILED, JobState.CANCELLED

JOB = Job(
    job_id="j",
    namespace="default",
    kind=JobKind.ARCHIVE,
    subject="",
    spec={},
    state=RUNNING,
    requested_state=RequestedState.NONE,
    attempt=1,
    failures=0,
    attempts_max=3,
    run_after_ms=0,
    worker="w",
    progress={},
    failure="",
    created_at_ms=0,
    started_at_ms=0,
    ended_at_ms=None,
)


@pytest.mark.parametrize(
    ("word", "now", "after"),
    [
        (JobCommand.PAUSE, JobStatus(QUEUED), JobStatus(PAUSED)),
        (JobCommand.PAUSE, JobStatus(PAUSED), JobStatus(PAUSED)),
        (JobCommand.PAUSE, JobStatus(RUNNING), JobStatus(RUNNING, RequestedState.PAUSE)),
        (JobCommand.RESUME, JobStatus(PAUSED), JobStatus(QUEUED)),
        (JobCommand.RESUME, JobStatus(QUEUED), JobStatus(QUEUED)),
        (JobCommand.RESUME, JobStatus(RUNNING, RequestedState.PAUSE), JobStatus(RUNNING)),
        (JobCommand.CANCEL, JobStatus(QUEUED), JobStatus(CANCELLED)),
        (JobCommand.CANCEL, JobStatus(PAUSED), JobStatus(CANCELLED)),
        (JobCommand.CANCEL, JobStatus(CANCELLED), JobStatus(CANCELLED)),
        (
            JobCommand.CANCEL,
            JobStatus(RUNNING, RequestedState.PAUSE),
            JobStatus(RUNNING, RequestedState.CANCEL),
        ),
        (JobCommand.RETRY, JobStatus(FAILED), JobStatus(QUEUED)),
    ],
)
def test_command_changes_idle_job_or_is_noted_for_running_job(word, now, after):
    assert apply_command(word, now, is_leased=now.state is RUNNING) == after


@pytest.mark.parametrize(
    ("word", "now"),
    [
        *((word, JobStatus(DONE)) for word in JobCommand),
        (JobCommand.PAUSE, JobStatus(FAILED)),
        (JobCommand.RESUME, JobStatus(CANCELLED)),
        (JobCommand.CANCEL, JobStatus(FAILED)),
        (JobCommand.RETRY, JobStatus(RUNNING)),
        (JobCommand.RETRY, JobStatus(CANCELLED)),
        (JobCommand.PAUSE, JobStatus(RUNNING, RequestedState.CANCEL)),
        (JobCommand.RESUME, JobStatus(RUNNING, RequestedState.CANCEL)),
    ],
)
def test_invalid_command_is_rejected(word, now):
    with pytest.raises(JobRefused):
        apply_command(word, now, is_leased=True)


@pytest.mark.parametrize(
    ("word", "after"), [(JobCommand.PAUSE, PAUSED), (JobCommand.CANCEL, CANCELLED)]
)
def test_running_job_with_expired_lease_stops_immediately(word, after):
    assert apply_command(word, JobStatus(RUNNING), is_leased=False) == JobStatus(after)


@given(
    now=st.builds(JobStatus, st.sampled_from(JobState), st.sampled_from(RequestedState)),
    word=st.sampled_from(JobCommand),
    held=st.booleans(),
)
def test_commands_are_idempotent(now, word, held):
    try:
        once = apply_command(word, now, is_leased=held)
    except JobRefused:
        return
    if word is JobCommand.RETRY:
        return  # the job is queued then, not failed

    assert apply_command(word, once, is_leased=held) == once


@pytest.mark.parametrize(
    ("requested_state", "state"),
    [
        (RequestedState.NONE, QUEUED),
        (RequestedState.PAUSE, PAUSED),
        (RequestedState.CANCEL, CANCELLED),
    ],
)
def test_released_job_follows_the_request_without_a_failure(requested_state, state):
    outcome = released(replace(JOB, requested_state=requested_state, failures=2))

    assert (outcome.state, outcome.failures, outcome.wait_ms) == (state, 2, 0)


def test_failed_attempt_is_retried_with_back_off_up_to_limit():
    first = failed(JOB, "no", retry=True, first_wait_ms=100)
    second = failed(replace(JOB, failures=1), "no", retry=True, first_wait_ms=100)
    third = failed(replace(JOB, failures=2), "no", retry=True, first_wait_ms=100)

    assert (first.state, first.wait_ms) == (QUEUED, 100)
    assert (second.state, second.wait_ms) == (QUEUED, 200)
    assert (third.state, third.failures, third.failure) == (FAILED, 3, "no")


def test_permanent_failure_is_not_retried():
    assert failed(JOB, "no", retry=False, first_wait_ms=100).state is FAILED


def test_failed_attempt_is_not_retried_when_cancelled():
    outcome = failed(
        replace(JOB, requested_state=RequestedState.CANCEL), "no", retry=True, first_wait_ms=100
    )

    assert outcome.state is CANCELLED


@given(failures=st.integers(1, 10_000))
def test_back_off_grows_up_to_its_limit(failures):
    wait_ms = wait_after_ms(failures, limits.JOB_BACKOFF_MS_MIN)

    assert limits.JOB_BACKOFF_MS_MIN <= wait_ms <= limits.JOB_BACKOFF_MS_MAX
    assert wait_ms <= wait_after_ms(failures + 1, limits.JOB_BACKOFF_MS_MIN)


def queued_job(state=QUEUED, run_after_ms=0, **progress):
    return replace(JOB, state=state, run_after_ms=run_after_ms, progress=progress)


@pytest.mark.parametrize(
    ("job", "has_worker", "reason"),
    [
        (queued_job(), False, WaitReason.WORKER),
        (queued_job(waiting_for="readers"), False, WaitReason.WORKER),
        (queued_job(waiting_for="readers"), True, WaitReason.READERS),
        (queued_job(), True, WaitReason.CAPACITY),
        (queued_job(run_after_ms=59_000), True, None),
        (queued_job(run_after_ms=90_000), True, None),
        (queued_job(JobState.RUNNING), False, None),
        (queued_job(JobState.RUNNING, waiting_for="spark"), True, WaitReason.SPARK),
        (queued_job(JobState.RUNNING, waiting_for="readers"), True, None),
        (queued_job(JobState.PAUSED), False, None),
    ],
)
def test_reason_to_wait_is_derived(job, has_worker, reason):
    assert job.waiting_for(60_000, has_worker=has_worker) is reason
