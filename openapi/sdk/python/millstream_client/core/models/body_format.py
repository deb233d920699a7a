from enum import StrEnum


class BodyFormat(StrEnum):
    BODY = "body"
    ENVELOPE = "envelope"

    def __str__(self) -> str:
        return str(self.value)
