from enum import StrEnum


class DedupScope(StrEnum):
    GROUP = "group"
    QUEUE = "queue"

    def __str__(self) -> str:
        return str(self.value)
