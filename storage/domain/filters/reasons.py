"""Faults of filters, in the words of the grammar."""


class PatternInvalid(ValueError):
    """The filter is not a pattern of the grammar: the reason, and a JSON Pointer to the fault."""

    def __init__(self, reason: str, pointer: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.pointer = pointer


def pointer_token(name: str) -> str:
    """Escape a name for a JSON Pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")
