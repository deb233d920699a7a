from enum import StrEnum


class GroupKind(StrEnum):
    ORDERED = "ordered"
    SIMPLE = "simple"

    def __str__(self) -> str:
        return str(self.value)
