"""Decoding errors as messages for the client, located by a JSON Pointer.

    msgspec     Expected `float` <= 20.0 - at `$.wait_seconds`     /wait_seconds: At most 20
    pydantic    extra_forbidden, ("body", "delay")                 'delay' is not a field of this; did you
                                                                   mean 'delay_seconds'?

The detail of an error contains the first few faults; its `faults` are all of them.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import Any

import msgspec
from msgspec import inspect

from storage.domain.errors import FieldFault, ValidationFailed

_DETAILED_FAULTS_MAX = 3
_NAME_MAX = 80  # of a field name that is compared with others, and reported
_POINTER_MAX = 160

_MESSAGE_PARTS = re.compile(
    r"^(?P<what>.*?)(?: - at `(?P<key>key in )?(?P<path>\$[^`]*)`)?$", re.DOTALL
)
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`")
_MISSING = re.compile(r"Object missing required field `(.*)`")
_CHOICE = re.compile(r"Invalid enum value (.*)")
_BOUND = re.compile(r"Expected `(?:int|float)` (<=|>=|<|>) (\S+)")
_LENGTH = re.compile(r"Expected `(\w+)` of length (<=|>=) (\d+)")
_KIND = re.compile(r"Expected `([^`]*)`, got `([^`]*)`")

_SIDES = {"<=": "At most", ">=": "At least", "<": "Less than", ">": "More than"}
_UNITS = {"str": "characters", "bytes": "bytes", "array": "items", "object": "fields"}
_KINDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "bytes": "bytes",
}
_FOREIGN_NAMES = {
    "attributes": ("headers", "tags"),
    "content": ("body", "data"),
    "data": ("body", "data"),
    "deduplicationid": ("dedup_id",),
    "delay": ("delay_seconds",),
    "explicithashkey": ("hash_key",),
    "groupid": ("group",),
    "limit": ("messages_max", "records_max"),
    "maxmessages": ("messages_max",),
    "maxnumberofmessages": ("messages_max",),
    "maxrecords": ("records_max",),
    "messageattributes": ("headers",),
    "messagebody": ("body",),
    "messagededuplicationid": ("dedup_id",),
    "messagegroupid": ("group",),
    "partitionkey": ("key",),
    "payload": ("body", "data"),
    "value": ("data", "body"),
    "visibilitytimeout": ("visibility_timeout_seconds",),
    "waittimeseconds": ("wait_seconds",),
}
"""Names that AWS and others use for a field, in lower case without underscores, and those that it has here."""
_NO_OBJECT = frozenset({"model_type", "model_attributes_type", "dict_type"})
_CODES = {"extra_forbidden": "unknown_field", "missing": "required"}


def from_msgspec(error: msgspec.ValidationError, kind: Any = None) -> ValidationFailed:
    """Convert a msgspec error. `kind`: the expected type, to state what would be right."""
    match = _MESSAGE_PARTS.match(str(error))
    assert match
    what = match["what"]
    steps = [name or index for name, index in _STEP.findall(match["path"] or "$")]
    pointer = pointer_to(step for step in steps if step != "...")
    if named := _UNKNOWN.fullmatch(what):
        fault = _unknown(pointer + pointer_to([named[1]]), named[1], _fields(types_at(kind, steps)))
    elif named := _MISSING.fullmatch(what):
        missing = pointer + pointer_to([named[1]])
        fault = FieldFault(missing, f"'{named[1]}' is required", "required")
    elif named := _CHOICE.fullmatch(what):
        choices = ", ".join(_choices(types_at(kind, steps))) or "its values"
        fault = FieldFault(pointer, f"{named[1]} is not one of {choices}", "invalid")
    else:
        fault = FieldFault(pointer, _humanise(what), "invalid")
    return _refusal([fault])


def from_pydantic(errors: Iterable[Any], fields: Collection[str] = ()) -> ValidationFailed:
    """Convert FastAPI's list of errors. `fields`: the fields that the body may have."""
    faults: list[FieldFault] = []
    for error in errors:
        pointer, name = pointer_to(error["loc"][1:]), str(error["loc"][-1])  # the first: "body"
        code = _CODES.get(error["type"], "invalid")
        if code == "unknown_field":
            has_suggestion = len(error["loc"]) == 2 and len(faults) < _DETAILED_FAULTS_MAX
            faults.append(_unknown(pointer, name, fields if has_suggestion else ()))
        elif code == "required":
            faults.append(FieldFault(pointer, f"'{name}' is required", code))
        else:
            detail = "Expected an object" if error["type"] in _NO_OBJECT else error["msg"]
            faults.append(FieldFault(pointer, detail, code))
    return _refusal(faults)


