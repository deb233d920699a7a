from enum import StrEnum


class DisabledBecause(StrEnum):
    FAILING = "failing"
    GONE = "gone"

    def __str__(self) -> str:
        return str(self.value)
