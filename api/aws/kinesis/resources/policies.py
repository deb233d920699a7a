"""Resource policies, stored as text.

`api.aws.protocol.resource_policies` documents which part of them is honoured.
"""

from typing import Any

import msgspec

from api.aws.kinesis.errors import invalid
from api.aws.protocol.resource_policies import refused
from api.aws.protocol.service import AwsCall

CHARACTERS_MAX = 20_480  # as Amazon


async def check_policy(call: AwsCall[Any], text: str) -> None:
    """Raise AwsError unless the text is a policy that can be honoured.

    A policy is a JSON object with a list of statements.
    """
    try:
        policy = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        policy = {}
    if len(text) > CHARACTERS_MAX or "\0" in text or not isinstance(policy.get("Statement"), list):
        raise invalid("The resource policy is not a valid policy document.")
    if (reason := await refused(call, policy)) is not None:
        raise invalid(f"The resource policy is not supported. {reason}")
