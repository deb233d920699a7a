from enum import StrEnum


class Phase(StrEnum):
    FENCE = "fence"
    NORMAL = "normal"
    PROMOTE = "promote"
    SWITCH = "switch"

    def __str__(self) -> str:
        return str(self.value)
