"""Metrics of a worker's jobs."""

import pytest
from prometheus_client import REGISTRY

from api.cli.up.worker import _count
from spark_worker.runtime.runner import _gained
from storage.domain.jobs import JobKind, JobState


def counted(name):
    return REGISTRY.get_sample_value(name) or 0


@pytest.mark.parametrize(
    ("before", "after", "gained"),
    [
        ({}, {"files": 2, "failures": []}, {"files": 2}),
        ({"sent": 5}, {"sent": 8, "read": 0}, {"sent": 3}),
        ({"sent": 5}, {"sent": 5}, {}),
        ({"sent": "five"}, {"sent": 5}, {}),
    ],
)
def test_attempt_counts_its_own_progress(before, after, gained):
    assert _gained(before, after) == gained


def test_work_of_jobs_is_counted_by_kind():
    names = [f"millstream_{what}_total" for what in ("archive_segments", "archive_bytes")]
    names += ["millstream_archive_failures_total", "millstream_replay_records_total"]
    names += ["millstream_backtest_messages_total", "millstream_query_records_total"]
    names += ["millstream_view_backtest_records_total"]
    before = [counted(name) for name in names]

    _count(JobKind.ARCHIVE, JobState.DONE, 1.0, {"files": 2, "file_bytes": 700})
    _count(JobKind.ARCHIVE, JobState.QUEUED, 1.0, {})
    _count(JobKind.REPLAY, JobState.PAUSED, 1.0, {"sent": 40})
    _count(JobKind.BACK_TEST, JobState.DONE, 1.0, {"evaluated": 7, "messages": 9})
    _count(JobKind.QUERY, JobState.DONE, 1.0, {"records": 216})
    _count(JobKind.VIEW_BACK_TEST, JobState.DONE, 1.0, {"records": 31, "records_total": 31})
    _count(JobKind.COMPACT, JobState.DONE, 1.0, {"files": 9})

    after = [counted(name) for name in names]
    gained = [now - then for now, then in zip(after, before, strict=True)]
    assert gained == [2, 700, 1, 40, 7, 216, 31]
