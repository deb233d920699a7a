"""Start position of a new reader of a stream."""

from enum import StrEnum

from storage.domain.errors import FieldFault


class StartAt(StrEnum):
    """Start position of a reader that has read nothing."""

    EARLIEST = "earliest"
    LATEST = "latest"
    TIME = "time"


def start_faults(start: StartAt, time_ms: int | None) -> list[FieldFault]:
    """Return the faults of a start with its time, which is given with TIME alone."""
    if (start is StartAt.TIME) == (time_ms is not None):
        return []
    detail = 'Specify a time if and only if "start" is "time"'
    return [FieldFault("/start_time", detail, "conflict")]
