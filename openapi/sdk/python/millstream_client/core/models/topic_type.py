from enum import StrEnum


class TopicType(StrEnum):
    FIFO = "fifo"
    STANDARD = "standard"

    def __str__(self) -> str:
        return str(self.value)
