"""Quota cost of calls, and the error when a quota is exhausted."""

from typing import Any

from api.aws.protocol.errors import AwsError
from api.aws.protocol.service import Operation, QuotaCost
from api.aws.sqs.errors import REQUEST_THROTTLED
from api.aws.sqs.replies import is_reply_address
from storage.domain.access.permissions import Action
from storage.domain.errors import QuotaExceeded


def quota_cost_of(operation: Operation, request: Any) -> QuotaCost:
    """Return the cost of a call: a send costs its messages.

    The queue is the one that the URL ends with, or that is to be created.
    """
    url: str | None = getattr(request, "queue_url", None) or getattr(request, "queue_name", None)
    if url and is_reply_address(url):
        return QuotaCost("")
    resource = f"queue/{url.removesuffix('/').rpartition('/')[2]}" if url else ""
    if operation.action is not Action.QUEUE_SEND:
        return QuotaCost(resource)
    return QuotaCost.of_items(resource, getattr(request, "entries", None))


def throttled(_: Operation, error: QuotaExceeded) -> AwsError:
    """Return the throttling error, after which SDKs retry."""
    return AwsError(REQUEST_THROTTLED, error.detail)
