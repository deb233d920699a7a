from enum import StrEnum


class SampleBy(StrEnum):
    KEY = "key"
    OFFSET = "offset"

    def __str__(self) -> str:
        return str(self.value)
