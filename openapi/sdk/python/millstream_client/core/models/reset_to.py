from enum import StrEnum


class ResetTo(StrEnum):
    BOOKMARK = "bookmark"
    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSETS = "offsets"
    TIME = "time"

    def __str__(self) -> str:
        return str(self.value)
