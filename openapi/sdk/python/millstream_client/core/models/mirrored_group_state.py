from enum import StrEnum


class MirroredGroupState(StrEnum):
    CREATED = "created"
    FOLLOWED = "followed"
    FOREIGN = "foreign"
    IN_USE = "in_use"

    def __str__(self) -> str:
        return str(self.value)
