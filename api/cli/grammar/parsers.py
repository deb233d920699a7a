"""Parsing of times and positions: 10m, 2026-01-31T12:00:00Z, earliest, 4711.

Everything here is pure; `now` is passed in. Raises ValueError with a sentence that states what would be right.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from api.config.durations import has_units, parse_duration

_OFFSET = re.compile(r"[0-9]+")
_OFFSETS = re.compile(r"[0-9]+=[0-9]+(?:,[0-9]+=[0-9]+)*")
_AGE_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))

EARLIEST = frozenset({"earliest", "oldest"})
LATEST = frozenset({"latest", "newest"})


def show_age(seconds: float) -> str:
    """Format an age by its two largest units: 45s, 4m10s, 3h20m, 2d4h."""
    left, counts = max(0, int(seconds)), list[str]()
    for unit, size in _AGE_UNITS:
        count, left = divmod(left, size)
        if count or counts:
            counts.append(f"{count}{unit}" if count else "")
    return "".join(counts[:2]) or "0s"


def parse_time(text: str, now: datetime) -> datetime:
    """Parse a time: RFC 3339, or a duration before now, such as 10m.

    A time without a zone is in this machine's zone.
    """
    if has_units(text):
        return now - timedelta(seconds=parse_duration(text))
    try:
        return datetime.fromisoformat(text).astimezone()
    except ValueError:
        raise ValueError(
            f"{text!r} is not a time: use 10m for ten minutes ago, or 2026-01-31T12:00:00Z"
        ) from None


@dataclass(frozen=True)
class StreamPosition:
    """Start of a read: one end, a time, or an offset of a shard."""

    end: str = ""
    time: datetime | None = None
    offset: int | None = None

    @property
    def start(self) -> "str | datetime":
        """Start position for the SDK; an offset is passed separately."""
        return self.time or self.end or "earliest"

    def __str__(self) -> str:
        """Return the position as it is typed."""
        time = self.time.isoformat() if self.time else ""
        return self.end or time or str(self.offset)


def parse_position(text: str, now: datetime) -> StreamPosition:
    """Parse a position: earliest, latest, a time, a duration before now, or an offset."""
    if text in EARLIEST:
        return StreamPosition(end="earliest")
    if text in LATEST:
        return StreamPosition(end="latest")
    if _OFFSET.fullmatch(text):
        return StreamPosition(offset=int(text))
    try:
        return StreamPosition(time=parse_time(text, now))
    except ValueError:
        raise ValueError(
            f"{text!r} is not a position: use earliest, latest, 10m, 2026-01-31T12:00:00Z or an offset"
        ) from None


def parse_offsets(text: str) -> dict[int, int]:
    """Parse offsets by shard: 0=120,1=98."""
    if not _OFFSETS.fullmatch(text):
        raise ValueError(f"{text!r} are not offsets: use 0=120,1=98 for shards 0 and 1")
    pairs = (part.split("=") for part in text.split(","))
    return {int(shard): int(offset) for shard, offset in pairs}
