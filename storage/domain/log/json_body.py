"""JSON bodies of records: decoding, locations by JSON Pointer (RFC 6901), equality."""

import re
from typing import Any

import msgspec

JSON_POINTER = re.compile(r"(?:/(?:[^~/]|~[01])*)*")


class AbsentValue:
    """Marker for a location that does not exist in a body."""


NOTHING = AbsentValue()


def json_of(body: bytes) -> Any:
    """Return the value of a JSON body; NOTHING if it is not JSON."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return NOTHING


def at_pointer(value: Any, pointer: str) -> Any:
    """Return the value that a JSON Pointer refers to; NOTHING if there is none."""
    if value is NOTHING or not pointer:
        return value
    for token in pointer[1:].split("/"):
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(name, NOTHING)
        elif isinstance(value, list) and _is_index(name) and int(name) < len(value):
            value = value[int(name)]
        else:
            return NOTHING
    return value


def _is_index(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10 and (text == "0" or text[0] != "0")


def equals_as_json(left: Any, right: Any) -> bool:
    """Compare as JSON: Python considers True equal to 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            equals_as_json(left[name], right[name]) for name in left
        )
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equals_as_json, left, right))
    return bool(left == right)
