"""URLs and ARNs of queues.

    <scheme>://<host as the client wrote it>/<account>/<name>      arn:aws:sqs:<region>:<account>:<name>

A client may reach the service by another name tomorrow, so any host is accepted in requests, and as at Amazon a bare
name and a final slash. In open mode the account is not checked either; with credentials it is the caller's own, and another account's
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
    """Return the queue that a URL names. Raises AwsError: QueueDoesNotExist."""
    if len(url) > URL_CHARACTERS_MAX:
        raise no_such_queue()
    return _queue_of_url(url, namespace)


def account_of_url(url: str) -> str:
    """Return the account that a valid queue URL names; "" for a bare name."""
    parts = _split(url)
    return parts[1] if len(parts) > 1 else ""


def check_address(url: str) -> None:
    """Raise AwsError: InvalidAddress unless the URL has the form of a queue's.

    Only Query calls are refused so: there the URL was the endpoint's.
    """
    if len(url) > URL_CHARACTERS_MAX or not _has_queue_form(_split(url)):
        raise _bad_address(url)


def _split(url: str) -> list[str]:
    """Return what precedes the account, the account and the name; or a bare name alone."""
    return url.removesuffix("/").rsplit("/", 2)


def _has_queue_form(parts: list[str]) -> bool:
    return len(parts) == 1 or (len(parts) == 3 and _ACCOUNT.fullmatch(parts[1]) is not None)


@lru_cache(maxsize=4096)
def _queue_of_url(url: str, namespace: str) -> QueueName:
    parts = _split(url)
    if not _has_queue_form(parts):
        raise no_such_queue()
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
