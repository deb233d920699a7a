from enum import StrEnum


class StartAt(StrEnum):
    EARLIEST = "earliest"
    LATEST = "latest"
    TIME = "time"

    def __str__(self) -> str:
        return str(self.value)
