from enum import StrEnum


class ConsumerProtocol(StrEnum):
    REST = "rest"
    SQS = "sqs"
    WEBHOOK = "webhook"
    WS = "ws"

    def __str__(self) -> str:
        return str(self.value)
