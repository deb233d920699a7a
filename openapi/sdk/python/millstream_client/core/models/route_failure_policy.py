from enum import StrEnum


class RouteFailurePolicy(StrEnum):
    DROP = "drop"
    WAIT = "wait"

    def __str__(self) -> str:
        return str(self.value)
