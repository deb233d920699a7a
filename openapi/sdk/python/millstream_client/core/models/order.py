from enum import StrEnum


class Order(StrEnum):
    KEY = "key"
    NONE = "none"
    SHARD = "shard"
    TIME = "time"

    def __str__(self) -> str:
        return str(self.value)
