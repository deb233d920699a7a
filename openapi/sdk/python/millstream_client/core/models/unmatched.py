from enum import StrEnum


class Unmatched(StrEnum):
    DROP = "drop"
    REFUSE = "refuse"

    def __str__(self) -> str:
        return str(self.value)
