"""SQS errors: the shape and code of each fault, and the translation of engine errors.

Messages are the ones that Amazon returns, as far as they are known from recorded responses.
"""

from typing import NoReturn, assert_never

from api.aws.protocol.errors import (
    ACCESS_DENIED,
    INTERNAL_FAILURE,
    SERVICE_UNAVAILABLE,
    AwsError,
    AwsFault,
)
from storage.domain.errors import ErrorCode, MillstreamError


def _fault(shape: str, code: str = "", status: int = 400) -> AwsFault:
    return AwsFault(f"com.amazonaws.sqs#{shape}", code or shape, status)


def _prefixed(shape: str, status: int = 400, code: str = "") -> AwsFault:
    """Return a fault whose Query code has the service's former name as a prefix."""
    return _fault(shape, f"AWS.SimpleQueueService.{code or shape}", status)


QUEUE_DOES_NOT_EXIST = _prefixed("QueueDoesNotExist", code="NonExistentQueue")
QUEUE_DELETED_RECENTLY = _prefixed("QueueDeletedRecently")
QUEUE_NAME_EXISTS = _fault("QueueNameExists", "QueueAlreadyExists")
PURGE_QUEUE_IN_PROGRESS = _prefixed("PurgeQueueInProgress", 403)
EMPTY_BATCH_REQUEST = _prefixed("EmptyBatchRequest")
TOO_MANY_ENTRIES = _prefixed("TooManyEntriesInBatchRequest")
BATCH_ENTRY_IDS_NOT_DISTINCT = _prefixed("BatchEntryIdsNotDistinct")
INVALID_BATCH_ENTRY_ID = _prefixed("InvalidBatchEntryId")
BATCH_REQUEST_TOO_LONG = _prefixed("BatchRequestTooLong")
RECEIPT_HANDLE_IS_INVALID = _fault("ReceiptHandleIsInvalid")
INVALID_PARAMETER_VALUE = _fault("InvalidParameterValueException", "InvalidParameterValue")
MISSING_PARAMETER = _fault("MissingRequiredParameterException", "MissingParameter")
INVALID_MESSAGE_CONTENTS = _fault("InvalidMessageContents")
INVALID_ATTRIBUTE_NAME = _fault("InvalidAttributeName")
INVALID_ATTRIBUTE_VALUE = _fault("InvalidAttributeValue")
RESOURCE_NOT_FOUND = _fault("ResourceNotFoundException", status=404)
UNSUPPORTED_OPERATION = _prefixed("UnsupportedOperation")
OVER_LIMIT = _fault("OverLimit", status=403)
REQUEST_THROTTLED = _fault("RequestThrottled", status=403)
INVALID_ADDRESS = _fault("InvalidAddress", status=404)


def no_such_queue() -> AwsError:
    """Return the error for a missing queue; its Query message has always been longer."""
    text = "The specified queue does not exist"
    return AwsError(
        QUEUE_DOES_NOT_EXIST, f"{text}.", query_message=f"{text} for this wsdl version."
    )


def missing(parameter: str) -> AwsError:
    """Return the error for a missing required parameter."""
    return AwsError(MISSING_PARAMETER, f"The request must contain the parameter {parameter}.")


def invalid(message: str) -> AwsError:
    """Return the error for a parameter value that is not allowed."""
    return AwsError(INVALID_PARAMETER_VALUE, message)


def invalid_value(parameter: str, value: object, reason: str) -> AwsError:
    """Return the error for a parameter value that is not allowed, in AWS's usual sentence."""
    return invalid(f"Value {value} for parameter {parameter} is invalid. Reason: {reason}")


def no_deduplication() -> AwsError:
    """Return the error for a FIFO message without a deduplication id."""
    return invalid(
        "The queue should either have ContentBasedDeduplication enabled or "
        "MessageDeduplicationId provided explicitly"
    )


def wrong_queue_type(parameter: str, value: object) -> AwsError:
    """Return the error for a FIFO parameter on a standard queue, or the reverse."""
    reason = "The request include parameter that is not valid for this queue type."
    return invalid_value(parameter, value, reason)


def required(value: str | None, parameter: str) -> str:
    """Return the value of a required parameter. Raises AwsError if it is missing or empty."""
    if not value:
        raise missing(parameter)
    return value


def refuse(fault: AwsFault, message: str) -> NoReturn:
    """Raise the fault."""
    raise AwsError(fault, message)


