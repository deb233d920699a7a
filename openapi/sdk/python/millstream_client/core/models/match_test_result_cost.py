from enum import StrEnum


class MatchTestResultCost(StrEnum):
    INDEXED = "indexed"
    SCANNED = "scanned"

    def __str__(self) -> str:
        return str(self.value)
