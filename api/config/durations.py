"""Durations as people type them: 10m, 2h, 1d, 1h30m, 500ms."""

import re

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_PART = re.compile(rf"({_NUMBER})(ms|[smhdw])")
_WITH_UNITS = re.compile(rf"(?:{_NUMBER}(?:ms|[smhdw]))+")
_SECONDS_ALONE = re.compile(_NUMBER)

DURATION_PATTERN = f"{_WITH_UNITS.pattern}|{_NUMBER}"
"""Regular expression of a duration, for fields of a form."""

_DISPLAY_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60))


def has_units(text: str) -> bool:
    """Return whether a text is a duration with units."""
    return _WITH_UNITS.fullmatch(text) is not None


def parse_duration(text: str) -> float:
    """Parse a duration, such as 10m, 2h, 1d, 1h30m or 500ms, to seconds.

    A number alone is seconds.
    """
    if _SECONDS_ALONE.fullmatch(text):
        return float(text)
    if not has_units(text):
        raise ValueError(f"{text!r} is not a duration: use 30s, 10m, 2h or 1d")
    return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))


def show_duration(seconds: float) -> str:
    """Format a duration in the shortest form that is exact to the millisecond: 7d, 90m, 0.5s."""
    for unit, size in _DISPLAY_UNITS:
        if seconds and seconds % size == 0:
            return f"{seconds // size:.0f}{unit}"
    exact = f"{seconds:.3f}".rstrip("0").rstrip(".")
    return f"{exact}s"
