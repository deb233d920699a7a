from enum import StrEnum


class ShardMode(StrEnum):
    KEEP = "keep"
    REHASH = "rehash"

    def __str__(self) -> str:
        return str(self.value)
