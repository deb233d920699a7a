from enum import StrEnum


class Jitter(StrEnum):
    EQUAL = "equal"
    FULL = "full"
    NONE = "none"

    def __str__(self) -> str:
        return str(self.value)
