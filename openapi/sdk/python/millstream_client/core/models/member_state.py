from enum import StrEnum


class MemberState(StrEnum):
    AWAY = "away"
    BEHIND = "behind"
    INSYNC = "insync"

    def __str__(self) -> str:
        return str(self.value)
