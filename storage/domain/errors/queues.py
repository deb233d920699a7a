"""Errors of queues, their messages and moves."""

from storage.domain.errors.codes import ErrorCode
from storage.domain.errors.error import MillstreamError


class QueueNotFound(MillstreamError):
    """The queue does not exist."""

    code = ErrorCode.QUEUE_NOT_FOUND


class MessageTooLarge(MillstreamError):
    """The message is larger than its queue or stream accepts."""

    code = ErrorCode.MESSAGE_TOO_LARGE


class ReceiptHandleInvalid(MillstreamError):
    """The receipt handle was not issued by this queue."""

    code = ErrorCode.RECEIPT_HANDLE_INVALID


class MessageNotFound(MillstreamError):
    """The message is no longer in the queue."""

    code = ErrorCode.MESSAGE_NOT_FOUND


class ReceiptHandleExpired(MillstreamError):
    """This receipt handle belongs to an earlier delivery of the message."""

    code = ErrorCode.RECEIPT_HANDLE_EXPIRED


class InFlightLimitReached(MillstreamError):
    """The queue's limit of messages in flight is reached; settle some first."""

    code = ErrorCode.IN_FLIGHT_LIMIT_REACHED


class QueueFull(MillstreamError):
    """The queue is full; nothing of this call was added."""

    code = ErrorCode.QUEUE_FULL


class GroupNotParked(MillstreamError):
    """No parked group has this name in this queue."""

    code = ErrorCode.GROUP_NOT_PARKED


class MessageInFlight(MillstreamError):
    """The message is in flight; settle it with its receipt handle."""

    code = ErrorCode.MESSAGE_IN_FLIGHT


class PurgeInProgress(MillstreamError):
    """The queue was purged moments ago."""

    code = ErrorCode.PURGE_IN_PROGRESS


class MoveRefused(MillstreamError):
    """The messages of this queue cannot be moved to that target now."""

    code = ErrorCode.MOVE_REFUSED


class MoveNotFound(MillstreamError):
    """The move does not exist."""

    code = ErrorCode.MOVE_NOT_FOUND
