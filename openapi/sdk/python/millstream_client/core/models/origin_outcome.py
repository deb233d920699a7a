from enum import StrEnum


class OriginOutcome(StrEnum):
    FENCED = "fenced"
    IGNORED = "ignored"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"

    def __str__(self) -> str:
        return str(self.value)