def translate(error: MillstreamError) -> AwsError:
    """Translate an engine's error, unless its operation reports it in more detail."""
    code = error.code
    match code:
        case ErrorCode.QUEUE_NOT_FOUND:
            return no_such_queue()
        case (
            ErrorCode.VALIDATION_FAILED
            | ErrorCode.MESSAGE_TOO_LARGE
            | ErrorCode.BATCH_TOO_LARGE
            | ErrorCode.INVALID_CURSOR
            | ErrorCode.RECEIPT_HANDLE_EXPIRED
            | ErrorCode.MESSAGE_NOT_FOUND
            | ErrorCode.IDEMPOTENCY_KEY_REUSED
            | ErrorCode.MOVE_REFUSED
            | ErrorCode.QUOTA_TOO_SMALL
        ):
            return invalid(f"One or more parameters are invalid. Reason: {error.detail}")
        case ErrorCode.RECEIPT_HANDLE_INVALID:
            return AwsError(RECEIPT_HANDLE_IS_INVALID, error.detail)
        case ErrorCode.MOVE_NOT_FOUND:
            return AwsError(RESOURCE_NOT_FOUND, "Task does not exist.")
        case ErrorCode.FORBIDDEN | ErrorCode.UNAUTHENTICATED | ErrorCode.NAMESPACE_NOT_FOUND:
            return AwsError(ACCESS_DENIED, error.detail)
        case ErrorCode.IN_FLIGHT_LIMIT_REACHED | ErrorCode.QUOTA_REACHED:
            return AwsError(OVER_LIMIT, error.detail)
        case ErrorCode.QUEUE_FULL | ErrorCode.QUOTA_EXCEEDED | ErrorCode.BACKLOG_FULL:
            return AwsError(REQUEST_THROTTLED, error.detail)
        case ErrorCode.PURGE_IN_PROGRESS:
            return AwsError(PURGE_QUEUE_IN_PROGRESS, error.detail)
        case (
            ErrorCode.PRECONDITION_FAILED | ErrorCode.MESSAGE_IN_FLIGHT | ErrorCode.GROUP_NOT_PARKED
        ):
            return AwsError(UNSUPPORTED_OPERATION, error.detail)
        case ErrorCode.STORAGE_UNAVAILABLE | ErrorCode.STORAGE_FULL | ErrorCode.STORAGE_BUSY:
            return AwsError(SERVICE_UNAVAILABLE, error.detail)
        case ErrorCode.STORAGE_TIMEOUT:
            return AwsError(INTERNAL_FAILURE, error.detail)
        case (
            ErrorCode.STREAM_NOT_FOUND
            | ErrorCode.STREAM_RECREATED
            | ErrorCode.STREAM_READ_ONLY
            | ErrorCode.SHARD_NOT_FOUND
            | ErrorCode.STREAM_BUSY
            | ErrorCode.RECORD_NOT_FOUND
            | ErrorCode.OFFSET_EXPIRED
            | ErrorCode.OFFSET_OUT_OF_RANGE
            | ErrorCode.OFFSET_MISMATCH
            | ErrorCode.FENCE_MISMATCH
            | ErrorCode.SHARD_CLOSED
            | ErrorCode.PRODUCER_FENCED
            | ErrorCode.SEQUENCE_OUT_OF_ORDER
            | ErrorCode.DUPLICATE_FORGOTTEN
            | ErrorCode.TOO_MANY_PRODUCERS
            | ErrorCode.GROUP_NOT_FOUND
            | ErrorCode.MEMBER_UNKNOWN
            | ErrorCode.STALE_GENERATION
            | ErrorCode.GROUP_FULL
            | ErrorCode.BOOKMARK_NOT_FOUND
            | ErrorCode.ARCHIVE_BEHIND
            | ErrorCode.ARCHIVE_DAMAGED
            | ErrorCode.ARCHIVE_OFF
            | ErrorCode.JOB_NOT_FOUND
            | ErrorCode.SOCKET_NOT_FOUND
            | ErrorCode.JOB_REFUSED
            | ErrorCode.WEBHOOK_NOT_FOUND
            | ErrorCode.DELIVERY_NOT_FOUND
            | ErrorCode.PAYLOAD_GONE
            | ErrorCode.WEBHOOK_BUSY
            | ErrorCode.NAMESPACE_IN_USE
            | ErrorCode.SECRETS_OFF
            | ErrorCode.SECRET_UNREADABLE
            | ErrorCode.KEY_NOT_FOUND
            | ErrorCode.KEY_REFUSED
        ):  # never raised by queues
            return AwsError(UNSUPPORTED_OPERATION, error.detail)
        case _:
            assert_never(code)


def bad_handle(handle: str) -> AwsError:
    """Return the error for text that is not a receipt handle of this queue."""
    return AwsError(
        RECEIPT_HANDLE_IS_INVALID,
        f'The input receipt handle "{handle[:256]}" is not a valid receipt handle.',
    )
