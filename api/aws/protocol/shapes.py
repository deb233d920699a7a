"""What the members of a shape are called and made of.

A shape is a struct; its fields are named as JSON names them. The Query protocol and its XML have names of
their own for lists and maps, which stand beside the type:

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
    """What a call says. Every member may be missing, or null: what must be there is the operation's rule."""


class Output(msgspec.Struct, rename="pascal", omit_defaults=True):
    """What an answer says; a member that is None is left out."""


def named(query: str, key: str = "", value: str = "") -> msgspec.Meta:
    """The Query name of a list or a map, and what the halves of a map's entries are called there."""
    return msgspec.Meta(extra={"query": query, "key": key, "value": value})


class Scalar(NamedTuple):
    """A member without parts: text, a number, a moment, a truth, or bytes."""

    kind: type


class ListOf(NamedTuple):
    """A list."""

    item: "Plan"


class MapOf(NamedTuple):
    """A map from text."""

    key_name: str
    value_name: str
    value: "Plan"


class Member(NamedTuple):
    """A field of a structure: in Python, in JSON and in the Query protocol."""

    field: str
    name: str
    query_name: str
    plan: "Plan"


class Structure(NamedTuple):
    """Named members."""

    members: tuple[Member, ...]


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
    """The members of a shape."""
    described = inspect.type_info(kind)
    assert isinstance(described, inspect.StructType)
    return _structure(described)


def _structure(described: inspect.StructType) -> Structure:
    return Structure(tuple([_member(field) for field in described.fields]))


def _member(field: inspect.Field) -> Member:
    described, words = field.type, {"query": field.encode_name, "key": "", "value": ""}
    if isinstance(described, inspect.Metadata):
        words |= described.extra or {}
        described = described.type
    plan = _plan(described, words)
    return Member(field.name, field.encode_name, words["query"], plan)


def _plan(described: inspect.Type, words: dict[str, str]) -> Plan:
    if isinstance(described, inspect.Metadata):  # of an item: bounds, which are no matter of names
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
