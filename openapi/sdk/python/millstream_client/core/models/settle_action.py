from enum import StrEnum


class SettleAction(StrEnum):
    ACK = "ack"
    EXTEND = "extend"
    NACK = "nack"
    REJECT = "reject"
    RELEASE = "release"

    def __str__(self) -> str:
        return str(self.value)
