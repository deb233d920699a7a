from enum import StrEnum


class QueueType(StrEnum):
    FIFO = "fifo"
    STANDARD = "standard"

    def __str__(self) -> str:
        return str(self.value)
