from enum import StrEnum


class SpreadBy(StrEnum):
    KEY = "key"
    RANDOM = "random"
    SUBJECT = "subject"

    def __str__(self) -> str:
        return str(self.value)
