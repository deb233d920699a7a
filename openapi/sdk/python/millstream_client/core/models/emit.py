from enum import StrEnum


class Emit(StrEnum):
    CHANGES = "changes"
    FINAL = "final"

    def __str__(self) -> str:
        return str(self.value)
