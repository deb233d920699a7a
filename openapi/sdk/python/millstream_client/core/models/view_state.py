from enum import StrEnum


class ViewState(StrEnum):
    BUILDING = "building"
    PAUSED = "paused"
    RUNNING = "running"
    STOPPED = "stopped"

    def __str__(self) -> str:
        return str(self.value)
