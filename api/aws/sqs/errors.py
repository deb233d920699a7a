"""SQS errors: the shape and code of each fault, and the translation of engine errors.

Messages are the ones that Amazon returns, as far as they are known from recorded responses.
"""

from typing import NoReturn

from api.aws.protocol.errors import (
    ACCESS_DENIED,
    AwsError,
    AwsFault,
    ErrorTranslation,
)
from storage.domain.errors import ErrorCategory, ErrorCode, MillstreamError


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
    if error.code in (ErrorCode.QUEUE_NOT_FOUND, ErrorCode.REQUEST_NOT_FOUND):
        return no_such_queue()
    if error.code is ErrorCode.MOVE_NOT_FOUND:
        return AwsError(RESOURCE_NOT_FOUND, "Task does not exist.")
    fault = TRANSLATION.fault_of(error.code)
    if fault is INVALID_PARAMETER_VALUE:
        return invalid(f"One or more parameters are invalid. Reason: {error.detail}")
    return AwsError(fault, error.detail)


TRANSLATION = ErrorTranslation(
    categories={
        ErrorCategory.INVALID: INVALID_PARAMETER_VALUE,
        ErrorCategory.NOT_FOUND: RESOURCE_NOT_FOUND,
        ErrorCategory.CONFLICT: UNSUPPORTED_OPERATION,
        ErrorCategory.GONE: INVALID_PARAMETER_VALUE,
        ErrorCategory.TOO_LARGE: INVALID_PARAMETER_VALUE,
        ErrorCategory.THROTTLED: REQUEST_THROTTLED,
    },
    codes={
        ErrorCode.QUEUE_NOT_FOUND: QUEUE_DOES_NOT_EXIST,
        ErrorCode.REQUEST_NOT_FOUND: QUEUE_DOES_NOT_EXIST,
        ErrorCode.RECEIPT_HANDLE_INVALID: RECEIPT_HANDLE_IS_INVALID,
        ErrorCode.MESSAGE_NOT_FOUND: INVALID_PARAMETER_VALUE,
        ErrorCode.MOVE_REFUSED: INVALID_PARAMETER_VALUE,
        ErrorCode.GROUP_NOT_PARKED: UNSUPPORTED_OPERATION,
        ErrorCode.NAMESPACE_NOT_FOUND: ACCESS_DENIED,
        ErrorCode.IN_FLIGHT_LIMIT_REACHED: OVER_LIMIT,
        ErrorCode.QUOTA_REACHED: OVER_LIMIT,
        ErrorCode.PURGE_IN_PROGRESS: PURGE_QUEUE_IN_PROGRESS,
    },
)


def bad_handle(handle: str) -> AwsError:
    """Return the error for text that is not a receipt handle of this queue."""
    return AwsError(
        RECEIPT_HANDLE_IS_INVALID,
        f'The input receipt handle "{handle[:256]}" is not a valid receipt handle.',
    )
