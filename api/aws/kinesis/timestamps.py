"""Times: seconds on the wire, with milliseconds behind the point; whole milliseconds here."""

import math
from datetime import UTC, datetime

from api.aws.kinesis.errors import invalid

_SECONDS_MAX = 2**36  # what a sequence number holds: the year 4147


def moment_ms(seconds: float) -> int:
    """A moment that a client names. Raises AwsError for one that no clock shows."""
    if not math.isfinite(seconds) or not 0 <= seconds < _SECONDS_MAX:
        raise invalid("The timestamp is not a moment that can be.")
    return round(seconds * 1_000)


def seconds(at_ms: int) -> float:
    """A moment as it is told."""
    return at_ms / 1_000


def java_date(at_ms: int) -> str:
    """A moment as Amazon writes it in its sentences."""
    return f"{datetime.fromtimestamp(at_ms / 1_000, UTC):%a %b %d %H:%M:%S UTC %Y}"
