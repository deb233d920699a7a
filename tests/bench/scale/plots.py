"""Curves as SVG, with a logarithmic size axis, and colours for light and dark themes.

A plot is a few kilobytes, and needs no library. Sizes are in user units of about a pixel.
"""

from collections.abc import Iterator, Sequence
from html import escape
from math import ceil, floor, log10

from tests.bench.ratios import shown
from tests.bench.scale.curves import Curve, Series

WIDTH, HEIGHT = 720, 360
LEFT, RIGHT, TOP, BOTTOM = 70, 200, 44, 48
COLOURS = ("#2563eb", "#d97706", "#059669", "#db2777", "#7c3aed", "#0891b2")
COLOURS_ON_DARK = ("#7aa7ff", "#fbbf24", "#34d399", "#f472b6", "#b39dfa", "#4dd0e8")
_HEADROOM, _ABOVE = 1.08, 1e-9
_NEAREST = 14.0  # between two labels
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0, 20.0)


def svg(curve: Curve) -> str:
    """The plot of a measured curve."""
    axes = _Axes(curve)
    parts = [_head(curve), *_grid(axes, curve), *_lines(axes, curve.series), "</svg>\n"]
    return "\n".join(parts)


class _Axes:
    """Position of a size and a cost in the plot."""

    def __init__(self, curve: Curve) -> None:
        sizes = sorted({size for one in curve.series for size, _ in one.points})
        costs = [cost for one in curve.series for _, cost in one.points]
        self.sizes = sizes
        self.log_costs = curve.log_costs and min(costs) > 0
        self._first, self._last = log10(max(1, sizes[0])), log10(max(1, sizes[-1]))
        if self.log_costs:
            self.low = float(floor(log10(min(costs))))
            self.high = float(ceil(log10(max(costs)) + _ABOVE))
        else:
            self.low, self.high = 0.0, max(costs) * _HEADROOM or 1.0

    def x(self, size: int) -> float:
        span = self._last - self._first or 1.0
        return LEFT + (log10(max(1, size)) - self._first) / span * (WIDTH - LEFT - RIGHT)

    def y(self, cost: float) -> float:
        at = log10(cost) if self.log_costs else cost
        part = (at - self.low) / (self.high - self.low)
        return HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)

    def marks(self) -> list[float]:
        """Costs with a grid line."""
        if self.log_costs:
            return [10.0**power for power in range(int(self.low), int(self.high) + 1)]
        step = 10.0 ** floor(log10(self.high))
        step = next(step * part / 10 for part in _STEPS if self.high / (step * part / 10) <= 6)
        return [step * nth for nth in range(int(self.high / step) + 1)]


def _head(curve: Curve) -> str:
    lines = "".join(
        f".s{nth}{{stroke:{colour}}}.f{nth}{{fill:{colour}}}" for nth, colour in enumerate(COLOURS)
    )
    dark = "".join(
        f".s{nth}{{stroke:{colour}}}.f{nth}{{fill:{colour}}}"
        for nth, colour in enumerate(COLOURS_ON_DARK)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'role="img" aria-label="{escape(f"{curve.title}: {curve.unit} by {curve.size}")}">\n'
        "<style>text{font:12px system-ui,sans-serif;fill:#334155}.title{font-size:15px;font-weight:600}"
        ".grid{stroke:#94a3b8;stroke-opacity:.35}.line{fill:none;stroke-width:2}.back{fill:#ffffff}"
        f"{lines}@media (prefers-color-scheme:dark){{text{{fill:#cbd5e1}}.back{{fill:#0f172a}}{dark}}}</style>\n"
        f'<rect class="back" width="{WIDTH}" height="{HEIGHT}" rx="6"/>\n'
        f'<text class="title" x="{LEFT}" y="20">{escape(curve.title)}</text>\n'
        f'<text x="{LEFT}" y="36">{escape(curve.unit)}</text>'
    )


def _grid(axes: _Axes, curve: Curve) -> Iterator[str]:
    right = WIDTH - RIGHT
    for cost in axes.marks():
        y = axes.y(cost)
        yield f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{shown(cost)}</text>'
    for size in axes.sizes:
        x = axes.x(size)
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
        yield f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{_short(size)}</text>'
    yield f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{escape(curve.size)}</text>'


def _lines(axes: _Axes, series: Sequence[Series]) -> Iterator[str]:
    ends = _apart([axes.y(one.points[-1][1]) for one in series])
    for nth, (one, end) in enumerate(zip(series, ends, strict=True)):
        colour = nth % len(COLOURS)
        places = [(axes.x(size), axes.y(cost)) for size, cost in one.points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        yield f'<polyline class="line s{colour}" points="{path}"/>'
        for x, y in places:
            yield f'<circle class="f{colour}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'
        yield f'<text class="f{colour}" x="{places[-1][0] + 8:.1f}" y="{end + 4:.1f}">{escape(one.label)}</text>'


def _apart(heights: Sequence[float]) -> list[float]:
    """Heights of labels near their lines, without overlap."""
    order = sorted(range(len(heights)), key=lambda nth: heights[nth])
    placed = [0.0] * len(heights)
    lowest = TOP - _NEAREST
    for nth in order:
        lowest = placed[nth] = max(heights[nth], lowest + _NEAREST)
    highest = HEIGHT - BOTTOM + _NEAREST
    for nth in reversed(order):
        highest = placed[nth] = min(placed[nth], highest - _NEAREST)
    return placed


def _short(size: int) -> str:
    for unit, name in ((1_000_000, "M"), (1_000, "k")):
        if size >= unit:
            return f"{size / unit:g} {name}"
    return str(size)
