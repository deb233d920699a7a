from enum import StrEnum


class DisabledReason(StrEnum):
    FAILING = "failing"
    GONE = "gone"
    INVALID = "invalid"

    def __str__(self) -> str:
        return str(self.value)
