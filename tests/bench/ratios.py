"""Rows of the benchmark, and how their rounds become a line of the table.

A row is measured in rounds, alternating with its reference: A B A B. The result is the median of
the ratios, so that a slow period of the machine affects both.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any


class Unmeasurable(Exception):
    """The row cannot be measured here; the message gives the reason in one line."""


@dataclass(frozen=True, slots=True)
class Bar:
    """The ratio to reach: a minimum, or a maximum where less is better."""

    ratio: float
    at_most: bool = False

    def missed_by(self, ratio: float) -> float:
        """The relative shortfall of a ratio; 0 if it meets the bar."""
        short = ratio - self.ratio if self.at_most else self.ratio - ratio
        return max(0.0, short / self.ratio)

    def __str__(self) -> str:
        return f"{'≤' if self.at_most else '≥'} {self.ratio:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A measurement: `value` in `unit`, against `reference`; informational without a bar."""

    name: str
    what: str
    unit: str
    reference: str
    bar: Bar | None = None


@dataclass(frozen=True, slots=True)
class Round:
    """A value and its reference, both in the row's unit."""

    value: float
    reference: float

    def __post_init__(self) -> None:
        if self.reference <= 0:
            raise Unmeasurable("the reference measured nothing")

    @property
    def ratio(self) -> float:
        """The value relative to its reference."""
        return self.value / self.reference


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A row and its rounds, or the reason why it was not measured."""

    row: Row
    rounds: Sequence[Round] = ()
    notes: Sequence[str] = ()
    trouble: str = ""

    @property
    def ratios(self) -> list[float]:
        """The ratio of each round."""
        return [each_round.ratio for each_round in self.rounds]

    @property
    def value(self) -> float:
        """The median value."""
        return median(each_round.value for each_round in self.rounds)

    @property
    def reference(self) -> float:
        """The median reference."""
        return median(each_round.reference for each_round in self.rounds)

    @property
    def verdict(self) -> str:
        """The verdict at the end of the line."""
        if self.trouble:
            return "not measured"
        if self.row.bar is None:
            return "for information"
        missed = self.row.bar.missed_by(median(self.ratios))
        return f"missed by {missed:.0%}" if missed else "met"


HEADINGS = ("row", "value", "reference", "ratio", "range", "bar", "verdict")


def table(measured: Iterable[Measured]) -> str:
    """The rows as an aligned Markdown table, with notes."""
    measured = list(measured)
    lines = [HEADINGS, *(_cells(measurement) for measurement in measured)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    ruled = [lines[0], tuple("-" * width for width in widths), *lines[1:]]
    notes = [
        f"{measurement.row.name}: {note}"
        for measurement in measured
        for note in _remarks(measurement)
    ]
    return "\n".join([*(_line(cells, widths) for cells in ruled), *([""] if notes else []), *notes])


def _remarks(one: Measured) -> list[str]:
    return [*([f"not measured: {one.trouble}"] if one.trouble else []), *one.notes]


def _cells(one: Measured) -> tuple[str, ...]:
    row, bar = one.row, "" if one.row.bar is None else str(one.row.bar)
    if one.trouble:
        return (row.name, "", row.reference, "", "", bar, one.verdict)
    return (
        row.name,
        f"{shown(one.value)} {row.unit}",
        f"{row.reference} {shown(one.reference)}",
        f"{median(one.ratios):.2f}",
        f"{min(one.ratios):.2f} to {max(one.ratios):.2f}",
        bar,
        one.verdict,
    )


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return f"| {' | '.join(padded)} |"


def shown(number: float) -> str:
    """A number with three significant digits, or all digits before the point."""
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def as_json(one: Measured) -> Mapping[str, Any]:
    """Encode as JSON values, with every round."""
    bar = one.row.bar
    fields = {
        "name": one.row.name,
        "what": one.row.what,
        "unit": one.row.unit,
        "reference_name": one.row.reference,
        "bar": None if bar is None else {"ratio": bar.ratio, "at_most": bar.at_most},
        "verdict": one.verdict,
        "notes": list(one.notes),
    }
    if one.trouble:
        return fields | {"trouble": one.trouble}
    return fields | {
        "value": one.value,
        "reference": one.reference,
        "ratio": {
            "median": median(one.ratios),
            "min": min(one.ratios),
            "max": max(one.ratios),
        },
        "rounds": [[each.value, each.reference] for each in one.rounds],
    }
