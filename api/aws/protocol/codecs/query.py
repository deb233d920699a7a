"""Decoder of the Query protocol: parameters whose dotted names are a flattened tree.

    Attribute.1.Name=DelaySeconds&Attribute.1.Value=5    {"Attributes": {"DelaySeconds": "5"}}
    AttributeName.1=All&AttributeName.2=Policy           {"AttributeNames": ["All", "Policy"]}

Lists come with or without `.member`, which older clients put before the number, and one of a single text without a
number: AttributeName=All. Maps and lists come under the name of their member as well (Tags.1.Key for Tag.1.Key), as
the SDKs for Java before 1.12.584 and 2.21.19 and API Gateway's templates send them. What the shape does not name is ignored, as Amazon does.
"""

import re
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec

from api.aws.protocol.errors import MALFORMED_QUERY, AwsError, AwsFault
from api.aws.protocol.shapes import ListOf, MapOf, Plan, Scalar, Structure, plan_of

PARAMETERS_MAX = 10_000
DEPTH_MAX = 8  # of a dotted name; the deepest valid one has six parts

INVALID_PARAMETER = AwsFault(
    "com.amazon.coral.service#InvalidParameterValueException", "InvalidParameterValue"
)

In = TypeVar("In", bound=msgspec.Struct)
Tree = dict[str, Any]
"""A parameter's text, or the tree below it."""

_NUMBER = re.compile(r"[0-9]{1,6}")
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")


def parse_parameters(query_string: bytes, body: bytes) -> dict[str, str]:
    """Parse the parameters of a query string and of a form. Raises AwsError.

    The last occurrence of a repeated parameter counts.
    """
    try:
        pairs = [
            pair
            for part in (query_string, body)
            for pair in parse_qsl(
                part.decode(),
                keep_blank_values=True,
                errors="strict",
                max_num_fields=PARAMETERS_MAX,
            )
        ]
    except ValueError:
        raise _malformed() from None
    return dict(pairs)


def read_parameters(parameters: dict[str, str], kind: type[In]) -> In:
    """Decode the parameters as a shape. Raises AwsError."""
    members = _members(plan_of(kind), _tree_of(parameters), "")
    try:
        return msgspec.convert(members, kind)
    except msgspec.ValidationError as error:
        raise AwsError(INVALID_PARAMETER, f"A parameter is invalid: {error}.") from None


def _tree_of(parameters: dict[str, str]) -> Tree:
    root: Tree = {}
    for name, text in parameters.items():
        *above, last = name.split(".", DEPTH_MAX)
        node = root
        for part in above:
            below = node.setdefault(part, {})
            if not isinstance(below, dict):
                raise _malformed()
            node = below
        if isinstance(node.get(last), dict):
            raise _malformed()
        node[last] = text
    return root


def _members(plan: Structure, tree: Tree, path: str) -> dict[str, Any]:
    values = {}
    for member in plan.members:
        name = member.query_name if member.query_name in tree else member.name
        if (node := tree.get(name)) is not None:
            values[member.name] = _value(member.plan, node, f"{path}{name}")
    return values


def _value(plan: Plan, node: str | Tree, path: str) -> Any:
    if isinstance(plan, Scalar):
        return _scalar(plan, node, path)
    if isinstance(node, str):
        if node == "":  # encodes an empty list or map
            return {} if isinstance(plan, MapOf | Structure) else []
        if isinstance(plan, ListOf) and isinstance(plan.item, Scalar):
            return [_scalar(plan.item, node, path)]
        raise _malformed()
    if isinstance(plan, Structure):
        return _members(plan, node, f"{path}.")
    if isinstance(plan, ListOf):
        return [_value(plan.item, item, path) for item in _items(node)]
    return _map(plan, node, path)


def _map(plan: MapOf, node: Tree, path: str) -> dict[str, Any]:
    entries = [node] if plan.key_name in node else _items(node)
    values = {}
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get(plan.key_name), str):
            raise _malformed()
        value = entry.get(plan.value_name, "")
        values[entry[plan.key_name]] = _value(plan.value, value, path)
    return values


def _items(node: Tree) -> list[Any]:
    """Return the numbered members, in the order of their numbers."""
    node = node["member"] if isinstance(node.get("member"), dict) else node
    if not all(_NUMBER.fullmatch(number) for number in node):
        raise _malformed()
    return [node[number] for number in sorted(node, key=int)]


def _scalar(plan: Scalar, node: str | Tree, path: str) -> Any:
    if isinstance(node, dict):
        raise _malformed()
    if plan.kind is int:
        if not _INTEGER.fullmatch(node):
            raise AwsError(
                INVALID_PARAMETER,
                f"Value {node[:80]} for parameter {path} is invalid. Reason: Must be an integer.",
            )
        return int(node)
    if plan.kind is bool:
        return node.lower() == "true"
    return node  # bytes are base64 here as they are in JSON


def _malformed() -> AwsError:
    return AwsError(MALFORMED_QUERY, "The query string contains a syntax error.")
