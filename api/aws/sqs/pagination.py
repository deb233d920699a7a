"""Pagination of queue lists: the token is the last name returned, in base64."""

import base64
import binascii
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from api.aws.protocol.errors import AwsError
from api.aws.protocol.service import AwsCall
from api.aws.sqs.errors import invalid, invalid_value
from storage.domain.errors import InvalidCursor
from storage.domain.queues.queue import Queue

RESULTS_MAX = 1_000


def page_of(max_results: int | None, token: str | None) -> tuple[int, str]:
    """Return the page size, and the name after which the page begins. Raises AwsError."""
    if max_results is not None and not 1 <= max_results <= RESULTS_MAX:
        reason = f"MaxResults must be an integer between 1 and {RESULTS_MAX}."
        raise invalid_value("MaxResults", max_results, reason)
    return max_results or RESULTS_MAX, _name_of(token) if token else ""


def _name_of(token: str) -> str:
    try:
        return base64.b64decode(token, validate=True).decode()
    except (binascii.Error, ValueError):
        raise bad_token() from None


async def visible_names(
    call: AwsCall[Any],
    read_page: Callable[[str, int], Awaitable[Sequence[Queue]]],
    after: str,
    count: int,
) -> list[str]:
    """Return the first `count` names behind `after` that the caller may see.

    `read_page` gets the name after which a page begins, and its size. Raises AwsError for a token that cannot be a name.
    """
    names: list[str] = []
    size = min(count, RESULTS_MAX)
    while True:
        try:
            page = await read_page(after, size)
        except InvalidCursor:
            raise bad_token() from None
        names += [queue.name.name for queue in page if call.may_see(queue.name.name)]
        if len(page) < size or len(names) >= count:
            return names[:count]
        after = page[-1].name.name


def next_token(names: Sequence[str], max_results: int | None) -> str | None:
    """Return the token after this page, if a page size was given and `names` go beyond it."""
    if max_results is None or len(names) <= max_results:
        return None
    return base64.b64encode(names[max_results - 1].encode()).decode()


def bad_token() -> AwsError:
    """Return the error for a token that this service did not issue."""
    return invalid("Invalid or expired next token.")
