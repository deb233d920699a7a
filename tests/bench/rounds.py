"""Rounds: a reference and its rows, measured in turn."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.bench.ratios import Measured, Round, Row, Unmeasurable

Measure = Callable[[], float]


@dataclass(slots=True)
class Contestant:
    """A row and its measurement; notes are printed with its line."""

    row: Row
    measure: Measure
    notes: list[str] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)
    trouble: str = ""

    def take_round(self, reference: float) -> None:
        """Measure once; a row that fails is not measured again."""
        if self.trouble:
            return
        try:
            self.rounds.append(Round(self.measure(), reference))
        except Unmeasurable as error:
            self.trouble = str(error)

    def result(self) -> Measured:
        """The results."""
        return Measured(row=self.row, rounds=self.rounds, notes=self.notes, trouble=self.trouble)


def interleave(
    rounds: int, reference: Measure, contestants: Sequence[Contestant]
) -> list[Measured]:
    """Measure the reference and each contestant in turn, `rounds` times."""
    for _ in range(rounds):
        measured = reference()
        for contestant in contestants:
            contestant.take_round(measured)
    return [contestant.result() for contestant in contestants]
