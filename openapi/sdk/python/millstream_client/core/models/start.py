from enum import StrEnum


class Start(StrEnum):
    LATEST = "latest"
    OLDEST = "oldest"

    def __str__(self) -> str:
        return str(self.value)
