from enum import StrEnum


class Wish(StrEnum):
    CANCEL = "cancel"
    NONE = "none"
    PAUSE = "pause"

    def __str__(self) -> str:
        return str(self.value)
