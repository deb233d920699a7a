"""URLs and ARNs of queues.

    <scheme>://<host as the client wrote it>/<account>/<name>      arn:aws:sqs:<region>:<account>:<name>

A client may reach the service by another name tomorrow, so any host is accepted in requests, and as at Amazon a bare
name. In open mode the account is not checked either; with credentials it is the caller's own, and another account's
queues do not exist for the caller.
"""

import re
from functools import lru_cache

from api.aws.protocol.errors import AwsError
from api.aws.sqs.errors import INVALID_ADDRESS, invalid, no_such_queue
from storage.domain.errors import ValidationFailed
from storage.domain.names import QueueName

URL_CHARACTERS_MAX = 2048

_ARN = re.compile(r"arn:[a-z-]+:sqs:[A-Za-z0-9-]*:([0-9]{12}):([A-Za-z0-9_.-]{1,80})")
_ACCOUNT = re.compile(r"[0-9]{12}")


def queue_url(address: str, account_id: str, name: str) -> str:
    """Return a queue's URL, below the service's address."""
    return f"{address}/{account_id}/{name}"


def queue_arn(region: str, account_id: str, name: str) -> str:
    """Return a queue's ARN."""
    return f"arn:aws:sqs:{region}:{account_id}:{name}"


def queue_of_url(url: str, namespace: str) -> QueueName:
    """Return the queue that a URL names. Raises AwsError."""
    if len(url) > URL_CHARACTERS_MAX:
        raise _bad_address(url)
    return _queue_of_url(url, namespace)


def account_of_url(url: str) -> str:
    """Return the account that a valid queue URL names; "" for a bare name."""
    return url.rsplit("/", 2)[1] if "/" in url else ""


@lru_cache(maxsize=4096)
def _queue_of_url(url: str, namespace: str) -> QueueName:
    parts = url.rsplit("/", 2)
    if len(parts) > 1 and not (len(parts) == 3 and _ACCOUNT.fullmatch(parts[1])):
        raise _bad_address(url)
    try:
        return QueueName(parts[-1], namespace)
    except ValidationFailed:
        raise no_such_queue() from None


def queue_of_arn(arn: str, namespace: str, account_id: str) -> QueueName | None:
    """Return the queue that an ARN names; None for another account's, or if it is invalid."""
    match = _ARN.fullmatch(arn)
    if match is None or match[1] != account_id:
        return None
    try:
        return QueueName(match[2], namespace)
    except ValidationFailed:
        return None


def check_arn(arn: str, parameter: str) -> None:
    """Raise AwsError unless this looks like a queue's ARN."""
    if not _ARN.fullmatch(arn):
        raise invalid(
            f"You must use this format to specify the {parameter}: "
            "arn:<partition>:<service>:<region>:<account-id>:<resource-name>"
        )


def _bad_address(url: str) -> AwsError:
    return AwsError(INVALID_ADDRESS, f"The address {url[:256]} is not valid for this endpoint.")
