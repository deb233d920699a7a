"""Invariants of streams, both tiers and replays: S1 to S4, R1."""

from collections import Counter, defaultdict
from collections.abc import Collection
from itertools import pairwise

from tests.chaos.checking.findings import Finding, Operations, Place, answers, ok
from tests.chaos.history import READS, Kind, Operation, Outcome

ARCHIVE = "archive"

Interval = tuple[int, int]
"""Offsets from the first to before the second."""


def offset_has_one_value(history: Operations) -> Finding:
    """S1: writers, readers and groups see the same value at an offset."""
    held: dict[Place, set[str]] = defaultdict(set)
    for operation, seen in answers(history, Kind.APPEND, *READS, Kind.GROUP_READ):
        held[operation.log, seen.shard, seen.offset].add(seen.value)
    wrong = [
        f"offset {offset} of shard {shard} of {log} holds {sorted(values)}"
        for (log, shard, offset), values in held.items()
        if len(values) > 1
    ]
    return Finding("S1 an offset has one value", len(held), tuple(wrong))


def appended_record_is_not_lost(history: Operations) -> Finding:
    """S1: every acknowledged append can be read at the end, unless its stream was deleted."""
    appends = [*ok(history, Kind.APPEND)]
    deleted = {operation.log for operation in ok(history, Kind.DELETED)}
    appended = {
        (append.log, value)
        for append in appends
        if append.log not in deleted
        for value in append.values
    }
    over = max([one.ended for one in appends], default=0.0)
    read = {
        (one.log, seen.value) for one, seen in answers(history, Kind.READ) if one.invoked > over
    }
    wrong = [
        f"{value} was appended to {log} and cannot be read"
        for log, value in sorted(appended - read)
    ]
    return Finding("S1 no appended record is lost", len(appended), tuple(wrong))


def offsets_increase(history: Operations) -> Finding:
    """S2: offsets increase within a read, and across the calls of one client.

    Within one call only the order of a key is kept, which is checked below: shards that close
    during the call separate its records.
    """
    wrong, checked = [], 0
    highest: dict[tuple[str, str, int], tuple[int, str]] = {}
    for operation in ok(history, Kind.APPEND):
        until_now = dict(highest)
        for seen in operation.seen:
            checked += 1
            place = (operation.client, operation.log, seen.shard)
            offset, value = until_now.get(place, (-1, ""))
            if seen.offset <= offset and seen.value != value:
                wrong.append(
                    f"{operation.client} appended {seen.value} at {seen.offset}, after {value} at {offset}"
                )
            highest[place] = max(highest.get(place, (-1, "")), (seen.offset, seen.value))
    for operation in ok(history, Kind.READ, Kind.GROUP_READ):
        for before, after in pairwise(sorted(operation.seen, key=lambda seen: seen.shard)):
            checked += 1
            if before.shard == after.shard and after.offset <= before.offset:
                wrong.append(
                    f"{operation.client} read {after.offset} after {before.offset} of {operation.log}"
                )
    return Finding("S2 offsets increase", checked, tuple(wrong))


def repeated_append_is_idempotent(history: Operations) -> Finding:
    """S4: a value is at one offset, however often its append was repeated."""
    places: dict[tuple[str, str], set[tuple[int, int]]] = defaultdict(set)
    for operation, seen in answers(history, Kind.APPEND, *READS, Kind.GROUP_READ):
        places[operation.log, seen.value].add((seen.shard, seen.offset))
    wrong = [
        f"{value} of {log} is at {sorted(found)}"
        for (log, value), found in places.items()
        if len(found) > 1
    ]
    return Finding("S4 a repeated append is idempotent", len(places), tuple(wrong))


def child_sequence_numbers_exceed_parents(history: Operations) -> Finding:
    """S2 across reshards: sequence numbers of a child exceed those of its parents."""
    lowest: dict[tuple[str, int], int] = {}
    highest: dict[tuple[str, int], int] = {}
    for operation, seen in answers(history, Kind.APPEND, Kind.READ):
        if seen.number:
            key, number = (operation.log, seen.shard), int(seen.number)
            lowest[key] = min(number, lowest.get(key, number))
            highest[key] = max(number, highest.get(key, number))
    wrong, checked = [], 0
    for (log, child), parents in parents_in(history).items():
        for parent in parents:
            if (log, child) in lowest and (log, parent) in highest:
                checked += 1
                if lowest[log, child] <= highest[log, parent]:
                    wrong.append(
                        f"shard {child} of {log} has {lowest[log, child]}, "
                        f"and its parent {parent} {highest[log, parent]}"
                    )
    return Finding("S2 sequence numbers of a child exceed its parents'", checked, tuple(wrong))


def key_moves_from_parents_to_children(history: Operations) -> Finding:
    """S2 for a key: later records are behind in the same shard, or in a descendant."""
    parents = parents_in(history)
    last: dict[tuple[str, str, str], tuple[int, int, str]] = {}
    wrong, checked = [], 0
    for operation in ok(history, Kind.APPEND):
        for seen in operation.seen:
            name = seen.group or operation.group
            if not name:
                continue
            key = (operation.log, operation.client, name)
            shard, offset, value = last.get(key, (seen.shard, -1, ""))
            checked += 1
            if shard == seen.shard:
                rises = seen.offset > offset or seen.value == value
            else:
                rises = shard in ancestors(operation.log, seen.shard, parents)
            if not rises:
                wrong.append(
                    f"{name}: {seen.value} went to {seen.offset} of shard {seen.shard}, "
                    f"after {value} had gone to {offset} of shard {shard}"
                )
            last[key] = (seen.shard, seen.offset, seen.value)
    return Finding("S2 a key moves from parents to children", checked, tuple(wrong))


