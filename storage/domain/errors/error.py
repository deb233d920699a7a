"""Base class of all errors, and faults of an input."""

from typing import Any, ClassVar

import msgspec

from storage.domain.errors.codes import ErrorCode


class FieldFault(msgspec.Struct, frozen=True):
    """One fault of an input: where it is (a JSON Pointer), what is wrong, and its code."""

    pointer: str
    detail: str
    code: str = "invalid"


class MillstreamError(Exception):
    """The request was rejected or failed."""

    code: ClassVar[ErrorCode]

    def __init__(self, detail: str | None = None, **facts: Any) -> None:
        self.detail = detail or (type(self).__doc__ or "").split("\n", 1)[0]
        self.facts = facts
        super().__init__(self.detail)


class ValidationFailed(MillstreamError):
    """Request validation failed."""

    code = ErrorCode.VALIDATION_FAILED

    def __init__(self, detail: str | None = None, *faults: FieldFault) -> None:
        super().__init__(detail or (faults[0].detail if faults else None))
        self.faults = faults

    @classmethod
    def at(cls, pointer: str, detail: str, code: str = "invalid") -> "ValidationFailed":
        """Return an error with one fault, at `pointer`."""
        return cls(detail, FieldFault(pointer, detail, code))


def error_types() -> dict[ErrorCode, type[MillstreamError]]:
    """Return the most general class of each code."""
    classes: dict[ErrorCode, type[MillstreamError]] = {}
    left = MillstreamError.__subclasses__()
    while left:
        classes.update({kind.code: kind for kind in left if kind.code not in classes})
        left = [child for kind in left for child in kind.__subclasses__()]
    return classes
