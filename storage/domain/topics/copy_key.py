"""Key of a route's copies: the message group in a FIFO queue, the key in a stream.

null, "key"          the message's own
"subject"            its subject
"/body/customer"     the text of the value at a JSON Pointer of its document; none if there is no value
{"constant": "x"}    one for all
"""

from typing import Any

import msgspec

from storage.domain import limits
from storage.domain.errors import FieldFault, ValidationFailed
from storage.domain.filters.documents import Document
from storage.domain.topics.routed_message import text_of
from storage.domain.topics.transform_check import document_pointer_faults


class ConstantKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Key that all copies of a route have."""

    constant: str


CopyKey = str | ConstantKey | None
"""Source of the key of a route's copies."""


def parse_key(value: Any) -> CopyKey:
    """Return the source of keys in its JSON form. Raises ValidationFailed."""
    try:
        key: CopyKey = msgspec.convert(value, CopyKey)
    except msgspec.ValidationError:
        detail = 'A key is a text, {"constant": "…"} or null'
        raise ValidationFailed.at("/key", detail) from None
    return key


def key_of(source: CopyKey, document: Document) -> str:
    """Return the key of a message's copy; empty if it has none. Raises TransformFailed."""
    if isinstance(source, ConstantKey):
        return source.constant
    if source is None or source == "key":
        return document.key
    if source == "subject":
        return document.subject
    return text_of(document.at(source))


def key_faults(source: CopyKey) -> list[FieldFault]:
    """Return the faults of a source of keys."""
    if isinstance(source, ConstantKey):
        if 0 < len(source.constant) <= limits.GROUP_CHARACTERS_MAX:
            return []
        detail = f"A key must be 1 to {limits.GROUP_CHARACTERS_MAX} characters"
        return [FieldFault("/key/constant", detail, "out_of_range")]
    if source in (None, "key", "subject"):
        return []
    return document_pointer_faults("/key", source or "")
