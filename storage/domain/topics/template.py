"""Templates of JSON values and texts, with placeholders such as `<name>`.

    "<order>"               in a JSON value, alone in its string: the value itself
    "Order <order> of <at>"  within a longer string, or in a text: the text of the value
    "\\<order>", "\\\\"       the characters `<order>` and `\\`

Names of members are not templates. A template is compiled to pieces, which are joined: nothing is evaluated.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, auto
from typing import Any, NamedTuple

import msgspec

from storage.domain.filters.reasons import pointer_token

PLACEHOLDER_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_TOKEN = re.compile(rf"\\([<\\])|<({PLACEHOLDER_NAME.pattern})>")


class Form(Enum):
    """Form in which a value stands in a result."""

    VALUE = auto()
    """JSON value."""

    QUOTED = auto()
    """Characters within a JSON string."""

    TEXT = auto()


class Placeholder(NamedTuple):
    """Name of a value, and the form that the value takes."""

    name: str
    form: Form


Pieces = Sequence[bytes | Placeholder]
"""Compiled template: bytes as they are, and placeholders between."""


def text_pieces(template: str) -> Pieces:
    """Compile a text."""
    return _joined(_filled(part, Form.TEXT) for part in _parts(template))


def json_pieces(template: Any) -> Pieces:
    """Compile a JSON value."""
    return _joined(_json(template))


def whole_name(template: str) -> str | None:
    """Return the name of the placeholder that is the whole text."""
    match = _TOKEN.fullmatch(template)
    return match[2] if match else None


def names_in(template: str) -> list[str]:
    """Return the names of a text's placeholders."""
    return [match[2] for match in _TOKEN.finditer(template) if match[2] is not None]


def strings_in(template: Any, pointer: str) -> Iterator[tuple[str, str]]:
    """Yield the strings of a JSON value, each with the JSON Pointer to it."""
    if isinstance(template, str):
        yield pointer, template
    elif isinstance(template, dict):
        for name, item in template.items():
            yield from strings_in(item, f"{pointer}/{pointer_token(name)}")
    elif isinstance(template, list):
        for number, item in enumerate(template):
            yield from strings_in(item, f"{pointer}/{number}")


def is_deeper(template: Any, levels: int) -> bool:
    """Return whether a JSON value has objects and arrays nested more than `levels` deep."""
    items: Iterable[Any] = ()
    if isinstance(template, dict):
        items = template.values()
    elif isinstance(template, list):
        items = template
    else:
        return False
    return levels == 0 or any(is_deeper(item, levels - 1) for item in items)


def _parts(text: str) -> Iterator[str | tuple[str]]:
    """Yield the literal parts of a text, and the names between as tuples."""
    end = 0
    for match in _TOKEN.finditer(text):
        yield text[end : match.start()]
        yield match[1] if match[2] is None else (match[2],)
        end = match.end()
    yield text[end:]


def _filled(part: str | tuple[str], form: Form) -> bytes | Placeholder:
    if isinstance(part, tuple):
        return Placeholder(part[0], form)
    return part.encode() if form is Form.TEXT else quoted(part)


def quoted(text: str) -> bytes:
    """Return the characters of a text as they stand within a JSON string."""
    return msgspec.json.encode(text)[1:-1]


def _json(value: Any) -> Iterator[bytes | Placeholder]:
    if isinstance(value, str):
        yield from _string(value)
    elif isinstance(value, dict):
        yield from _object(value)
    elif isinstance(value, list):
        yield from _array(value)
    else:
        yield msgspec.json.encode(value)


def _string(text: str) -> Iterator[bytes | Placeholder]:
    if name := whole_name(text):
        yield Placeholder(name, Form.VALUE)
        return
    yield b'"'
    for part in _parts(text):
        yield _filled(part, Form.QUOTED)
    yield b'"'


def _object(members: dict[str, Any]) -> Iterator[bytes | Placeholder]:
    separator = b"{"
    for name, value in members.items():
        yield separator + msgspec.json.encode(name) + b":"
        yield from _json(value)
        separator = b","
    yield b"}" if members else b"{}"


def _array(items: list[Any]) -> Iterator[bytes | Placeholder]:
    separator = b"["
    for value in items:
        yield separator
        yield from _json(value)
        separator = b","
    yield b"]" if items else b"[]"


def _joined(pieces: Iterable[bytes | Placeholder]) -> Pieces:
    """Join adjacent bytes."""
    joined: list[bytes | Placeholder] = [b""]
    for piece in pieces:
        last = joined[-1]
        if isinstance(piece, bytes) and isinstance(last, bytes):
            joined[-1] = last + piece
        else:
            joined.append(piece)
    return tuple(piece for piece in joined if piece)
