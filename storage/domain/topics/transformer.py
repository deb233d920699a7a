"""Compiled transform of a route, which makes the content of copies."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from storage.domain import limits
from storage.domain.errors import ValidationFailed
from storage.domain.filters.subjects import check_subject
from storage.domain.log.json_body import NOTHING
from storage.domain.log.json_content import JSON
from storage.domain.log.record_batch import Headers
from storage.domain.topics.routed_message import (
    CopyContent,
    RoutedMessage,
    TransformFailed,
    json_of_value,
    text_of,
    text_of_body,
)
from storage.domain.topics.template import (
    Form,
    Pieces,
    Placeholder,
    json_pieces,
    quoted,
    text_pieces,
    whole_name,
)

_MESSAGE = "message"
_FACTS: Mapping[str, Callable[[RoutedMessage], str]] = {
    "subject": lambda message: message.content.subject,
    "key": lambda message: message.key,
    "id": lambda message: str(message.message_id),
    "published_at": lambda message: message.published_at,
    "topic": lambda message: message.route.topic.name,
    "route": lambda message: message.route.route,
}
FACT_NAMES = frozenset({_MESSAGE, *_FACTS})
"""Names that are always there, unless a path has the name."""


class Transformer:
    """Transform compiled once, for any number of messages."""

    def __init__(
        self,
        *,
        select: str | None,
        paths: Mapping[str, str],
        template: Any,
        headers: Mapping[str, str],
        removed_headers: Iterable[str],
        subject: str | None,
        is_strict: bool,
    ) -> None:
        self._paths = paths
        self._is_strict = is_strict
        self._headers = {name: text_pieces(text) for name, text in headers.items()}
        self._replaced_headers = {*removed_headers, *headers}
        self._subject = None if subject is None else text_pieces(subject)
        whole = whole_name(template) if isinstance(template, str) else None
        self._value = f"/body{select}" if select is not None else whole
        if whole == _MESSAGE and whole not in paths:
            self._value = None
        self._is_text = isinstance(template, str)
        self._body: Pieces | None = None
        if whole is None and template is not None:
            self._body = text_pieces(template) if self._is_text else json_pieces(template)

    def apply(self, message: RoutedMessage) -> CopyContent:
        """Return the content of a copy. Raises TransformFailed."""
        values = _Values(message, self._paths, self._is_strict)
        content = message.content
        body, content_type = self._new_body(content, values)
        subject = content.subject
        if self._subject is not None:
            subject = _checked(values.fill(self._subject).decode())
        return CopyContent(body, self._new_headers(content.headers, values), content_type, subject)

    def _new_body(self, content: CopyContent, values: "_Values") -> tuple[bytes, str]:
        if self._body is not None:
            return values.fill(self._body), "" if self._is_text else JSON
        if self._value is None:
            return content.body, content.content_type
        value = values.get(self._value)
        if isinstance(value, str):
            return values.within(value.encode()), ""
        return values.within(json_of_value(value)), JSON

    def _new_headers(self, headers: Headers, values: "_Values") -> Headers:
        if not self._replaced_headers:
            return headers
        others = tuple(one for one in headers if one[0] not in self._replaced_headers)
        return (
            *others,
            *((name, "", values.fill(pieces)) for name, pieces in self._headers.items()),
        )


class _Values:
    """Values of a transform's names in one message, each encoded once.

    All results together have at most TRANSFORM_RESULT_BYTES_MAX.
    """

    def __init__(self, message: RoutedMessage, paths: Mapping[str, str], is_strict: bool) -> None:
        self._message = message
        self._paths = paths
        self._is_strict = is_strict
        self._encoded: dict[Placeholder, bytes] = {}
        self._left_bytes = limits.TRANSFORM_RESULT_BYTES_MAX

    def fill(self, pieces: Pieces) -> bytes:
        """Return the pieces with the values in them. Raises TransformFailed."""
        return b"".join(
            [
                self.within(piece if isinstance(piece, bytes) else self._encode(piece))
                for piece in pieces
            ]
        )

    def within(self, part: bytes) -> bytes:
        """Return a part of a result. Raises TransformFailed where the results become too large."""
        self._left_bytes -= len(part)
        if self._left_bytes < 0:
            most = limits.TRANSFORM_RESULT_BYTES_MAX
            raise TransformFailed(f"The transformed message has more than {most} bytes.")
        return part

    def get(self, name: str) -> Any:
        """Return the value of a name, or at a pointer; NOTHING if there is none.

        Raises TransformFailed for none of a strict transform.
        """
        pointer = self._paths.get(name, name)
        if pointer in _FACTS:
            return _FACTS[pointer](self._message)
        value = self._message.document.at(pointer)
        if value is NOTHING and self._is_strict:
            raise TransformFailed(f"The message has no value at '{pointer}'.")
        return value

    def _encode(self, placeholder: Placeholder) -> bytes:
        encoded = self._encoded.get(placeholder)
        if encoded is None:
            encoded = self._encoded[placeholder] = self._encode_new(placeholder)
        return encoded

    def _encode_new(self, placeholder: Placeholder) -> bytes:
        name, form = placeholder
        if name == _MESSAGE and name not in self._paths:
            return _body_in(form, self._message)
        value = self.get(name)
        if form is Form.VALUE:
            return json_of_value(value)
        text = text_of(value)
        return quoted(text) if form is Form.QUOTED else text.encode()


def _body_in(form: Form, message: RoutedMessage) -> bytes:
    """Return the body: in a JSON value the JSON that it is, with its digits, or a string."""
    body = message.content.body
    if form is Form.VALUE and message.document.field("body") is not NOTHING:
        return body
    text = text_of_body(body)
    if form is Form.TEXT:
        return text.encode()
    return quoted(text) if form is Form.QUOTED else msgspec.json.encode(text)


def _checked(subject: str) -> str:
    try:
        check_subject(subject)
    except ValidationFailed as error:
        raise TransformFailed(f"The new subject is invalid: {error.detail}.") from None
    return subject
