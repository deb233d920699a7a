"""Sparklines: the path of an SVG polyline through samples, with gaps where there are none."""

from collections.abc import Sequence

WIDTH, HEIGHT = 96, 22
POINTS_MAX = 60
"""A chart of this size shows no more points; of more values, means of neighbours are drawn."""

_TOP = 2.0  # room for the line's own width


def sparkline(values: Sequence[float | None], width: int = WIDTH, height: int = HEIGHT) -> str:
    """Return the `d` of a path, empty where nothing was measured. Zero is at the bottom."""
    values = _thinned(values)
    present = [value for value in values if value is not None]
    if not present:
        return ""
    top = max(present) or 1.0
    step = width / max(1, len(values) - 1)
    pieces, pen = [], "M"
    for index, value in enumerate(values):
        if value is None:
            pen = "M"
            continue
        y = height - _TOP - max(0.0, value) / top * (height - 2 * _TOP)
        pieces.append(f"{pen}{index * step:.1f} {y:.1f}")
        pen = "L"
    return "".join(pieces)


def _thinned(values: Sequence[float | None]) -> Sequence[float | None]:
    together = -(-len(values) // POINTS_MAX)
    if together <= 1:
        return values
    return [_mean(values[at : at + together]) for at in range(0, len(values), together)]


def _mean(values: Sequence[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return sum(present) / len(present) if present else None
