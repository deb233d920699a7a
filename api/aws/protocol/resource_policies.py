"""Resource policies, as far as they have an effect here.

Permissions belong to credentials, which belong to one account: so a policy may allow its own account what that account's
keys allow anyway, and maps to that. Whatever would admit others or exclude some is refused, since it would not be
enforced. In open mode, where everyone may do everything, a policy is stored as text and has no effect.
"""

from typing import Any

from api.aws.protocol.service import AwsCall

_MAPPED = frozenset({"Sid", "Effect", "Principal", "Action", "Resource"})


def refusal_of(policy: dict[str, Any], account: str) -> str | None:
    """Return the reason why a policy cannot be honoured, in a sentence; None when it can."""
    for statement in policy["Statement"]:
        if not isinstance(statement, dict):
            return "A statement must be an object."
        unmapped = sorted(statement.keys() - _MAPPED)
        if unmapped:
            return f"Statements with {unmapped[0]} are not supported."
        if statement.get("Effect") != "Allow":
            return "Deny statements are not supported: use keys with fewer permissions."
        principal = statement.get("Principal")
        named = principal.get("AWS") if isinstance(principal, dict) else principal
        principals = named if isinstance(named, list) else [named]
        if any(word not in (account, f"arn:aws:iam::{account}:root") for word in principals):
            return (
                "Access for other accounts is not supported: use a key of this account's namespace."
            )
    return None


async def refused(call: AwsCall[Any], policy: dict[str, Any]) -> str | None:
    """Return the refusal of a policy in the caller's account; None in open mode."""
    return refusal_of(policy, await call.account_id()) if call.guarded else None
