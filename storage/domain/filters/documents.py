"""Message as the document that its conditions read.

    {"subject": "order.created.eu", "key": "c7", "headers": {"tenant": "t7", "retries": "2"},
     "body": {…}, "content_type": "application/json", "size": 812, "meta": {"topic": "orders", …}}

An empty key or content type is absent. A header of the type `Number` is a number, `String.Array` an array,
`Binary` is absent, and every other one is a string; a `Number` that is none, or an array that is no JSON
array, is absent too. A body that is not JSON has no fields.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from math import isfinite
from typing import Any

from storage.domain.filters.leaves import Leaves, PathTree, leaves_at, splits
from storage.domain.log.json_body import NOTHING, at_pointer, json_of
from storage.domain.log.record_batch import (
    CONTENT_TYPE,
    RESERVED,
    Headers,
    Record,
    headers_size_bytes,
    subject_of,
)
from storage.domain.names import StreamName

_NUMBER = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*", re.ASCII)


class Document:
    """Message whose values are decoded when a condition reads them, and once."""

    __slots__ = (
        "_body",
        "_headers",
        "_leaves",
        "body",
        "headers",
        "key",
        "meta",
        "subject",
    )

    def __init__(
        self, subject: str, key: str, headers: Headers, body: bytes, meta: Mapping[str, object]
    ) -> None:
        self.subject = subject
        self.key = key
        self.headers = headers
        self.body = body
        self.meta = meta
        self._headers: dict[str, Any] | None = None
        self._body: Any = None
        self._leaves: dict[str, Leaves] | None = None

    @property
    def is_body_decoded(self) -> bool:
        """Return whether a condition has read the body."""
        return self._body is not None

    def field(self, name: str) -> Any:
        """Return the value of a name at the top; NOTHING if it is absent."""
        reader = _FIELDS.get(name)
        return reader(self) if reader is not None else NOTHING

    def value(self, path: tuple[str, ...]) -> Any:
        """Return the JSON value at a path of objects, which may be an array or object, or NOTHING."""
        top, below = _top_and_rest(".".join(path))
        value = self.field(top)
        if below is None or value is NOTHING:
            return value
        return _value_below(value, below)

    def at(self, pointer: str) -> Any:
        """Return the value at a JSON Pointer, or NOTHING."""
        top, slash, below = pointer[1:].partition("/")
        return at_pointer(self.field(top), slash + below)

    def leaves(self, path: str) -> Leaves:
        """Return the scalar values at a path, with the array elements that they belong to."""
        cache = self._leaves
        if cache is None:
            cache = self._leaves = {}
        leaves = cache.get(path)
        if leaves is None:
            leaves = cache[path] = self._leaves_at(path)
        return leaves

    def extract(self, tree: PathTree) -> dict[str, Leaves]:
        """Return the leaves of all paths of a tree that have any."""
        leaves: dict[str, Leaves] = {}
        for name, node in tree.tops.items():
            value = self.field(name)
            if value is not NOTHING:
                node.collect(value, leaves)
        return leaves

    def _leaves_at(self, path: str) -> Leaves:
        top, below = _top_and_rest(path)
        value = self.field(top)
        if value is NOTHING:
            return []
        return _own_leaves(value) if below is None else leaves_at(value, below)

    def _header_values(self) -> dict[str, Any]:
        values = self._headers
        if values is None:
            values = self._headers = header_values(self.headers)
        return values

    def _body_value(self) -> Any:
        value = self._body
        if value is None:
            value = self._body = (json_of(self.body),)
        return value[0]

    def _size_bytes(self) -> int:
        visible = tuple(header for header in self.headers if not header[0].startswith(RESERVED))
        return len(self.body) + headers_size_bytes(visible)

    def _content_type(self) -> Any:
        for name, _, value in self.headers:
            if name == CONTENT_TYPE and value:
                return value.decode(errors="replace")
        return NOTHING


def document_of(record: Record, meta: Mapping[str, object]) -> Document:
    """Return what matches see of a record of any stream; only a published one has a subject."""
    headers = record.headers
    subject = subject_of(headers) if headers else ""
    return Document(subject, record.key, headers, record.data, meta)


def meta_of(stream: StreamName) -> dict[str, object]:
    """Return what matches see of the place of a stream's records: their topic, if it is one's."""
    return {"topic": stream.topic.name} if stream.is_of_topic else {}


_FIELDS: dict[str, Any] = {
    "subject": lambda document: document.subject,
    "key": lambda document: document.key or NOTHING,
    "headers": Document._header_values,
    "body": Document._body_value,
    "content_type": Document._content_type,
    "size": Document._size_bytes,
    "meta": lambda document: document.meta,
}
FIELD_NAMES = frozenset(_FIELDS)
"""Names at the top of a document."""


@lru_cache(maxsize=10_000)
def _top_and_rest(path: str) -> tuple[str, str | None]:
    top, dot, below = path.partition(".")
    return top, below if dot else None


def _own_leaves(value: Any) -> Leaves:
    """Return the leaves of a value itself: the value, or an array's elements."""
    tree = PathTree()
    tree.add("top")
    leaves: dict[str, Leaves] = {}
    tree.tops["top"].collect(value, leaves)
    return leaves.get("top", [])


def _value_below(value: Any, path: str) -> Any:
    keys = splits(path)
    end = len(keys) - 1
    stack = [(value, 0)]
    while stack:
        node, start = stack.pop()
        if start == end:
            return node
        if isinstance(node, dict):
            stack += [(node[key], after) for key, after in keys[start] if key in node]
    return NOTHING


def header_values(headers: Headers) -> dict[str, Any]:
    """Return the values of the visible headers by name, each as its type says."""
    values = {}
    for name, type_, encoded in headers:
        if name[:1] != RESERVED:
            value = encoded.decode(errors="replace") if not type_ else _typed_value(type_, encoded)
            if value is not NOTHING:
                values[name] = value
            else:
                values.pop(name, None)
    return values


def _typed_value(type_: str, encoded: bytes) -> Any:
    if type_ == "String.Array":
        array = json_of(encoded)
        return array if isinstance(array, list) else NOTHING
    if type_ == "Number" or type_.startswith("Number."):
        return _number(encoded.decode(errors="replace"))
    return NOTHING if type_.startswith("Binary") else encoded.decode(errors="replace")


def _number(text: str) -> Any:
    """Return the number of a text as SQS accepts it; NOTHING if it is none, or not finite."""
    if not _NUMBER.fullmatch(text) or not isfinite(number := float(text)):
        return NOTHING
    try:
        return int(text)
    except ValueError:
        return number
