"""What a curve is: the cost of something at several sizes, in one run, and how it ought to grow.

What counts is the **growth**, a cost over that at the smallest size of the same run. Costs are processor time wherever
they can be, so that other work on the machine matters little; there is no bar, and no test asserts one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tests.bench.ratios import shown

_TIMES = "\N{MULTIPLICATION SIGN}"


class Expected(StrEnum):
    """How a cost ought to grow with size."""

    FLAT = "flat"
    LOGARITHMIC = "with the logarithm"
    PROPORTIONAL = "in proportion"


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a curve: (size, cost) by size."""

    label: str
    points: Sequence[tuple[int, float]]

    @property
    def growth(self) -> float:
        """The cost at the largest size over that at the smallest."""
        first, last = self.points[0][1], self.points[-1][1]
        return last / first if first else float("inf") if last else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Some lines with one size and one unit. `made`: how, in a sentence."""

    name: str
    title: str
    size: str
    unit: str
    made: str
    expected: Expected = Expected.FLAT
    series: Sequence[Series] = ()
    notes: Sequence[str] = ()
    trouble: str = ""
    log_costs: bool = False


@dataclass(slots=True)
class Growing:
    """Lines that get a point at a time."""

    points: dict[str, list[tuple[int, float]]] = field(default_factory=dict)

    def add(self, size: int, **costs: float) -> None:
        """What each cost at this size; an underscore in a name stands for a space."""
        for label, cost in costs.items():
            self.points.setdefault(label.replace("_", " "), []).append((size, cost))

    def series(self, *labels: str) -> list[Series]:
        """These lines, or all, in the order in which they began."""
        return [Series(label, self.points[label]) for label in labels or self.points]


def table(curve: Curve) -> str:
    """A curve as a Markdown table: a line for each series, a column for each size; the growth last."""
    if curve.trouble:
        return f"Not measured: {curve.trouble}"
    sizes = sorted({size for one in curve.series for size, _ in one.points})
    lines = [
        f"| {curve.unit}, by {curve.size} | {' | '.join(f'{size:,}' for size in sizes)} | growth |",
        f"|---|{'--:|' * len(sizes)}--:|",
        *(_line(one, sizes) for one in curve.series),
    ]
    return "\n".join(lines)


def _line(series: Series, sizes: Iterable[int]) -> str:
    costs = dict(series.points)
    cells = [shown(costs[size]) if size in costs else "" for size in sizes]
    return f"| {series.label} | {' | '.join(cells)} | {shown(series.growth)} {_TIMES} |"


def described(curve: Curve) -> str:
    """The table with how it was made and what else is to be said."""
    notes = "".join(f"\n* {note}" for note in curve.notes)
    head = f"{curve.made} It ought to grow {curve.expected.value}: ".replace("grow flat", "be flat")
    return f"{head.rstrip(' :')}.\n\n{table(curve)}\n{notes}".rstrip() + "\n"


def as_json(curve: Curve) -> dict[str, Any]:
    """The same for programs."""
    told = {
        "name": curve.name,
        "title": curve.title,
        "size": curve.size,
        "unit": curve.unit,
        "made": curve.made,
        "expected": curve.expected.value,
        "notes": list(curve.notes),
        "log_costs": curve.log_costs,
    }
    if curve.trouble:
        return told | {"trouble": curve.trouble}
    series = [
        {"label": one.label, "points": [list(point) for point in one.points]}
        for one in curve.series
    ]
    return told | {"series": series}


def from_json(told: dict[str, Any]) -> Curve:
    """What as_json told."""
    series = [
        Series(one["label"], [(size, cost) for size, cost in one["points"]])
        for one in told.get("series", ())
    ]
    known = {name: told[name] for name in ("name", "title", "size", "unit", "made", "log_costs")}
    return Curve(
        **known,
        expected=Expected(told["expected"]),
        series=series,
        notes=told["notes"],
        trouble=told.get("trouble", ""),
    )
