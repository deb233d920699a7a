"""Findings of invariants, and queries over histories."""

from collections.abc import Iterator, Sequence

import msgspec

from tests.chaos.history import DELIVERIES, Kind, Operation, Outcome, Seen

EXAMPLES = 5
NEVER = float("inf")

Operations = Sequence[Operation]
Place = tuple[str, int, int]
"""A record's log, shard and offset."""


class Finding(msgspec.Struct, frozen=True):
    """The result of an invariant for a history."""

    name: str
    checked: int
    violations: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Return whether it was checked, without violations."""
        return self.checked > 0 and not self.violations

    def line(self) -> str:
        """A line for a report, with the first violations."""
        word = "ok" if self.holds else "NOTHING CHECKED" if not self.violations else "VIOLATED"
        shown = "".join(f"\n      {violation}" for violation in self.violations[:EXAMPLES])
        return f"{self.name:<58}{self.checked:>9}  {word}{shown}"


def ok(history: Operations, *kinds: Kind) -> Iterator[Operation]:
    """Successful operations of these kinds, by time of completion."""
    return (
        operation
        for operation in history
        if operation.kind in kinds and operation.outcome is Outcome.OK
    )


def answers(history: Operations, *kinds: Kind) -> Iterator[tuple[Operation, Seen]]:
    """Contents of the responses of these kinds."""
    return ((operation, what) for operation in ok(history, *kinds) for what in operation.seen)


def delivered(history: Operations) -> Iterator[tuple[Operation, Seen]]:
    """Every delivery of a message, received or pushed."""
    return answers(history, *DELIVERIES)


def first_asked(history: Operations, *kinds: Kind) -> dict[tuple[str, str], float]:
    """When each value was first in a call of these kinds, whatever its outcome."""
    found: dict[tuple[str, str], float] = {}
    for operation in history:
        if operation.kind in kinds:
            for value in operation.values:
                found[operation.log, value] = min(
                    operation.invoked, found.get((operation.log, value), NEVER)
                )
    return found
