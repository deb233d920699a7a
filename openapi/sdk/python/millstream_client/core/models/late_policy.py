from enum import StrEnum


class LatePolicy(StrEnum):
    COUNT = "count"
    DROP = "drop"

    def __str__(self) -> str:
        return str(self.value)
