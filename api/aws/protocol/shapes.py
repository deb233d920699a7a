"""Names and types of the members of a shape.

A shape is a struct; its fields are named as in JSON. The Query protocol and its XML have their own names for lists and
maps, which are declared next to the type:

    message_attributes: Annotated[dict[str, Value] | None, named("MessageAttribute", "Name", "Value")]

    JSON    "MessageAttributes": {"n": {…}}
    Query   MessageAttribute.1.Name=n&MessageAttribute.1.Value.…
    XML     <MessageAttribute><Name>n</Name><Value>…</Value></MessageAttribute>
"""

from functools import lru_cache
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec import inspect


class Input(msgspec.Struct, rename="pascal"):
    """Input of an operation.

    Every member may be missing or null: the operation decides which are required.
    """


class OperationOutput(msgspec.Struct, rename="pascal", omit_defaults=True):
    """Output of an operation; members that are None are left out."""


def named(query: str, key: str = "", value: str = "", *, query_json: str = "") -> msgspec.Meta:
    """Return the Query name of a list or map, and those of a map's keys and values.

    `query_json`: its name in the JSON of the Query protocol, if that is not the member's.
    """
    names = {"query": query, "key": key, "value": value}
    return msgspec.Meta(extra=names | ({"query_json": query_json} if query_json else {}))


class Scalar(NamedTuple):
    """A scalar member: text, a number, a time, a boolean, or bytes."""

    kind: type


class ListOf(NamedTuple):
    """A list."""

    item: "Plan"


class MapOf(NamedTuple):
    """A map from text."""

    key_name: str
    value_name: str
    value: "Plan"


class ShapeMember(NamedTuple):
    """A field of a structure: in Python, in JSON and in the Query protocol's XML and JSON."""

    field: str
    name: str
    query_name: str
    query_json_name: str
    plan: "Plan"


class Structure(NamedTuple):
    """Named members."""

    members: tuple[ShapeMember, ...]


Plan: TypeAlias = Scalar | ListOf | MapOf | Structure

_SCALARS: dict[type[inspect.Type], type] = {
    inspect.StrType: str,
    inspect.IntType: int,
    inspect.FloatType: float,
    inspect.BoolType: bool,
    inspect.BytesType: bytes,
}


@lru_cache(maxsize=512)
def plan_of(kind: type[msgspec.Struct]) -> Structure:
    """Return the members of a shape."""
    described = inspect.type_info(kind)
    assert isinstance(described, inspect.StructType)
    return _structure(described)


def _structure(described: inspect.StructType) -> Structure:
    return Structure(tuple([_member(field) for field in described.fields]))


def _member(field: inspect.Field) -> ShapeMember:
    name, described = field.encode_name, field.type
    words = {"query": name, "key": "", "value": "", "query_json": name}
    if isinstance(described, inspect.Metadata):
        words |= described.extra or {}
        described = described.type
    plan = _plan(described, words)
    return ShapeMember(field.name, name, words["query"], words["query_json"], plan)


def _plan(described: inspect.Type, words: dict[str, str]) -> Plan:
    if isinstance(described, inspect.Metadata):  # bounds of an item, irrelevant to names
        described = described.type
    if isinstance(described, inspect.UnionType):  # with None: the member may be missing
        [described] = [one for one in described.types if not isinstance(one, inspect.NoneType)]
    if isinstance(described, inspect.StructType):
        return _structure(described)
    if isinstance(described, inspect.ListType):
        return ListOf(_plan(described.item_type, words))
    if isinstance(described, inspect.DictType):
        return MapOf(words["key"], words["value"], _plan(described.value_type, words))
    return Scalar(_SCALARS[type(described)])
