from enum import StrEnum


class StreamMode(StrEnum):
    ON_DEMAND = "on_demand"
    PROVISIONED = "provisioned"

    def __str__(self) -> str:
        return str(self.value)
