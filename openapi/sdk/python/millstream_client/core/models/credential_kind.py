from enum import StrEnum


class CredentialKind(StrEnum):
    KEY = "key"
    PAIR = "pair"
    TOKEN = "token"

    def __str__(self) -> str:
        return str(self.value)
