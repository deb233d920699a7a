from enum import StrEnum


class KeyKind(StrEnum):
    ACCESS_KEY = "access_key"
    KEY = "key"
    PAIR = "pair"
    TOKEN = "token"

    def __str__(self) -> str:
        return str(self.value)
