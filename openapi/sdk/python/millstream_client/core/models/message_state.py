from enum import StrEnum


class MessageState(StrEnum):
    DELAYED = "delayed"
    IN_FLIGHT = "in_flight"
    PARKED = "parked"
    READY = "ready"

    def __str__(self) -> str:
        return str(self.value)
