from enum import StrEnum


class RouteFailurePolicy(StrEnum):
    DEAD_LETTER = "dead_letter"
    DROP = "drop"
    WAIT = "wait"

    def __str__(self) -> str:
        return str(self.value)
