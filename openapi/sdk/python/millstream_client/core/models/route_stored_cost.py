from enum import StrEnum


class RouteStoredCost(StrEnum):
    INDEXED = "indexed"
    SCANNED = "scanned"

    def __str__(self) -> str:
        return str(self.value)
