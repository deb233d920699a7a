from enum import StrEnum


class StoresOutDurability(StrEnum):
    ALWAYS = "always"
    EVERYSEC = "everysec"
    REPLICATED = "replicated"

    def __str__(self) -> str:
        return str(self.value)
