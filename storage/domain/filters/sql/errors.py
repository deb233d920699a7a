"""Error of a condition that cannot be compiled."""


class ConditionInvalid(ValueError):
    """A SQL condition is invalid or uses what conditions do not have.

    `reason` is a plain sentence. `position` is the index of the first wrong character, if it is known.
    """

    def __init__(self, reason: str, position: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position
