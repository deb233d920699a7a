from enum import StrEnum


class BackoffKind(StrEnum):
    EXPONENTIAL = "exponential"
    FIXED = "fixed"
    LINEAR = "linear"
    LIST = "list"

    def __str__(self) -> str:
        return str(self.value)
