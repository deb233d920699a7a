"""Kinesis errors: its faults, and the translation of engine errors.

Every client fault is a 400, throttling included; messages are the ones that Amazon returns, as far as they are known from
recorded responses.
"""

from typing import NoReturn

from api.aws.protocol.errors import (
    ACCESS_DENIED,
    BAD_REQUEST,
    AwsError,
    AwsFault,
    ErrorTranslation,
)
from storage.domain.errors import ErrorCategory, ErrorCode, MillstreamError


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
    return AwsError(TRANSLATION.fault_of(error.code), error.detail)


TRANSLATION = ErrorTranslation(
    categories={
        ErrorCategory.INVALID: INVALID_ARGUMENT,
        ErrorCategory.NOT_FOUND: RESOURCE_NOT_FOUND,
        ErrorCategory.CONFLICT: RESOURCE_IN_USE,
        ErrorCategory.GONE: INVALID_ARGUMENT,
        ErrorCategory.TOO_LARGE: INVALID_ARGUMENT,
        ErrorCategory.THROTTLED: THROUGHPUT_EXCEEDED,
        ErrorCategory.UNKNOWN_OUTCOME: INTERNAL_FAILURE,
        ErrorCategory.INTERNAL: INTERNAL_FAILURE,
    },
    codes={
        ErrorCode.STREAM_RECREATED: RESOURCE_NOT_FOUND,
        ErrorCode.STREAM_READ_ONLY: ACCESS_DENIED,
        ErrorCode.FENCE_MISMATCH: BAD_REQUEST,
        ErrorCode.NAMESPACE_NOT_FOUND: ACCESS_DENIED,
        ErrorCode.QUOTA_REACHED: LIMIT_EXCEEDED,
        ErrorCode.STORAGE_BUSY: THROUGHPUT_EXCEEDED,
    },
)
