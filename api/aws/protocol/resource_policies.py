"""Policies of resources, as far as they mean anything here.

Who may do what is said by credentials, which belong to one account: so a policy may allow its own account what that
account's keys allow anyhow, and maps to that. Whatever would let others in or keep some out is refused, since it would
not hold. In open mode, where everyone may do everything, a policy is kept as text and says nothing.
"""

from typing import Any

from api.aws.protocol.service import Call

_MAPPED = frozenset({"Sid", "Effect", "Principal", "Action", "Resource"})


def refusal_of(policy: dict[str, Any], account: str) -> str | None:
    """Why a policy cannot be honoured, in a sentence; None when it can."""
    for statement in policy["Statement"]:
        if not isinstance(statement, dict):
            return "A statement is an object."
        unmapped = sorted(statement.keys() - _MAPPED)
        if unmapped:
            return f"Statements with {unmapped[0]} have no effect here, and are not taken."
        if statement.get("Effect") != "Allow":
            return "Nothing is denied by a policy here: give keys that may do less."
        principal = statement.get("Principal")
        named = principal.get("AWS") if isinstance(principal, dict) else principal
        words = named if isinstance(named, list) else [named]
        if any(word not in (account, f"arn:aws:iam::{account}:root") for word in words):
            return "No other account is let in by a policy here: give a key of this account's namespace."
    return None


async def refused(call: Call[Any], policy: dict[str, Any]) -> str | None:
    """The same for a caller's own account, where credentials decide."""
    return refusal_of(policy, await call.account_id()) if call.guarded else None
