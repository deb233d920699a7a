from enum import StrEnum


class OnFailure(StrEnum):
    BLOCK = "block"
    DEAD_LETTER = "dead_letter"

    def __str__(self) -> str:
        return str(self.value)
