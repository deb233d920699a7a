from enum import StrEnum


class BadPolicy(StrEnum):
    NULL = "null"
    SKIP = "skip"

    def __str__(self) -> str:
        return str(self.value)
