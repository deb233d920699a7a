from enum import StrEnum


class RouteMode(StrEnum):
    LIVE = "live"
    SHADOW = "shadow"

    def __str__(self) -> str:
        return str(self.value)
