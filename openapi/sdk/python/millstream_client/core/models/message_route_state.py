from enum import StrEnum


class MessageRouteState(StrEnum):
    FINISHED = "finished"
    REMOVED = "removed"
    SHADOW = "shadow"
    WAITING = "waiting"

    def __str__(self) -> str:
        return str(self.value)
