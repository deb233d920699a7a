from enum import StrEnum


class RedrivePermission(StrEnum):
    ALLOW_ALL = "allow_all"
    BY_QUEUE = "by_queue"
    DENY_ALL = "deny_all"

    def __str__(self) -> str:
        return str(self.value)
