from enum import StrEnum


class ApiProtocol(StrEnum):
    CLI = "cli"
    KINESIS = "kinesis"
    REST = "rest"
    SQS = "sqs"
    STS = "sts"
    SYSTEM = "system"
    WS = "ws"

    def __str__(self) -> str:
        return str(self.value)
