"""The form of the OpenAPI document that client generators read without a complaint.

as it is written                                 as generators want it
anyOf: [X, null], X plain                        type: [X, null]
anyOf: [integer, number]                         type: number
anyOf: [integer, number, null]                   type: [number, null]
type: integer                                    format: int64, since offsets and bytes need it
$ref, default: {…}                               no default: some cannot write an object, and its fields have theirs
required: []                                     nothing
required: [X], X deprecated                      nothing: the next release no longer has X
enum: […] of schema X                             x-enum-varnames: […], which begin with X: Go has one scope for all constants
"""

import re
from collections.abc import Mapping
from typing import Any

NULL = {"type": "null"}
_NUMBERS = [{"type": "integer", "format": "int64"}, {"type": "number"}]


def normalise(node: Any) -> Any:
    """Return a node in that form."""
    if isinstance(node, list):
        return [normalise(item) for item in node]
    if not isinstance(node, dict):
        return node
    normalised = {
        name: normalise(value) for name, value in node.items() if not _is_noise(name, value)
    }
    if "$ref" in normalised and isinstance(normalised.get("default"), dict):
        del normalised["default"]
    return _with_width(_without_choice(without_deprecated_requirements(normalised)))


def name_enum_values(schemas: Mapping[str, dict[str, Any]]) -> None:
    """Add unique names of constants to the enumerations of schemas and of their members."""
    for name, schema in schemas.items():
        _name_values(name, schema)
        for member, of in schema.get("properties", {}).items():
            _name_values(f"{name}_{member}", of)


def _name_values(name: str, schema: dict[str, Any]) -> None:
    if "enum" in schema:
        prefix = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
        schema["x-enum-varnames"] = [
            re.sub(r"\W", "_", f"{prefix}_{value}").upper() for value in schema["enum"]
        ]


def without_deprecated_requirements(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object, with deprecated members optional."""
    members, required = schema.get("properties"), schema.get("required")
    if not isinstance(members, dict) or not isinstance(required, list):
        return schema
    remaining = [name for name in required if not members[name].get("deprecated")]
    return {**schema, "required": remaining}


def _is_noise(name: str, value: Any) -> bool:
    return name == "required" and value == []


def _without_choice(schema: dict[str, Any]) -> dict[str, Any]:
    choices = schema.get("anyOf")
    if not isinstance(choices, list):
        return schema
    rest = {name: value for name, value in schema.items() if name != "anyOf"}
    plain = [choice for choice in choices if choice != NULL]
    [merged, *others] = [{"type": "number"}] if plain == _NUMBERS else plain
    if others or not isinstance(merged.get("type"), str):
        return schema
    kind = merged["type"] if NULL not in choices else [merged["type"], "null"]
    return {**merged, **rest, "type": kind}


def _with_width(schema: dict[str, Any]) -> dict[str, Any]:
    kind = schema.get("type")
    if kind == "integer" or (isinstance(kind, list) and "integer" in kind):
        return {"format": "int64", **schema}
    return schema
