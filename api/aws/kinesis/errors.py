"""Kinesis errors: its faults, and the translation of engine errors.

Every client fault is a 400, throttling included; messages are the ones that Amazon returns, as far as they are known from
recorded responses.
"""

from typing import NoReturn, assert_never

from api.aws.protocol.errors import (
    ACCESS_DENIED,
    BAD_REQUEST,
    SERVICE_UNAVAILABLE,
    AwsError,
    AwsFault,
)
from storage.domain.errors import ErrorCode, MillstreamError


def _fault(shape: str, status: int = 400) -> AwsFault:
    return AwsFault(shape, shape, status)


RESOURCE_NOT_FOUND = _fault("ResourceNotFoundException")
RESOURCE_IN_USE = _fault("ResourceInUseException")
INVALID_ARGUMENT = _fault("InvalidArgumentException")
LIMIT_EXCEEDED = _fault("LimitExceededException")
VALIDATION = _fault("ValidationException")
EXPIRED_ITERATOR = _fault("ExpiredIteratorException")
EXPIRED_NEXT_TOKEN = _fault("ExpiredNextTokenException")
THROUGHPUT_EXCEEDED = _fault("ProvisionedThroughputExceededException")
INTERNAL_FAILURE = _fault("InternalFailureException", 500)
DRY_RUN = _fault("DryRunOperationException")

_COMMON_PREFIX = "com.amazon.coral.service#"


def refuse(fault: AwsFault, message: str) -> NoReturn:
    """Raise the fault."""
    raise AwsError(fault, message)


def invalid(message: str) -> AwsError:
    """Return the error for an argument that is not allowed."""
    return AwsError(INVALID_ARGUMENT, message)


def no_such_stream(name: str, account: str) -> AwsError:
    """Return the error for a stream that does not exist."""
    return AwsError(RESOURCE_NOT_FOUND, f"Stream {name} under account {account} not found.")


def no_such_shard(shard_id: str, name: str, account: str) -> AwsError:
    """Return the error for a shard that does not exist, or no longer exists."""
    return AwsError(
        RESOURCE_NOT_FOUND,
        f"Shard {shard_id} in stream {name} under account {account} does not exist",
    )


def no_shard_to_reshard(shard_id: str, name: str, account: str) -> AwsError:
    """Return the error for a split or merge of a shard that does not exist."""
    return AwsError(
        RESOURCE_NOT_FOUND,
        f"Could not find shard {shard_id} in stream {name} under account {account}.",
    )


def already_resharded(shard_id: str, name: str, account: str) -> AwsError:
    """Return the error for a split or merge of a closed shard."""
    return invalid(
        f"Shard {shard_id} in stream {name} under account {account} has already been merged or split, "
        "and thus is not eligible for merging or splitting."
    )


def dry_run() -> AwsError:
    """Return the error for a valid call that was not to be executed."""
    return AwsError(DRY_RUN, "Request would have succeeded, but DryRun flag is set.")


def as_kinesis_error(error: AwsError) -> AwsError:
    """Convert the common faults to Kinesis's form: without a prefix, and only 400 or 5xx."""
    fault = error.fault
    if not fault.shape.startswith(_COMMON_PREFIX):
        return error
    if fault.status == 500:
        return AwsError(INTERNAL_FAILURE, error.message)
    shape = fault.shape.removeprefix(_COMMON_PREFIX)
    return AwsError(
        AwsFault(shape, shape, fault.status if fault.status > 500 else 400), error.message
    )


def translate(error: MillstreamError) -> AwsError:
    """Translate an engine's error, unless its operation reports it in more detail."""
    code = error.code
    match code:
        case ErrorCode.STREAM_NOT_FOUND | ErrorCode.STREAM_RECREATED | ErrorCode.SHARD_NOT_FOUND:
            return AwsError(RESOURCE_NOT_FOUND, error.detail)
        case (
            ErrorCode.VALIDATION_FAILED
            | ErrorCode.MESSAGE_TOO_LARGE
            | ErrorCode.BATCH_TOO_LARGE
            | ErrorCode.INVALID_CURSOR
            | ErrorCode.OFFSET_EXPIRED
            | ErrorCode.OFFSET_OUT_OF_RANGE
            | ErrorCode.QUOTA_TOO_SMALL
        ):
            return invalid(error.detail)
        case ErrorCode.STREAM_BUSY | ErrorCode.PRECONDITION_FAILED | ErrorCode.SHARD_CLOSED:
            return AwsError(RESOURCE_IN_USE, error.detail)
        case (
            ErrorCode.FORBIDDEN
            | ErrorCode.UNAUTHENTICATED
            | ErrorCode.STREAM_READ_ONLY
            | ErrorCode.NAMESPACE_NOT_FOUND
        ):
            return AwsError(ACCESS_DENIED, error.detail)
        case ErrorCode.QUOTA_REACHED:
            return AwsError(LIMIT_EXCEEDED, error.detail)
        case (
            ErrorCode.STORAGE_BUSY
            | ErrorCode.ARCHIVE_BEHIND
            | ErrorCode.QUOTA_EXCEEDED
            | ErrorCode.BACKLOG_FULL
        ):
            return AwsError(THROUGHPUT_EXCEEDED, error.detail)
        case ErrorCode.STORAGE_UNAVAILABLE | ErrorCode.STORAGE_FULL:
            return AwsError(SERVICE_UNAVAILABLE, error.detail)
        case ErrorCode.STORAGE_TIMEOUT | ErrorCode.ARCHIVE_DAMAGED:
            return AwsError(INTERNAL_FAILURE, error.detail)
        case (
            ErrorCode.QUEUE_NOT_FOUND
            | ErrorCode.MESSAGE_NOT_FOUND
            | ErrorCode.RECEIPT_HANDLE_INVALID
            | ErrorCode.RECEIPT_HANDLE_EXPIRED
            | ErrorCode.IN_FLIGHT_LIMIT_REACHED
            | ErrorCode.MESSAGE_IN_FLIGHT
            | ErrorCode.PURGE_IN_PROGRESS
            | ErrorCode.MOVE_REFUSED
            | ErrorCode.MOVE_NOT_FOUND
            | ErrorCode.IDEMPOTENCY_KEY_REUSED
            | ErrorCode.RECORD_NOT_FOUND
            | ErrorCode.OFFSET_MISMATCH
            | ErrorCode.FENCE_MISMATCH
            | ErrorCode.PRODUCER_FENCED
            | ErrorCode.SEQUENCE_OUT_OF_ORDER
            | ErrorCode.DUPLICATE_FORGOTTEN
            | ErrorCode.TOO_MANY_PRODUCERS
            | ErrorCode.QUEUE_FULL
            | ErrorCode.GROUP_NOT_PARKED
            | ErrorCode.GROUP_NOT_FOUND
            | ErrorCode.GROUP_FULL
            | ErrorCode.MEMBER_UNKNOWN
            | ErrorCode.STALE_GENERATION
            | ErrorCode.BOOKMARK_NOT_FOUND
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
        ):  # never raised by plain appends and reads
            return AwsError(BAD_REQUEST, error.detail)
        case _:
            assert_never(code)