def _refusal(faults: Sequence[FieldFault]) -> ValidationFailed:
    """Return an error with all faults, and the first few in its sentence."""
    sentences = [_message(fault) for fault in faults[:_DETAILED_FAULTS_MAX]]
    if len(faults) > len(sentences):
        sentences.append(f"and {len(faults) - len(sentences)} more")
    return ValidationFailed("; ".join(sentences), *faults)


def _message(fault: FieldFault) -> str:
    """Return the detail prefixed by its pointer, unless the detail already names it."""
    pointer = fault.pointer[:_POINTER_MAX]
    if not pointer or f"'{pointer.removeprefix('/')}'" in fault.detail:
        return fault.detail
    return f"{pointer}: {fault.detail}"


def unknown_field(name: str, fields: Collection[str]) -> FieldFault:
    """Return the fault of an unknown field or parameter, with the nearest known one."""
    return _unknown(pointer_to([name]), name, fields)


def _unknown(pointer: str, name: str, fields: Collection[str]) -> FieldFault:
    meant = nearest(name, fields)
    return FieldFault(pointer, f"Unknown field '{name[:_NAME_MAX]}'{meant}", "unknown_field")


def nearest(name: str, fields: Collection[str]) -> str:
    """Suggest the field that a name stands for elsewhere, or resembles; empty if none."""
    if len(name) > _NAME_MAX:
        return ""
    foreign = _FOREIGN_NAMES.get(name.replace("_", "").lower(), ())
    near = [field for field in foreign if field in fields]
    near += get_close_matches(name.lower(), fields, n=1)
    return f"; did you mean '{near[0]}'?" if near else ""


def pointer_to(steps: Iterable[str | int]) -> str:
    """Return a JSON Pointer: `("tags", "a/b")` is `/tags/a~1b` (RFC 6901, section 3)."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def _humanise(what: str) -> str:
    """Return the text without the names of Python's types."""
    if match := _BOUND.fullmatch(what):
        return f"{_SIDES[match[1]]} {_number(float(match[2]))}"
    if match := _LENGTH.fullmatch(what):
        return f"{_SIDES[match[2]]} {match[3]} {_UNITS.get(match[1], 'items')}"
    if match := _KIND.fullmatch(what):
        return f"Expected {_type_names(match[1])}, got {_type_names(match[2])}"
    return what


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else f"{value:.15g}"


def _type_names(names: str) -> str:
    return " or ".join(_KINDS.get(name, name) for name in names.split(" | "))


# Suggestions


def types_at(kind: Any, steps: Sequence[str]) -> list[inspect.Type]:
    """Return the types allowed at the end of a path; none without a kind."""
    types = [] if kind is None else _alternatives(inspect.type_info(kind))
    for step in steps:
        types = [one for above in types for one in _alternatives(_below(above, step))]
    return types


def _alternatives(kind: inspect.Type | None) -> list[inspect.Type]:
    if isinstance(kind, inspect.Metadata):
        return _alternatives(kind.type)
    if isinstance(kind, inspect.UnionType):
        return [one for some in kind.types for one in _alternatives(some)]
    return [] if kind is None else [kind]


def _below(kind: inspect.Type, step: str) -> inspect.Type | None:
    if isinstance(kind, inspect.StructType):
        return next((field.type for field in kind.fields if field.encode_name == step), None)
    if isinstance(kind, inspect.ListType | inspect.VarTupleType):
        return kind.item_type
    return kind.value_type if isinstance(kind, inspect.DictType) else None


def _fields(kinds: Iterable[inspect.Type]) -> list[str]:
    return [
        one.encode_name
        for kind in kinds
        if isinstance(kind, inspect.StructType)
        for one in kind.fields
    ]


def _choices(kinds: Iterable[inspect.Type]) -> list[str]:
    choices: list[str] = []
    for kind in kinds:
        if isinstance(kind, inspect.EnumType):
            choices += [str(one.value) for one in kind.cls]
        elif isinstance(kind, inspect.LiteralType):
            choices += map(str, kind.values)
    return choices
