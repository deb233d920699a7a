"""History of an object: since when a condition has held, and what has changed meanwhile.

Conditions are sums of columns of its charts. A step that was not measured is skipped, so a condition that held before and after
it has held throughout.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from storage.domain import limits
from storage.domain.timeseries.samples import Samples

POSITIVE = 0.01
"""Smallest level above zero that a row of a longer step can have."""


class StateCondition(NamedTuple):
    """Condition that the sum of some columns is at least `minimum`."""

    columns: tuple[str, ...]
    minimum: float = POSITIVE


class StateStart(NamedTuple):
    """Time of the first sample of a state. `or_earlier`: samples do not reach back further."""

    at_ms: int
    or_earlier: bool = False


class History(NamedTuple):
    """Charts of the last hour and, of objects that existed before it, of two weeks."""

    hour: Samples
    weeks: Samples | None = None

    def start_of(self, condition: StateCondition) -> StateStart | None:
        """Return since when the condition has held; None if it does not hold at present."""
        start = _start_in(self.hour, condition)
        if start is None or not start.or_earlier or self.weeks is None:
            return start
        longer = _start_in(self.weeks, condition)
        return longer if longer and longer.at_ms < start.at_ms else start

    def growth_per_minute(self, *columns: str) -> float:
        """Return the increase of a sum of columns per minute, over the last `GROWTH_WINDOW_MS`."""
        values = list(_values(self.hour, columns, limits.GROWTH_WINDOW_MS))
        if len(values) < 2:
            return 0.0
        (before_ms, before), (after_ms, after) = values[0], values[-1]
        return (after - before) * limits.MINUTE_MS / (after_ms - before_ms)

    def increase(self, column: str) -> int:
        """Return the increase within the hour, from the lowest sample to the last one.

        The first sample counts as increase where nothing was before it.
        """
        values = [value for _, value in _values(self.hour, (column,))]
        return round(values[-1] - min(values)) if values else 0

    def last_increase_ms(self, *columns: str) -> int | None:
        """Return when a sum of columns last increased; None if it did not in two weeks."""
        return next(
            (at_ms for chart in self._charts() if (at_ms := _last_increase(chart, columns))), None
        )

    def has_been_positive(self, column: str, window_ms: int) -> bool:
        """Return whether a column was above zero within the window."""
        return any(
            value > 0
            for chart in self._charts()
            for _, value in _values(chart, (column,), window_ms)
        )

    def _charts(self) -> tuple[Samples, ...]:
        return (self.hour,) if self.weeks is None else (self.hour, self.weeks)


NO_HISTORY = History(Samples(step_ms=limits.SERIES_STEP_MS, start_ms=0, columns={}))
"""History of an object that was not measured, or not examined."""


def _start_in(chart: Samples, condition: StateCondition) -> StateStart | None:
    start = None
    for at_ms, value in reversed(list(_values(chart, condition.columns))):
        if value < condition.minimum:
            return start
        start = StateStart(at_ms, or_earlier=at_ms == chart.start_ms)
    return start


def _last_increase(chart: Samples, columns: tuple[str, ...]) -> int | None:
    values = list(_values(chart, columns))
    return max(
        (at_ms for (_, before), (at_ms, after) in pairwise(values) if after > before), default=None
    )


def _values(
    chart: Samples, columns: tuple[str, ...], window_ms: int | None = None
) -> Iterator[tuple[int, float]]:
    """Yield the sum of the columns at each step that was measured, oldest first."""
    series = [chart.columns.get(column, ()) for column in columns]
    times = chart.times_ms
    first_ms = 0 if window_ms is None or not times else times[-1] - window_ms
    for at_ms, *values in zip(times, *series, strict=False):
        present = [value for value in values if value is not None]
        if at_ms >= first_ms and len(present) == len(values):
            yield at_ms, sum(present)
