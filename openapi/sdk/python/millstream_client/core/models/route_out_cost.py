from enum import StrEnum


class RouteOutCost(StrEnum):
    INDEXED = "indexed"
    SCANNED = "scanned"

    def __str__(self) -> str:
        return str(self.value)
