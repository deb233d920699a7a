from enum import StrEnum


class RouteState(StrEnum):
    ACTIVE = "active"
    FAILING = "failing"
    PAUSED = "paused"

    def __str__(self) -> str:
        return str(self.value)
