"""Pure rules of the archive: due logs, retention, compaction and missing offsets."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain import limits
from storage.domain.archive import (
    ArchivedFile,
    Backlog,
    LogBounds,
    LogRange,
    hot_bounds,
    hour_of,
    is_due,
    lane_of,
    ranges_of,
    retired,
    to_compact,
    unarchived_bytes_max,
    unexplained,
)
from storage.domain.streams.stream import StreamSpec

NOW = 1_700_000_000_000
HOUR_AGO = (hour_of(NOW) - 1) * limits.HOUR_MS
LAG = 5 * limits.MINUTE_MS


def file(first: int, next_offset: int, **facts) -> ArchivedFile:
    fields = {
        "file_id": f"{first}",
        "stream_id": "s",
        "shard": 0,
        "records": next_offset - first,
        "log_bytes": 1_000,
        "file_bytes": 500,
        "first_arrival_ms": HOUR_AGO,
        "last_arrival_ms": HOUR_AGO,
        "path": f"{first}",
        "digest": b"",
    }
    return ArchivedFile(first_offset=first, next_offset=next_offset, **{**fields, **facts})


@pytest.mark.parametrize(
    ("backlog", "closed", "due"),
    [
        (Backlog(5, 5, 0, -1), False, False),
        (Backlog(5, 5, 0, -1), True, False),
        (Backlog(0, 9, 900, LAG - 1), False, False),
        (Backlog(0, 9, 900, LAG), False, True),
        (Backlog(0, 9, limits.ARCHIVE_FILE_BYTES, 0), False, True),
        (Backlog(0, 9, 900, 0), True, True),
    ],
)
def test_log_is_due_by_size_age_or_closing(backlog, closed, due):
    assert is_due(backlog, LAG, None, closed=closed) is due


def test_small_budget_makes_log_due_early():
    budget = unarchived_bytes_max(8 * limits.MIB)
    assert budget == 4 * limits.MIB

    assert is_due(Backlog(0, 9, budget // 4, 0), LAG, budget, closed=False)


def test_log_is_divided_into_contiguous_ranges():
    log = LogRange("default", "s", 0, "l", 7, 3 * limits.ARCHIVE_RANGE_RECORDS)

    pieces = ranges_of(log)

    assert [pieces[0].first, pieces[-1].next] == [log.first, log.next]
    assert all(one.next == other.first for one, other in itertools.pairwise(pieces))


def test_ranges_per_log_are_limited():
    log = LogRange("default", "s", 0, "l", 0, 10**9)

    assert len(ranges_of(log)) == limits.ARCHIVE_RANGES_PER_LOG


def test_stream_always_maps_to_same_lane():
    assert {lane_of(f"{number}") for number in range(100)} == set(
        range(limits.ARCHIVE_JOBS_PER_NAMESPACE)
    )
    assert lane_of("a") == lane_of("a")


SPANS = st.lists(st.integers(0, 60), unique=True, max_size=10).map(
    lambda edges: list(
        zip(sorted(edges)[: len(edges) // 2 * 2 : 2], sorted(edges)[1::2], strict=True)
    )
)


@given(SPANS, SPANS)
def test_unexplained_offsets_are_missing_minus_known_holes(missing, known):
    def offsets(spans):
        return {offset for first, last in spans for offset in range(first, last)}

    assert offsets(unexplained(missing, known)) == offsets(missing) - offsets(known)


def test_hot_bounds_are_the_stricter_of_hot_and_total_retention():
    spec = StreamSpec(
        retention_ms=1_000, retention_bytes=None, hot_retention_ms=5_000, hot_bytes_max=70
    )

    assert hot_bounds(spec, archived=True) == LogBounds(1_000, 70, None)
    assert hot_bounds(spec, archived=False) == LogBounds(1_000, None, None)


def test_file_is_retired_when_entirely_past_a_bound():
    files = [file(0, 10), file(10, 20), file(20, 30, last_arrival_ms=NOW)]

    def kept(**spec):
        gone = retired(
            files,
            spec=StreamSpec(**{"retention_ms": None, **spec}),
            start=0,
            next_offset=35,
            now_ms=NOW,
        )
        return [each_file.first_offset for each_file in files if each_file not in gone]

    assert kept() == [0, 10, 20]
    assert kept(retention_ms=NOW - HOUR_AGO) == [20]
    assert kept(retention_ms=NOW - HOUR_AGO + 1) == [0, 10, 20]
    assert kept(retention_records=16) == [10, 20]
    assert kept(retention_records=15) == [20]
    assert kept(retention_bytes=1_000) == [20]
    assert kept(retention_bytes=1_001) == [10, 20]


def test_truncation_retires_only_complete_files():
    files = [file(0, 10), file(10, 20)]

    assert retired(files, spec=StreamSpec(), start=15, next_offset=20, now_ms=HOUR_AGO) == files[:1]


def test_small_adjacent_files_of_past_hour_are_compacted():
    files = [file(nth * 10, nth * 10 + 10) for nth in range(4)]

    assert to_compact(files, NOW) == [files]
    assert to_compact(files[:3], NOW) == []
    assert to_compact(files, HOUR_AGO + limits.HOUR_MS + limits.COMPACT_AFTER_MS - 1) == []


def test_files_of_different_hours_are_not_compacted():
    earlier = HOUR_AGO - limits.HOUR_MS
    files = [
        *(file(nth, nth + 1, first_arrival_ms=earlier) for nth in range(4)),
        *(file(nth, nth + 1) for nth in range(4, 8)),
    ]

    assert to_compact(files, NOW) == [files[:4], files[4:]]


def test_large_file_is_not_compacted_and_separates_runs():
    large = limits.COMPACT_BELOW_BYTES
    files = [file(nth, nth + 1, log_bytes=large if nth == 4 else 1_000) for nth in range(9)]

    assert to_compact(files, NOW) == [files[:4], files[5:]]


def test_compacted_file_stays_below_size_limit():
    each = limits.COMPACT_BELOW_BYTES - 1
    files = [file(nth, nth + 1, log_bytes=each) for nth in range(10)]

    runs = to_compact(files, NOW)

    assert [len(run) for run in runs] == [4, 4]
