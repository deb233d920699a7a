"""Encoder of the Query protocol: XML built from an answer's struct.

Lists and maps are flattened: an element for each item, and nothing around them.
"""

import base64
import re
from typing import Any
from xml.sax.saxutils import escape

import msgspec

from api.aws.protocol.errors import AwsError
from api.aws.protocol.shapes import ListOf, MapOf, Plan, Scalar, Structure, plan_of

FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot represent."""

# A parser would turn a bare carriage return into a line feed (XML 1.0, 2.11). In hexadecimal, as Amazon writes it: the
# parser of the SDK for JavaScript before 3.447 knows no other form.
_MORE_ENTITIES = {'"': "&quot;", "\r": "&#xD;"}


NO_ACTION_XML = b"<UnknownOperationException/>\n"
"""Answer to a GET of a queue's address without an action, whatever format it accepts."""


def answer_xml(
    operation: str, answer: msgspec.Struct | None, request_id: str, namespace: str
) -> bytes:
    """Encode a complete answer; without content it has no result element."""
    result = ""
    if answer is not None:
        result = _element(f"{operation}Result", _structure(plan_of(type(answer)), answer))
    metadata = _element("ResponseMetadata", _element("RequestId", request_id))
    response = f"{operation}Response"
    element = f'<{response} xmlns="{namespace}">{result}{metadata}</{response}>'
    return f'<?xml version="1.0"?>{element}'.encode()


def error_xml(error: AwsError, request_id: str, namespace: str) -> bytes:
    """Encode a complete error response."""
    fault = _element("Type", "Sender" if error.fault.sender else "Receiver")
    fault += _element("Code", error.fault.code)
    fault += _element("Message", _text(error.query_message)) + "<Detail/>"
    content = _element("Error", fault) + _element("RequestId", request_id)
    return f'<?xml version="1.0"?><ErrorResponse xmlns="{namespace}">{content}</ErrorResponse>'.encode()


def _structure(plan: Structure, value: msgspec.Struct) -> str:
    return "".join(
        [
            _member(member.query_name, member.plan, field_value)
            for member in plan.members
            if (field_value := getattr(value, member.field)) is not None
        ]
    )


def _member(name: str, plan: Plan, value: Any) -> str:
    if isinstance(plan, ListOf):
        return "".join([_member(name, plan.item, item) for item in value])
    if isinstance(plan, MapOf):
        return "".join([_entry(name, plan, key, item) for key, item in value.items()])
    if isinstance(plan, Structure):
        return _element(name, _structure(plan, value))
    return _element(name, _scalar(plan, value))


def _entry(name: str, plan: MapOf, key: str, value: Any) -> str:
    content = _element(plan.key_name, _text(key)) + _member(plan.value_name, plan.value, value)
    return _element(name, content)


def _scalar(plan: Scalar, value: Any) -> str:
    if plan.kind is bytes:
        return base64.b64encode(value).decode()
    if plan.kind is bool:
        return "true" if value else "false"
    return _text(str(value))


def _text(text: str) -> str:
    if not text.isprintable():
        text = FORBIDDEN.sub("\ufffd", text)
    return escape(text, _MORE_ENTITIES)


def _element(name: str, content: str) -> str:
    return f"<{name}>{content}</{name}>" if content else f"<{name}/>"
