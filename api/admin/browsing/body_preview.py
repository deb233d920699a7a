"""Body previews: indented JSON, text or a hex dump of untrusted bytes.

A body is data on the page, never markup: templates escape it. Characters that would change how the rest of a
line reads are shown as escapes.
"""

import json
import re
from enum import StrEnum
from typing import Any, NamedTuple

from storage.domain import limits

PREVIEW_BYTES_MAX = 64 * limits.KIB
"""Maximum size of a body on a page; the whole body can be downloaded."""

_HEX_BYTES_MAX = 8 * limits.KIB  # 16 bytes a line, four characters each
_HEX_WIDTH = 16
_SUMMARY_CHARACTERS = 120
_MISLEADING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
)
"""Control characters, invisible ones, and those that change the direction of text."""


class BodyForm(StrEnum):
    """One way to show bytes."""

    JSON = "json"
    TEXT = "text"
    HEX = "hex"


class BodyPreview(NamedTuple):
    """Body on a page. `forms`: those it can be shown in. `cut`: the body is longer than shown."""

    form: BodyForm
    forms: tuple[BodyForm, ...]
    text: str
    size_bytes: int
    cut: bool


def preview(body: bytes, preferred: str = "") -> BodyPreview:
    """Return a body in the preferred form, or else in the most informative one."""
    pretty, plain = _pretty(body), _text(body)
    text_by_form = {
        BodyForm.JSON: pretty,
        BodyForm.TEXT: plain,
        BodyForm.HEX: _hex(body[:_HEX_BYTES_MAX]),
    }
    forms = tuple(form for form, text in text_by_form.items() if text is not None)
    form = next((one for one in forms if one == preferred), forms[0])
    text = text_by_form[form] or ""
    most = _HEX_BYTES_MAX if form is BodyForm.HEX else PREVIEW_BYTES_MAX
    return BodyPreview(
        form, forms, text[:PREVIEW_BYTES_MAX], len(body), max(len(body), len(text)) > most
    )


def summary(body: bytes) -> str:
    """Return the beginning of a body on one line."""
    text = _text(body[: 4 * _SUMMARY_CHARACTERS])
    if text is None:
        return body[:24].hex(" ") + (" …" if len(body) > 24 else "")
    line = " ".join(text.split())
    return line[:_SUMMARY_CHARACTERS] + ("…" if len(line) > _SUMMARY_CHARACTERS else "")


def escape_misleading(text: str) -> str:
    """Text whose invisible characters can be seen."""
    return _MISLEADING.sub(lambda match: f"\u27e8U+{ord(match[0]):04X}\u27e9", text)


def _pretty(body: bytes) -> str | None:
    """Indented, when it is a JSON object or array of a size that is worth it."""
    if len(body) > PREVIEW_BYTES_MAX or not body.lstrip().startswith((b"{", b"[")):
        return None
    try:
        value: Any = json.loads(body)
        return escape_misleading(json.dumps(value, indent=2, ensure_ascii=False))
    except (ValueError, RecursionError):
        return None


def _text(body: bytes) -> str | None:
    """Decode as UTF-8 if it is valid but for a character that was cut in half."""
    part = body[:PREVIEW_BYTES_MAX]
    try:
        return escape_misleading(part.decode())
    except UnicodeDecodeError as error:
        if len(part) - error.start >= 4 or error.reason != "unexpected end of data":
            return None
        return escape_misleading(part[: error.start].decode())


def _hex(body: bytes) -> str:
    lines = []
    for start in range(0, len(body), _HEX_WIDTH):
        row = body[start : start + _HEX_WIDTH]
        seen = "".join(chr(byte) if 32 <= byte < 127 else "·" for byte in row)
        lines.append(f"{start:06x}  {row.hex(' '):<{3 * _HEX_WIDTH}} {seen}")
    return "\n".join(lines)
