from enum import StrEnum


class RouteState(StrEnum):
    ACTIVE = "active"
    FAILING = "failing"
    HISTORY = "history"
    PAUSED = "paused"
    SHADOW = "shadow"

    def __str__(self) -> str:
        return str(self.value)
