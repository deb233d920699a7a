"""Times: seconds on the wire, with milliseconds behind the point; whole milliseconds here."""

import math
from datetime import UTC, datetime

from api.aws.kinesis.errors import invalid

_SECONDS_MAX = 2**36  # the maximum in a sequence number: the year 4147


def moment_ms(seconds: float) -> int:
    """Convert a time given by a client to milliseconds. Raises AwsError if it is out of range."""
    if not math.isfinite(seconds) or not 0 <= seconds < _SECONDS_MAX:
        raise invalid("The timestamp is out of range.")
    return round(seconds * 1_000)


def seconds(at_ms: int) -> float:
    """Return a time in seconds, as in responses."""
    return at_ms / 1_000


def java_date(at_ms: int) -> str:
    """Format a time as in Amazon's error messages."""
    return f"{datetime.fromtimestamp(at_ms / 1_000, UTC):%a %b %d %H:%M:%S UTC %Y}"
