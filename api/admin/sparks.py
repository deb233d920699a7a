"""A chart as small as a word: the path of an SVG polyline through what was measured, with gaps where nothing was."""

from collections.abc import Sequence

WIDTH, HEIGHT = 96, 22
_TOP = 2.0  # room for the line's own width


def spark(values: Sequence[float | None], width: int = WIDTH, height: int = HEIGHT) -> str:
    """The `d` of a path, empty where nothing was measured. Zero is at the bottom."""
    known = [value for value in values if value is not None]
    if not known:
        return ""
    top = max(known) or 1.0
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
