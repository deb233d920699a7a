"""Access policies of queues, stored as text, with AddPermission and RemovePermission.

`api.aws.protocol.resource_policies` documents which part of them is honoured.
"""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from api.aws.protocol.codecs.xml import FORBIDDEN
from api.aws.protocol.resource_policies import refused
from api.aws.protocol.service import AwsCall
from api.aws.sqs.errors import (
    INVALID_ATTRIBUTE_VALUE,
    OVER_LIMIT,
    invalid_value,
    refuse,
)

ACTIONS_MAX = 7
CHARACTERS_MAX = 20_480  # far more than 20 statements, which is Amazon's limit
LABEL = re.compile(r"[A-Za-z0-9_-]{1,80}")

_ACCOUNT = re.compile(r"[0-9]{12}")
_VERSION = "2008-10-17"  # of the policies that AddPermission creates
_OWNER_ACTIONS = frozenset(
    {
        "AddPermission",
        "CancelMessageMoveTask",
        "CreateQueue",
        "DeleteQueue",
        "ListMessageMoveTasks",
        "ListQueues",
        "ListQueueTags",
        "RemovePermission",
        "SetQueueAttributes",
        "StartMessageMoveTask",
        "TagQueue",
        "UntagQueue",
    }
)
_ACTIONS = frozenset(
    {
        "*",
        "ChangeMessageVisibility",
        "DeleteMessage",
        "GetQueueAttributes",
        "GetQueueUrl",
        "ListDeadLetterSourceQueues",
        "PurgeQueue",
        "ReceiveMessage",
        "SendMessage",
    }
)


def check_policy(text: str) -> None:
    """Raise AwsError unless the text is a policy: a JSON object with a list of statements."""
    _parsed(text)


async def check_honoured(call: AwsCall[Any], text: str | None) -> None:
    """Raise AwsError for a policy that cannot be honoured."""
    if text and (reason := await refused(call, _parsed(text))) is not None:
        refuse(INVALID_ATTRIBUTE_VALUE, f"Invalid value for the parameter Policy. {reason}")


def add_permission(
    text: str | None, arn: str, label: str, accounts: Sequence[str], actions: Sequence[str]
) -> str:
    """Return the policy with one more statement. Raises AwsError."""
    _check_permission(label, accounts, actions)
    policy: dict[str, Any] = {"Version": _VERSION, "Id": f"{arn}/SQSDefaultPolicy", "Statement": []}
    if text:
        policy = _parsed(text)
    if any(_labelled(statement, label) for statement in policy["Statement"]):
        raise invalid_value("Label", label, "Already exists.")
    statement = {
        "Sid": label,
        "Effect": "Allow",
        "Principal": {"AWS": _one_or_many([f"arn:aws:iam::{one}:root" for one in accounts])},
        "Action": _one_or_many([f"SQS:{action}" for action in actions]),
        "Resource": arn,
    }
    policy["Statement"] = [*policy["Statement"], statement]
    added = _text(policy)
    if len(added) > CHARACTERS_MAX:
        refuse(OVER_LIMIT, f"The policy would be longer than {CHARACTERS_MAX} characters.")
    return added


def remove_permission(text: str | None, label: str) -> str | None:
    """Return the policy without the statement; None when none is left. Raises AwsError."""
    policy = _parsed(text) if text else {"Statement": []}
    left = [statement for statement in policy["Statement"] if not _labelled(statement, label)]
    if len(left) == len(policy["Statement"]):
        where = " on existing policy" if text else ""
        raise invalid_value("Label", label, f"can't find label{where}.")
    return _text(policy | {"Statement": left}) if left else None


def _check_permission(label: str, accounts: Sequence[str], actions: Sequence[str]) -> None:
    if not LABEL.fullmatch(label):
        reason = (
            "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"
        )
        raise invalid_value("Label", label, reason)
    for account in accounts:
        if not _ACCOUNT.fullmatch(account):
            raise invalid_value("PrincipalId", f"[{account}]", "Unable to verify.")
    if len(actions) > ACTIONS_MAX:
        refuse(OVER_LIMIT, f"{len(actions)} Actions were found, maximum allowed is {ACTIONS_MAX}.")
    for action in actions:
        if action in _OWNER_ACTIONS:
            reason = "Only the queue owner is allowed to invoke this action."
            raise invalid_value("ActionName", f"SQS:{action}", reason)
        if action not in _ACTIONS:
            reason = "Please refer to the appropriate WSDL for a list of valid actions."
            raise invalid_value("ActionName", f"SQS:{action}", reason)


def _parsed(text: str) -> dict[str, Any]:
    try:
        policy = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        policy = {}
    is_text = len(text) <= CHARACTERS_MAX and not FORBIDDEN.search(text)
    if not is_text or not isinstance(policy.get("Statement"), list):
        refuse(INVALID_ATTRIBUTE_VALUE, "Invalid value for the parameter Policy.")
    return policy


def _labelled(statement: object, label: str) -> bool:
    return isinstance(statement, dict) and statement.get("Sid") == label


def _one_or_many(words: list[str]) -> str | list[str]:
    return words[0] if len(words) == 1 else words


def _text(policy: dict[str, Any]) -> str:
    return msgspec.json.encode(policy).decode()
