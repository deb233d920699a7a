from enum import StrEnum


class SourceMode(StrEnum):
    NONE = "none"
    RANGE = "range"

    def __str__(self) -> str:
        return str(self.value)
