"""Invariants of views: V3, V4, V7, V11, V19, and V21 to V24."""

from collections import Counter, defaultdict
from collections.abc import Callable

from tests.chaos.checking.findings import Finding, Operations, answers, ok
from tests.chaos.history import READS, Kind

_SAME = {"exact": 1, "added": 0, "removed": 0, "changed": 0}
"""Comparison of equal rows of the same records."""

ENDING = 2
"""Number of the last characters that the values of a pair have in common."""

MATCH_S = 5
"""Time between a record and one of the other stream that matches it, at most."""


def rows_count_each_record_once(view: str) -> Callable[[Operations], Finding]:
    """V3, V4: the rows of a view, one for each shard, count the records that its stream has.

    The stream is the `target` of the operation.
    """

    def check(history: Operations) -> Finding:
        offsets = _offsets(history, Kind.VIEW_ROWS, view)
        expected = {str(shard): len(each) for shard, each in offsets.items()}
        rows = _counts(history, Kind.VIEW_ROWS, view)
        wrong = [
            f"shard {shard} has {expected.get(shard, 0)} records, and {view} counts {rows.get(shard, 0)}"
            for shard in sorted({*expected, *rows})
            if rows and expected.get(shard) != rows.get(shard)
        ]
        return Finding("V4 a view counts each record once", sum(rows.values()), tuple(wrong))

    return check


def sources_are_tight(view: str) -> Callable[[Operations], Finding]:
    """V7: the sources of a view's rows, one for each shard, are the records that its stream has."""

    def check(history: Operations) -> Finding:
        expected: dict[str, int] = {}
        for shard, offsets in _offsets(history, Kind.VIEW_SOURCES, view).items():
            expected[f"{shard} first"], expected[f"{shard} last"] = min(offsets), max(offsets)
            expected[f"{shard} records"] = len(offsets)
        sources = _counts(history, Kind.VIEW_SOURCES, view)
        wrong = [
            f"{name} of the sources in {view} is {sources.get(name)}, not {expected.get(name)}"
            for name in sorted({*expected, *sources})
            if sources and expected.get(name) != sources.get(name)
        ]
        return Finding("V7 sources of rows are tight", len(sources), tuple(wrong))

    return check


def rebuild_has_equal_rows(view: str) -> Callable[[Operations], Finding]:
    """V19: a rebuild has the rows that it replaces, since both include the same records."""

    def check(history: Operations) -> Finding:
        report = _counts(history, Kind.VIEW_REBUILD, view)
        wrong = [
            f"{name} of the rebuild of {view} is {report.get(name)}, not {value}"
            for name, value in _SAME.items()
            if report and report.get(name) != value
        ]
        return Finding("V19 a rebuild has equal rows", report.get("records", 0), tuple(wrong))

    return check


def history_is_what_was_read(view: str) -> Callable[[Operations], Finding]:
    """V21: the rows of a view after an earlier batch are those that a read returned then."""

    def check(history: Operations) -> Finding:
        reads = [one for one in ok(history, Kind.VIEW_HISTORY) if one.log == view]
        wrong = [
            f"{view} has other rows than a read returned (read at {one.invoked:.1f} s)"
            for one in reads
            if not one.counts["same"]
        ]
        return Finding("V21 earlier rows of a view stay", len(reads), tuple(wrong))

    return check


def back_tests_have_the_same_rows(view: str) -> Callable[[Operations], Finding]:
    """V22: a back-test with the query of a view has the rows that the view had, of the same records."""

    def check(history: Operations) -> Finding:
        done = [one for one in ok(history, Kind.VIEW_BACK_TEST) if one.log == view]
        wrong = [
            f"a back-test of {view} has {name} {one.counts[name]}, not {value} (read at {one.invoked:.1f} s)"
            for one in done
            for name, value in {**_SAME, "records": one.counts["view_records"]}.items()
            if one.counts[name] != value
        ]
        return Finding("V22 a back-test has equal rows", len(done), tuple(wrong))

    return check


def pairs_are_counted_once(view: str, first: str, second: str) -> Callable[[Operations], Finding]:
    """V23: the rows of a view that joins two streams, one for each ending, count each pair once."""

    def check(history: Operations) -> Finding:
        records, matches = _endings(history, first), _endings(history, second)
        expected = {ending: number * matches[ending] for ending, number in records.items()}
        rows = _counts(history, Kind.VIEW_ROWS, view)
        wrong = [
            f"{first} and {second} have {expected.get(ending, 0)} pairs that end with {ending!r}, and {view} counts {rows.get(ending, 0)}"
            for ending in sorted({*expected, *rows})
            if rows and expected.get(ending, 0) != rows.get(ending, 0)
        ]
        return Finding("V23 a join counts each pair once", sum(rows.values()), tuple(wrong))

    return check


def unmatched_are_counted_once(
    view: str, first: str, second: str
) -> Callable[[Operations], Finding]:
    """V24: the rows of a view, one for each ending, count the records of a stream that no other one matches.

    A record of the other stream matches one with the same value whose time is at most MATCH_S from its own.
    """

    def check(history: Operations) -> Finding:
        records = [(one.log, seen) for one, seen in answers(history, Kind.JOINED)]
        times = defaultdict[str, list[int]](list)
        for log, seen in records:
            if log == second:
                times[seen.value].append(seen.at_ms)
        expected = Counter(
            seen.value[-ENDING:]
            for log, seen in records
            if log == first
            and all(abs(at_ms - seen.at_ms) > 1000 * MATCH_S for at_ms in times[seen.value])
        )
        rows = _counts(history, Kind.VIEW_ROWS, view)
        wrong = [
            f"{expected[ending]} records of {first} that end with {ending!r} have no match in {second}, and {view} counts {rows.get(ending, 0)}"
            for ending in sorted({*expected, *rows})
            if rows and expected[ending] != rows.get(ending, 0)
        ]
        count = sum(rows.values())
        return Finding("V24 a record without a match counts once", count, tuple(wrong))

    return check


def changes_add_up_to_the_rows(view: str) -> Callable[[Operations], Finding]:
    """V11: the changes that a sink of a view got add up to its rows, each after the one before it."""

    def check(history: Operations) -> Finding:
        rows = _counts(history, Kind.VIEW_ROWS, view)
        summed = _counts(history, Kind.VIEW_CHANGES, view)
        wrong = [
            f"row {key} of {view} is {rows.get(key)}, and its changes add up to {summed.get(key)}"
            for key in sorted({*rows, *summed})
            if rows.get(key) != summed.get(key)
        ]
        return Finding("V11 changes add up to the rows of a view", len(summed), tuple(wrong))

    return check


def _offsets(history: Operations, kind: Kind, view: str) -> dict[int, set[int]]:
    """Return the offsets of all records, by shard, of the stream that a view reads."""
    streams = {one.target for one in ok(history, kind) if one.log == view}
    offsets = defaultdict[int, set[int]](set)
    for operation, seen in answers(history, *READS):
        if operation.log in streams:
            offsets[seen.shard].add(seen.offset)
    return offsets


def _endings(history: Operations, stream: str) -> Counter[str]:
    """Count the records of a stream by the ending of their values."""
    records = {
        (seen.shard, seen.offset): seen.value
        for operation, seen in answers(history, *READS)
        if operation.log == stream
    }
    return Counter(value[-ENDING:] for value in records.values())


def _counts(history: Operations, kind: Kind, view: str) -> dict[str, int]:
    found = [operation.counts for operation in ok(history, kind) if operation.log == view]
    return found[-1] if found else {}
