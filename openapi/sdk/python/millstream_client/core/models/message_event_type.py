from enum import StrEnum


class MessageEventType(StrEnum):
    ACKNOWLEDGED = "acknowledged"
    CHANGED = "changed"
    DEAD_LETTERED = "dead_lettered"
    DELIVERED = "delivered"
    DEPARTED = "departed"
    DROPPED = "dropped"
    DUE = "due"
    EXPIRED = "expired"
    EXTENDED = "extended"
    LEASE_ENDED = "lease_ended"
    MOVED_IN = "moved_in"
    MOVED_OUT = "moved_out"
    NACKED = "nacked"
    PARKED = "parked"
    PURGED = "purged"
    PUT_BACK = "put_back"
    REDRIVEN = "redriven"
    REJECTED = "rejected"
    RELEASED = "released"
    SENT = "sent"

    def __str__(self) -> str:
        return str(self.value)
