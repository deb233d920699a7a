"""Quota cost of calls, and the error when a quota is exhausted."""

from typing import Any

from api.aws.kinesis.arns import read_arn
from api.aws.kinesis.errors import LIMIT_EXCEEDED, THROUGHPUT_EXCEEDED
from api.aws.protocol.errors import AwsError
from api.aws.protocol.service import Operation, QuotaCost
from storage.domain.access.permissions import Action
from storage.domain.errors import QuotaExceeded

_OF_DATA = frozenset({Action.STREAM_PUT, Action.STREAM_READ})


def quota_cost_of(operation: Operation, request: Any) -> QuotaCost:
    """Return the cost of a call: a put costs its records.

    The stream is the one that the call's name or ARN names.
    """
    name = getattr(request, "stream_name", None)
    if name is None and (arn := getattr(request, "stream_arn", None)) is not None:
        named = read_arn(arn)
        name = named.stream if named is not None else None
    resource = f"stream/{name}" if name else ""
    if operation.action is not Action.STREAM_PUT:
        return QuotaCost(resource)
    return QuotaCost.of_items(resource, getattr(request, "records", None))


def throttled(operation: Operation, error: QuotaExceeded) -> AwsError:
    """Return the throttling error, which differs for data and control calls.

    SDKs retry after both.
    """
    fault = THROUGHPUT_EXCEEDED if operation.action in _OF_DATA else LIMIT_EXCEEDED
    return AwsError(fault, error.detail)
