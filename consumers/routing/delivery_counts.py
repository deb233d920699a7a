"""Counts of what a router has finished for each route since its last report.

A copy is counted once the stored position of its buffer passes it: what a successor repeats has not been counted (T10). Until
then a copy can finish again, since a lagging reader that was stopped begins at its position: its first outcome counts.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

from msgspec.structs import replace

from consumers.routing.copies import Copy
from storage.domain.streams.lineage import FULLY_READ
from storage.domain.topics.routing import RouteCounts
from storage.domain.topics.targets.branch import RouteBranch

EXPIRED = "The message's time to live was over."
"""Reason why a message that reaches a queue too late is dropped."""

ROUTE_DELETED = "The route was deleted."
"""Reason why the messages that a deleted route still waits for are dropped."""


class CopyOutcome(StrEnum):
    """End of a copy: the field of `RouteCounts` that counts it."""

    DELIVERED = "delivered"
    DROPPED = "dropped"
    DEAD_LETTERED = "dead_lettered"
    SHADOWED = "shadowed"


_Outcomes = dict[int, CopyOutcome]
"""Outcomes of the copies of a branch and a shard, by offset."""


class DeliveryCounts:
    """Counts of the routes of a topic, by their numbers; all buffers of a router add to them."""

    def __init__(self) -> None:
        self._counted: dict[int, RouteCounts] = {}
        self._finished: defaultdict[tuple[str, int], _Outcomes] = defaultdict(dict)
        self._branches: dict[str, RouteBranch] = {}
        self._failures: defaultdict[int, dict[str, str]] = defaultdict(dict)
        self._attempted: set[int] = set()

    @property
    def is_empty(self) -> bool:
        """Return whether everything was drained."""
        return not (self._counted or self._finished or self._attempted)

    def add_delivered(self, copies: Sequence[Copy]) -> None:
        """Count copies that the target has."""
        self._add(copies, CopyOutcome.DELIVERED, "")

    def add_shadowed(self, copies: Sequence[Copy]) -> None:
        """Count copies of shadow routes, which nothing receives."""
        self._add(copies, CopyOutcome.SHADOWED, None)

    def add_dead_lettered(self, copies: Sequence[Copy], reason: str | None) -> None:
        """Count messages that are in a dead-letter queue; None leaves the last failure."""
        self._add(copies, CopyOutcome.DEAD_LETTERED, reason)

    def add_dropped(self, copies: Sequence[Copy], reason: str) -> None:
        """Count messages that the route does not get."""
        self._add(copies, CopyOutcome.DROPPED, reason)

    def set_failure(self, copies: Iterable[Copy], reason: str) -> None:
        """Set the last failure of the branches of copies; empty after a success.

        That of a route is empty once all of its branches succeed.
        """
        for branch, *_ in _runs(copies):
            self._set_failure(branch, reason)

    def _set_failure(self, branch: RouteBranch, reason: str) -> None:
        self._attempted.add(branch.number)
        if reason:
            self._failures[branch.number][branch.own_key] = reason
        else:
            self._failures[branch.number].pop(branch.own_key, None)

    def drain(
        self, positions_of: Callable[[RouteBranch], Mapping[int, int]]
    ) -> dict[int, RouteCounts]:
        """Return the counts since the last call, of the copies before these positions of branches."""
        finished, self._finished = self._finished, defaultdict(dict)
        branches, self._branches = self._branches, {}
        counts, self._counted = self._counted, {}
        positions = {key: positions_of(branch) for key, branch in branches.items()}
        for (key, shard), outcomes in finished.items():
            before, ahead = _split(outcomes, positions[key].get(shard, FULLY_READ))
            if before:
                _count(before, counts.setdefault(branches[key].number, RouteCounts()))
            if ahead:
                self._finished[key, shard] = ahead
                self._branches[key] = branches[key]
        return self._with_failures(counts)

    def _with_failures(self, counts: dict[int, RouteCounts]) -> dict[int, RouteCounts]:
        attempted, self._attempted = self._attempted, set()
        for number in attempted:
            failures = self._failures[number]
            counts.setdefault(number, RouteCounts()).failure = next(iter(failures.values()), "")
            if not failures:
                del self._failures[number]
        return counts

    def restore(self, earlier: Mapping[int, RouteCounts]) -> None:
        """Add counts that were drained and could not be stored."""
        for number, counts in earlier.items():
            restored = replace(counts)
            restored.add(self._counted.get(number, RouteCounts()))
            self._counted[number] = restored

    def subtract(self, stored: Mapping[int, RouteCounts]) -> None:
        """Subtract counts that were restored, and have been stored after all."""
        for number, counts in stored.items():
            self._counted[number].subtract(counts)

    def _add(self, copies: Sequence[Copy], outcome: CopyOutcome, failure: str | None) -> None:
        for branch, shard, offsets in _runs(copies):
            self._branches[branch.own_key] = branch
            finished = self._finished[branch.own_key, shard]
            if not finished.keys().isdisjoint(offsets):
                offsets = [offset for offset in offsets if offset not in finished]
            finished.update(dict.fromkeys(offsets, outcome))
            if failure is not None:
                self._set_failure(branch, failure)


def _runs(copies: Iterable[Copy]) -> Iterator[tuple[RouteBranch, int, list[int]]]:
    """Yield the offsets of copies that follow one another and have the same branch and shard."""
    branch: RouteBranch | None = None
    shard, offsets = 0, list[int]()
    for copy in copies:
        source = copy.source
        if copy.branch is not branch or source.shard != shard:
            if branch is not None:
                yield branch, shard, offsets
            branch, shard, offsets = copy.branch, source.shard, []
        offsets.append(source.offset)
    if branch is not None:
        yield branch, shard, offsets


def _split(outcomes: _Outcomes, position: int) -> tuple[_Outcomes, _Outcomes]:
    """Return the outcomes before a position, and the others.

    A shard without a position is read to its end: children of it are read.
    """
    if position == FULLY_READ or max(outcomes) < position:
        return outcomes, {}
    before = {offset: outcome for offset, outcome in outcomes.items() if offset < position}
    return before, {offset: outcomes[offset] for offset in outcomes.keys() - before.keys()}


def _count(outcomes: _Outcomes, counts: RouteCounts) -> None:
    for outcome, copies in Counter(outcomes.values()).items():
        setattr(counts, outcome, getattr(counts, outcome) + copies)
