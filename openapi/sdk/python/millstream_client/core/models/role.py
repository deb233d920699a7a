from enum import StrEnum


class Role(StrEnum):
    ADMIN = "admin"
    CONSUMER = "consumer"
    OPERATOR = "operator"
    PRODUCER = "producer"
    VIEWER = "viewer"

    def __str__(self) -> str:
        return str(self.value)
