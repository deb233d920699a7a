"""Curves: a cost at several sizes in one run, with the expected growth.

The result is the **growth**: the cost relative to that at the smallest size of the same run. Costs
are processor time where possible, so that other work on the machine matters little; there is no
bar, and no test asserts one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tests.bench.ratios import shown

_TIMES = "\N{MULTIPLICATION SIGN}"


class Expected(StrEnum):
    """The expected growth of a cost with size."""

    FLAT = "flat"
    LOGARITHMIC = "with the logarithm"
    PROPORTIONAL = "in proportion"
    INVERSE = "in inverse proportion"


@dataclass(frozen=True, slots=True)
class Series:
    """A series of a curve: (size, cost), by size."""

    label: str
    points: Sequence[tuple[int, float]]

    @property
    def growth(self) -> float:
        """The cost at the largest size relative to the smallest."""
        first, last = self.points[0][1], self.points[-1][1]
        return last / first if first else float("inf") if last else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Series with a common size and unit; `made` describes the measurement in a sentence."""

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
    """Series that are built point by point."""

    points: dict[str, list[tuple[int, float]]] = field(default_factory=dict)

    def add(self, size: int, **costs: float) -> None:
        """Add costs at this size; underscores in names become spaces."""
        for label, cost in costs.items():
            self.points.setdefault(label.replace("_", " "), []).append((size, cost))

    def series(self, *labels: str) -> list[Series]:
        """Return these series, or all, in insertion order."""
        return [Series(label, self.points[label]) for label in labels or self.points]

    def costs(
        self,
        name: str,
        title: str,
        unit: str,
        made: str,
        *,
        size: str,
        expected: Expected = Expected.FLAT,
    ) -> Curve:
        """Return a curve of all series, whose costs are plotted by their logarithms."""
        return Curve(
            name=name,
            title=title,
            size=size,
            unit=unit,
            made=made,
            expected=expected,
            series=self.series(),
            log_costs=True,
        )


def table(curve: Curve) -> str:
    """A curve as a Markdown table: a line per series, a column per size, and the growth."""
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
    """The table with the measurement and notes."""
    notes = "".join(f"\n* {note}" for note in curve.notes)
    head = f"{curve.made} It ought to grow {curve.expected.value}: ".replace("grow flat", "be flat")
    return f"{head.rstrip(' :')}.\n\n{table(curve)}\n{notes}".rstrip() + "\n"


def as_json(curve: Curve) -> dict[str, Any]:
    """Encode as JSON values."""
    fields = {
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
        return fields | {"trouble": curve.trouble}
    series = [
        {"label": one.label, "points": [list(point) for point in one.points]}
        for one in curve.series
    ]
    return fields | {"series": series}


def from_json(told: dict[str, Any]) -> Curve:
    """Decode what `as_json` returned."""
    series = [
        Series(one["label"], [(size, cost) for size, cost in one["points"]])
        for one in told.get("series", ())
    ]
    fields = {name: told[name] for name in ("name", "title", "size", "unit", "made", "log_costs")}
    return Curve(
        **fields,
        expected=Expected(told["expected"]),
        series=series,
        notes=told["notes"],
        trouble=told.get("trouble", ""),
    )
