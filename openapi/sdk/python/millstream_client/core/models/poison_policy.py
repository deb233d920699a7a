from enum import StrEnum


class PoisonPolicy(StrEnum):
    BLOCK = "block"
    PARK_GROUP = "park_group"
    SKIP = "skip"

    def __str__(self) -> str:
        return str(self.value)
