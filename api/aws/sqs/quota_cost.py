"""What calls cost their quotas, and what SQS says when there is no room."""

from typing import Any

from api.aws.protocol.errors import AwsError
from api.aws.protocol.service import Load, Operation
from api.aws.sqs.errors import REQUEST_THROTTLED
from storage.domain.access.permissions import Action
from storage.domain.errors import QuotaExceeded


def load_of(operation: Operation, asked: Any) -> Load:
    """A send costs its messages; the queue is the one that the URL ends with, or that is to be made."""
    url = getattr(asked, "queue_url", None) or getattr(asked, "queue_name", None)
    resource = f"queue/{url.rpartition('/')[2]}" if url else ""
    if operation.action is not Action.QUEUE_SEND:
        return Load(resource)
    entries = getattr(asked, "entries", None)
    return Load(resource, 1 if entries is None else len(entries))


def throttled(_: Operation, error: QuotaExceeded) -> AwsError:
    """SDKs come back later."""
    return AwsError(REQUEST_THROTTLED, error.detail)
