from enum import StrEnum


class TopicDedupScope(StrEnum):
    KEY = "key"
    TOPIC = "topic"

    def __str__(self) -> str:
        return str(self.value)
