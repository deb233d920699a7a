from enum import StrEnum


class Tier(StrEnum):
    ARCHIVE = "archive"
    HOT = "hot"

    def __str__(self) -> str:
        return str(self.value)
