"""Resource policies: kept as text. They are not in effect: who may do what is this deployment's own matter."""

from typing import Any

import msgspec

from api.aws.kinesis.errors import invalid

CHARACTERS_MAX = 20_480  # as Amazon


def check_policy(text: str) -> None:
    """Raise AwsError unless the text is a policy: a JSON object with a list of statements."""
    try:
        policy = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        policy = {}
    if len(text) > CHARACTERS_MAX or "\0" in text or not isinstance(policy.get("Statement"), list):
        raise invalid("The resource policy is not a valid policy document.")
