from enum import StrEnum


class MemberRole(StrEnum):
    AWAY = "away"
    PRIMARY = "primary"
    REPLICA = "replica"

    def __str__(self) -> str:
        return str(self.value)
