"""Rounds: a reference and its rows, measured in turn, again and again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.bench.ratios import Measured, Round, Row, Unmeasurable

Measure = Callable[[], float]


@dataclass(slots=True)
class Contestant:
    """A row and how it is measured once, in its unit. What it has to say comes with its line."""

    row: Row
    measure: Measure
    notes: list[str] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)
    trouble: str = ""

    def take_round(self, reference: float) -> None:
        """Measure once; a row that fails once is not measured again."""
        if self.trouble:
            return
        try:
            self.rounds.append(Round(self.measure(), reference))
        except Unmeasurable as error:
            self.trouble = str(error)

    def result(self) -> Measured:
        """What was found."""
        return Measured(row=self.row, rounds=self.rounds, notes=self.notes, trouble=self.trouble)


def interleave(
    rounds: int, reference: Measure, contestants: Sequence[Contestant]
) -> list[Measured]:
    """Measure the reference, then each contestant, and all of it `rounds` times."""
    for _ in range(rounds):
        measured = reference()
        for contestant in contestants:
            contestant.take_round(measured)
    return [contestant.result() for contestant in contestants]
