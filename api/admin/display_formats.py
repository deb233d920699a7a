"""Formatting of numbers, sizes and times for pages. Nothing here knows HTML."""

from api.config.durations import show_duration
from storage.domain import limits

NOTHING = "\u2013"
"""Placeholder for a missing value."""

_SIZES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_STEPS = (
    ("d", limits.DAY_MS),
    ("h", limits.HOUR_MS),
    ("min", limits.MINUTE_MS),
    ("s", limits.SECOND_MS),
)


def count(value: float | None) -> str:
    """Format a whole number with separated thousands: 12,345."""
    return NOTHING if value is None else f"{round(value):,}"


def rate(value: float | None) -> str:
    """Format a rate per second, with at most three digits if it has a fraction."""
    if value is None:
        return NOTHING
    if value == 0:
        return "0"
    if value < 0.1:
        return "<0.1"
    return f"{value:.1f}" if value < 10 else count(value)


def size(value: float | None) -> str:
    """Bytes in the unit that leaves one to three digits before the point."""
    if value is None:
        return NOTHING
    unit = 0
    while abs(value) >= 1000 and unit < len(_SIZES) - 1:
        value /= 1024
        unit += 1
    whole = unit == 0 or value >= 100
    return f"{value:.0f} {_SIZES[unit]}" if whole else f"{value:.1f} {_SIZES[unit]}"


def format_duration(value_ms: float | None) -> str:
    """Format a duration by its two largest units: `3 h 12 min`, `4.2 s`, `80 ms`."""
    if value_ms is None:
        return NOTHING
    value_ms = max(0, value_ms)
    if value_ms < limits.SECOND_MS:
        return f"{value_ms:.0f} ms"
    if value_ms < limits.MINUTE_MS:
        return f"{value_ms / limits.SECOND_MS:.1f} s".replace(".0 ", " ")
    parts: list[str] = []
    rest = int(value_ms)
    for unit, step in _STEPS:
        whole, rest = divmod(rest, step)
        if whole or parts:
            parts.append(f"{whole} {unit}")
        if len(parts) == 2:
            break
    return " ".join(part for part in parts if not part.startswith("0 ")) or NOTHING


def typed_duration(value_ms: int) -> str:
    """Format a duration as a field takes it: 4d, 90s, 0.25s."""
    return show_duration(value_ms / limits.SECOND_MS)


def percent(part: float | None, whole: float | None) -> str:
    """Format the percentage that `part` is of `whole`."""
    if part is None or not whole:
        return NOTHING
    share = 100 * part / whole
    return f"{share:.0f} %" if share >= 10 or share == 0 else f"{share:.1f} %"


def plural(number: float | None, singular: str, many: str = "") -> str:
    """`1 message`, `3 messages`."""
    return f"{count(number)} {singular if number == 1 else many or singular + 's'}"
