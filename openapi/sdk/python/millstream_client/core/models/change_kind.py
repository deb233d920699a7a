from enum import StrEnum


class ChangeKind(StrEnum):
    CORRECTION = "correction"
    DELETE = "delete"
    FINAL = "final"
    INSERT = "insert"
    UPDATE = "update"

    def __str__(self) -> str:
        return str(self.value)
