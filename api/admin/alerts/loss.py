"""Prediction of loss: when what waits reaches the ceiling at which it is deleted."""

from collections.abc import Iterable
from typing import NamedTuple

from api.admin import display_formats
from storage.domain import limits

LOSS_AHEAD_MS = limits.DAY_MS
"""Time ahead in which a loss counts as imminent."""

_LIKELY = 0.5  # share of the ceiling below which a present growth predicts nothing
_REACHED = 0.95  # share from which it is reached: what is deleted keeps the level just below it


class Ceiling(NamedTuple):
    """Ceiling of a level, such as the retention of an age, with the level's growth per minute."""

    level: float
    ceiling: float
    growth: float

    def reached_in_ms(self) -> float | None:
        """Return the time until the level reaches the ceiling; None if it does not grow there."""
        share = self.level / self.ceiling
        if share >= _REACHED:
            return 0
        if share < _LIKELY or self.growth <= 0:
            return None
        return (self.ceiling - self.level) / self.growth * limits.MINUTE_MS


def loss_text(loss_ms: float | None) -> str:
    """Return when what waits is deleted, to the minute."""
    if not loss_ms:
        return "Deleted now."
    whole_ms = loss_ms - loss_ms % limits.MINUTE_MS or loss_ms
    return f"Deleted in {display_formats.format_duration(whole_ms)}."


def loss_in_ms(ceilings: Iterable[Ceiling]) -> float | None:
    """Return the time until the first ceiling is reached; None if that is not imminent."""
    times = (ceiling.reached_in_ms() for ceiling in ceilings)
    soonest = min((ms for ms in times if ms is not None), default=None)
    return None if soonest is None or soonest > LOSS_AHEAD_MS else soonest
