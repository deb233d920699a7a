"""History of an object: since when a condition has held, and what has changed meanwhile.

Conditions are sums of columns of its charts. A step that was not measured is skipped, so a condition that held before and after
it has held throughout.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from storage.domain import limits
from storage.domain.timeseries.samples import Samples

Values = Sequence[float | None]
"""Values of a chart's steps, None where it was not measured."""

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
    """Charts of the last hour and of two weeks."""

    hour: Samples
    weeks: Samples | None = None

    def start_of(self, condition: StateCondition) -> StateStart | None:
        """Return since when the condition has held; None if it does not hold at present.

        The weeks are searched if it held in each step of the hour that was measured; what they show counts if it is a step
        earlier, because the hour is more exact.
        """
        start, is_throughout = _start_in(self.hour, condition)
        if start is None or not is_throughout or self.weeks is None:
            return start
        longer, _ = _start_in(self.weeks, condition)
        is_longer = longer is not None and longer.at_ms <= start.at_ms - self.weeks.step_ms
        return longer if is_longer else start

    def growth_per_minute(self, column: str) -> float:
        """Return the increase of a column per minute, over the last `GROWTH_WINDOW_MS`."""
        values = _totals(self.hour, (column,))
        first = _first_of_window(self.hour, values, limits.GROWTH_WINDOW_MS)
        measured = [nth for nth in range(first, len(values)) if values[nth] is not None]
        if len(measured) < 2:
            return 0.0
        before, after = measured[0], measured[-1]
        minutes = (after - before) * self.hour.step_ms / limits.MINUTE_MS
        return ((values[after] or 0) - (values[before] or 0)) / minutes

    def increase(self, column: str) -> int:
        """Return the increase within the hour, from the lowest sample to the last one."""
        values = [value for value in _totals(self.hour, (column,)) if value is not None]
        return round(values[-1] - min(values)) if values else 0

    def last_increase_ms(self, column: str) -> int | None:
        """Return when a column last increased; None if it did not in two weeks."""
        times = (_last_increase(chart, column) for chart in self._charts())
        return next((at_ms for at_ms in times if at_ms is not None), None)

    def has_been_positive(self, column: str, window_ms: int) -> bool:
        """Return whether a column was above zero within the window.

        The weeks are searched for windows beyond the hour: a quarter of an hour would be too long for shorter ones.
        """
        charts = self._charts() if window_ms > limits.HOUR_MS else (self.hour,)
        return any(_has_been_positive(chart, column, window_ms) for chart in charts)

    def _charts(self) -> tuple[Samples, ...]:
        return (self.hour,) if self.weeks is None else (self.hour, self.weeks)


NO_HISTORY = History(Samples(step_ms=limits.SERIES_STEP_MS, start_ms=0, columns={}))
"""History of an object that was not measured, or not examined."""


def _start_in(chart: Samples, condition: StateCondition) -> tuple[StateStart | None, bool]:
    """Return the start of the present run, and whether it covers all that was measured."""
    values, first = _totals(chart, condition.columns), None
    is_throughout = True
    for nth in reversed(range(len(values))):
        value = values[nth]
        if value is None:
            continue
        if value < condition.minimum:
            is_throughout = False
            break
        first = nth
    if first is None:
        return None, False
    start = StateStart(chart.start_ms + first * chart.step_ms, or_earlier=first == 0)
    return start, is_throughout


def _last_increase(chart: Samples, column: str) -> int | None:
    values = _totals(chart, (column,))
    measured = [nth for nth in range(len(values)) if values[nth] is not None]
    for before, after in reversed(list(pairwise(measured))):
        if (values[after] or 0) > (values[before] or 0):
            return chart.start_ms + after * chart.step_ms
    return None


def _has_been_positive(chart: Samples, column: str, window_ms: int) -> bool:
    values = _totals(chart, (column,))
    return any(value for value in values[_first_of_window(chart, values, window_ms) :])


def _first_of_window(chart: Samples, values: Values, window_ms: int) -> int:
    return max(0, len(values) - 1 - window_ms // chart.step_ms)


def _totals(chart: Samples, columns: tuple[str, ...]) -> Values:
    """Return the sum of the columns at each step, None where it was not measured."""
    series = [chart.columns.get(column, ()) for column in columns]
    if len(series) == 1:
        return series[0]
    return [
        None if None in values else sum(value or 0 for value in values)
        for values in zip(*series, strict=False)
    ]
