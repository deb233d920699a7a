from enum import StrEnum


class Overflow(StrEnum):
    DEAD_LETTER = "dead_letter"
    DROP_OLDEST = "drop_oldest"
    REJECT = "reject"

    def __str__(self) -> str:
        return str(self.value)
