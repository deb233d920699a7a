"""Time of this machine, for times that are relative to now."""

from datetime import UTC, datetime

from storage.domain.clock import SystemClock


def now() -> datetime:
    """Return this machine's time."""
    return datetime.fromtimestamp(SystemClock().now_ms() / 1000, UTC)
