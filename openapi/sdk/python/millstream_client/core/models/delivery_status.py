from enum import StrEnum


class DeliveryStatus(StrEnum):
    DELIVERED = "delivered"
    FAILED = "failed"
    GAP = "gap"
    RETRYING = "retrying"

    def __str__(self) -> str:
        return str(self.value)
