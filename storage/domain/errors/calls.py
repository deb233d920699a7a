"""Errors of a call, whatever its noun."""

from storage.domain.errors.codes import ErrorCode
from storage.domain.errors.error import MillstreamError


class BatchTooLarge(MillstreamError):
    """The batch has more items or bytes than one call allows."""

    code = ErrorCode.BATCH_TOO_LARGE


class InvalidCursor(MillstreamError):
    """The cursor was not issued by this service, or belongs to a different list."""

    code = ErrorCode.INVALID_CURSOR


class PreconditionFailed(MillstreamError):
    """The resource is not in the state that the request requires."""

    code = ErrorCode.PRECONDITION_FAILED


class AlreadyExists(PreconditionFailed):
    """The request may only create, and the object exists. `current` is its definition."""

    def __init__(self, noun: str, name: str, current: object) -> None:
        super().__init__(f"The {noun} '{name}' already exists.")
        self.current = current


class IdempotencyKeyReused(MillstreamError):
    """The idempotency key was already used with different content."""

    code = ErrorCode.IDEMPOTENCY_KEY_REUSED


class SocketNotFound(MillstreamError):
    """The WebSocket connection does not exist."""

    code = ErrorCode.SOCKET_NOT_FOUND
