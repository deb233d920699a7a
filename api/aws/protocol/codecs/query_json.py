"""Encoder of the Query protocol's JSON, which a client gets whose `Accept` names it.

    {"ListQueuesResponse": {"ListQueuesResult": {…}, "ResponseMetadata": {"RequestId": "…"}}}

Maps are lists of entries, as in XML, and missing members are null.
"""

from typing import Any

import msgspec

from api.aws.protocol.errors import AwsError
from api.aws.protocol.shapes import ListOf, MapOf, Plan, Structure, plan_of

_json = msgspec.json.Encoder()


def answer_json(operation: str, answer: msgspec.Struct | None, request_id: str) -> bytes:
    """Encode a complete answer; without content it has no result."""
    members: dict[str, Any] = {"ResponseMetadata": {"RequestId": request_id}}
    if answer is not None:
        members[f"{operation}Result"] = _structure(plan_of(type(answer)), answer)
    return _json.encode({f"{operation}Response": members})


def error_json(error: AwsError, request_id: str) -> bytes:
    """Encode a complete error response."""
    fault = {
        "Code": error.fault.code,
        "Message": error.query_message,
        "Type": "Sender" if error.fault.sender else "Receiver",
    }
    return _json.encode({"Error": fault, "RequestId": request_id})


def _structure(plan: Structure, value: msgspec.Struct) -> dict[str, Any]:
    return {
        member.query_json_name: _value(member.plan, getattr(value, member.field))
        for member in plan.members
    }


def _value(plan: Plan, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(plan, ListOf):
        return [_value(plan.item, item) for item in value]
    if isinstance(plan, MapOf):
        return [
            {plan.key_name: key, plan.value_name: _value(plan.value, item)}
            for key, item in value.items()
        ]
    return _structure(plan, value) if isinstance(plan, Structure) else value
