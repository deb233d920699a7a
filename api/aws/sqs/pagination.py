"""Pagination of queue lists: the token is the last name returned, in base64."""

import base64
import binascii
from collections.abc import Sequence

from api.aws.protocol.errors import AwsError
from api.aws.sqs.errors import invalid, invalid_value

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


def next_token(names: Sequence[str], max_results: int | None) -> str | None:
    """Return the token of the next page, if a page size was given and this page is full."""
    if max_results is None or len(names) < max_results:
        return None
    return base64.b64encode(names[-1].rpartition("/")[2].encode()).decode()


def bad_token() -> AwsError:
    """Return the error for a token that this service did not issue."""
    return invalid("Invalid or expired next token.")
