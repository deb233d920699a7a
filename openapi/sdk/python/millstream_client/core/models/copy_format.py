from enum import StrEnum


class CopyFormat(StrEnum):
    BODY = "body"
    CLOUDEVENTS = "cloudevents"
    CLOUDEVENTS_BINARY = "cloudevents_binary"
    ENVELOPE = "envelope"

    def __str__(self) -> str:
        return str(self.value)
