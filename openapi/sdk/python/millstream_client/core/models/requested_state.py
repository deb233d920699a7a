from enum import StrEnum


class RequestedState(StrEnum):
    CANCEL = "cancel"
    NONE = "none"
    PAUSE = "pause"

    def __str__(self) -> str:
        return str(self.value)