def parents_in(history: Operations) -> dict[tuple[str, int], tuple[int, ...]]:
    """The parents of each shard, as last reported."""
    return {
        (operation.log, seen.shard): seen.parents
        for operation, seen in answers(history, Kind.SHARDS)
    }


def ancestors(log: str, shard: int, parents: dict[tuple[str, int], tuple[int, ...]]) -> set[int]:
    """All ancestors of a shard."""
    found: set[int] = set()
    left = [*parents.get((log, shard), ())]
    while left:
        item = left.pop()
        if item not in found:
            found.add(item)
            left += parents.get((log, item), ())
    return found


def skipped_offsets_are_reported(history: Operations) -> Finding:
    """S2: a reader receives consecutive offsets, and missing ones are reported as gaps."""
    wrong, checked = [], 0
    for operation in ok(history, *READS):
        missing = _missing(operation)
        checked += len(operation.seen)
        if missing:
            wrong.append(
                f"{operation.client} read {operation.log} from {operation.first} on at {operation.ended:.3f}, "
                f"without {missing[:3]}, and was told of no gap"
            )
    return Finding("S2 skipped offsets are reported as gaps", checked, tuple(wrong))


def _missing(read: Operation) -> list[Interval]:
    if not read.seen or read.first < 0:
        return []
    there = {seen.offset for seen in read.seen}
    told = {(gap.first, gap.next) for gap in read.gaps}
    return _uncovered(range(read.first, max(there)), there, told)


def _uncovered(
    whole: range, offsets: Collection[int], gaps: Collection[Interval]
) -> list[Interval]:
    """Return the parts of a range without these offsets and gaps; a gap may have millions of offsets."""
    missing, at = [], whole.start
    for first, next_ in sorted([*((offset, offset + 1) for offset in offsets), *gaps]):
        if min(first, whole.stop) > at:
            missing.append((at, min(first, whole.stop)))
        at = max(at, next_)
    if at < whole.stop:
        missing.append((at, whole.stop))
    return missing


def tiers_are_contiguous(history: Operations) -> Finding:
    """S3: reads from the start, through both tiers, have every offset that ever existed.

    Missing offsets are reported: a shard whose log may have been lost during creation begins behind
    its reservation. Nothing expires in these runs. Only reads from files are counted.
    """
    given: dict[tuple[str, int], set[int]] = defaultdict(set)
    read: dict[tuple[str, int], set[int]] = defaultdict(set)
    archived = 0
    for operation, seen in answers(history, Kind.APPEND, Kind.READ):
        given[operation.log, seen.shard].add(seen.offset)
        if operation.kind is Kind.READ:
            read[operation.log, seen.shard].add(seen.offset)
            archived += operation.tier == ARCHIVE
    gaps = _gaps(history)
    wrong = [
        f"readers were told that {gap} of shard {shard} of {log} are not there, and somebody had {had[0]}"
        for (log, shard), actual_gap in gaps.items()
        for gap in actual_gap
        if (had := sorted(offset for offset in given[log, shard] if gap[0] <= offset < gap[1]))
    ]
    for place, offsets in read.items():
        if missing := _uncovered(range(max(offsets)), offsets, gaps[place]):
            wrong.append(f"nobody read {missing[:3]} of shard {place[1]} of {place[0]}")
    return Finding("S3 tiers are contiguous (reads from files)", archived, tuple(wrong))


def _gaps(history: Operations) -> dict[tuple[str, int], set[Interval]]:
    """Reported gaps, by log and shard."""
    found: dict[tuple[str, int], set[Interval]] = defaultdict(set)
    for operation in ok(history, *READS, Kind.GROUP_READ):
        for gap in operation.gaps:
            found[operation.log, gap.shard].add((gap.first, gap.next))
    return found


def damage_is_detected(history: Operations) -> Finding:
    """S3: a changed byte in an archive file is detected, and undoing it restores the file."""
    flips = [one for one in history if one.kind is Kind.DAMAGE]
    wrong = [f"{one.log} was not told" for one in flips if one.outcome is not Outcome.OK]
    return Finding("S3 a changed byte is detected", len(flips), tuple(wrong))


def replay_sends_each_record_once(history: Operations) -> Finding:
    """R1: the target of a completed replay has each record of its window exactly once."""
    there = {
        (operation.log, seen.shard, seen.offset): seen.value
        for operation, seen in answers(history, Kind.READ)
    }
    got = {
        operation.log: Counter(seen.value for seen in operation.seen)
        for operation in ok(history, Kind.REPLAYED)
    }
    wrong, checked = [], 0
    for replay in ok(history, Kind.REPLAY):
        window = _window(replay, there)
        checked += len(window)
        found = got.get(replay.target, Counter())
        wrong += [
            f"{value} is {found[value]} times in {replay.target}"
            for value in sorted(window | set(found))
            if found[value] != (value in window)
        ]
    return Finding("R1 a replay sends each record once", checked, tuple(wrong))


def _window(replay: Operation, there: dict[Place, str]) -> set[str]:
    """The values that a replay should send; places are pairs of first offset and end."""
    pairs = zip(replay.seen[::2], replay.seen[1::2], strict=True)
    return {
        there[replay.log, first.shard, offset]
        for first, end in pairs
        for offset in range(first.offset, end.offset)
        if (replay.log, first.shard, offset) in there
    }
