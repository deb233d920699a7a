"""What an invariant says of a history, and how histories are looked through."""

from collections.abc import Iterator, Sequence

import msgspec

from tests.chaos.history import DELIVERIES, Kind, Operation, Outcome, Seen

EXAMPLES = 5
NEVER = float("inf")

Operations = Sequence[Operation]
Place = tuple[str, int, int]
"""A record's log, shard and offset."""


class Finding(msgspec.Struct, frozen=True):
    """An invariant held against a history."""

    name: str
    checked: int
    violations: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether it was checked, and nothing spoke against it."""
        return self.checked > 0 and not self.violations

    def line(self) -> str:
        """One line for a report, with the first violations."""
        word = "ok" if self.holds else "NOTHING CHECKED" if not self.violations else "VIOLATED"
        shown = "".join(f"\n      {one}" for one in self.violations[:EXAMPLES])
        return f"{self.name:<58}{self.checked:>9}  {word}{shown}"


def ok(history: Operations, *kinds: Kind) -> Iterator[Operation]:
    """The operations of these kinds that went well, in the order in which they ended."""
    return (one for one in history if one.kind in kinds and one.outcome is Outcome.OK)


def answers(history: Operations, *kinds: Kind) -> Iterator[tuple[Operation, Seen]]:
    """What the answers of these kinds held."""
    return ((one, what) for one in ok(history, *kinds) for what in one.seen)


def delivered(history: Operations) -> Iterator[tuple[Operation, Seen]]:
    """Every delivery of a message, asked for or pushed."""
    return answers(history, *DELIVERIES)


def first_asked(history: Operations, *kinds: Kind) -> dict[tuple[str, str], float]:
    """When each value was first in a call of these kinds, however that ended."""
    found: dict[tuple[str, str], float] = {}
    for one in history:
        if one.kind in kinds:
            for value in one.values:
                found[one.log, value] = min(one.invoked, found.get((one.log, value), NEVER))
    return found
