"""Invariants of positions in streams that are deleted and recreated: S5."""

from collections import defaultdict

from tests.chaos.checking.findings import NEVER, Finding, Operations, answers, ok
from tests.chaos.history import READS, Kind, Operation, Outcome

REJECTED = frozenset({"stream_recreated", "invalid_cursor"})
"""Codes that say that a position belongs to another stream."""

Log = tuple[str, int]
"""The name of a stream, and its number among those of the name."""


def _log(name: str) -> Log | None:
    """Parse the log of a recreated stream; None for other logs."""
    stream, _, number = name.partition("#")
    return (stream, int(number)) if number else None


def position_is_rejected_in_another_stream(history: Operations) -> Finding:
    """S5: a reader gets records of another stream of the name only after an error.

    Not even `stream_not_found` is one, because the reader keeps its position. A group has no position in its successor, and begins
    at the start of its stream.
    """
    last: dict[tuple[str, str], int] = {}
    rejected: set[tuple[str, str]] = set()
    wrong, checked = [], 0
    for operation in history:
        log = _log(operation.log)
        if operation.kind not in READS or operation.group:
            continue
        if log is None:
            if operation.outcome is Outcome.FAIL and operation.code in REJECTED:
                rejected.add((operation.client, operation.log))
        elif operation.seen:
            stream, number = log
            reader = operation.client, stream
            if last.setdefault(reader, number) != number:
                checked += 1
                if reader not in rejected:
                    wrong.append(
                        f"{operation.client} read {operation.log} at {operation.ended:.3f}, after "
                        f"{stream}#{last[reader]}, without an error"
                    )
            last[reader] = number
            rejected.discard(reader)
    return Finding("S5 a position belongs to one stream", checked, tuple(wrong))


def reader_skips_no_record_of_a_recreated_stream(history: Operations) -> Finding:
    """S5: a reader gets all records before its last one, and at the end all records.

    The members of a group are one reader. Only the last stream of a name has an end; the others are deleted before that.
    """
    appended: dict[str, dict[tuple[int, int], str]] = defaultdict(dict)
    for operation, seen in answers(history, Kind.APPEND):
        if _log(operation.log):
            appended[operation.log][seen.shard, seen.offset] = seen.value
    deleted = _deletions(history)
    wrong, checked = [], 0
    for (reader, log), reads in _reads(history).items():
        received = {(seen.shard, seen.offset) for read in reads for seen in read.seen}
        gaps = [gap for read in reads for gap in read.gaps]
        for (shard, offset), value in sorted(appended[log].items()):
            end = max([at for each, at in received if each == shard], default=-1)
            if offset > end and log in deleted:
                continue
            checked += 1
            in_gap = any(gap.shard == shard and gap.first <= offset < gap.next for gap in gaps)
            if (shard, offset) not in received and not in_gap:
                wrong.append(f"{reader} was not given {value}, offset {offset} of {log}")
    return Finding("S5 readers skip no record of a recreated stream", checked, tuple(wrong))


def _reads(history: Operations) -> dict[tuple[str, str], list[Operation]]:
    """The reads of recreated streams, by reader and log.

    Each reader also has an entry for the last stream, which all of them must read.
    """
    reads: dict[tuple[str, str], list[Operation]] = defaultdict(list)
    last: dict[str, int] = {}
    for operation in ok(history, Kind.APPEND, *READS):
        if log := _log(operation.log):
            last[log[0]] = max(log[1], last.get(log[0], 0))
            if operation.kind in READS and operation.seen:
                reads[operation.group or operation.client, operation.log].append(operation)
    for operation in history:
        if operation.gaps and not operation.seen:
            continue  # a fact that the writer noted
        if operation.kind in READS and (number := last.get(operation.log.partition("#")[0])):
            reader = operation.group or operation.client
            reads.setdefault((reader, f"{operation.log.partition('#')[0]}#{number}"), [])
    return reads


def deleted_stream_accepts_no_commit(history: Operations) -> Finding:
    """S5: a commit token of a deleted stream's group is rejected by the next group of its name."""
    deleted = _deletions(history)
    late = [
        operation
        for operation in history
        if operation.kind is Kind.COMMIT and operation.invoked > deleted.get(operation.log, NEVER)
    ]
    wrong = [
        f"{operation.client} committed in {operation.log} at {operation.ended:.3f}, after its deletion"
        for operation in late
        if operation.outcome is Outcome.OK and operation.seen
    ]
    return Finding("S5 a deleted stream accepts no commit", len(late), tuple(wrong))


def _deletions(history: Operations) -> dict[str, float]:
    """When each stream was known to be deleted."""
    return {operation.log: operation.ended for operation in ok(history, Kind.DELETED)}
