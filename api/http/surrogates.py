"""Halves of surrogate pairs in JSON: escapes that are syntax, but no text."""

import re

_ESCAPE = re.compile(
    rb"\\(?:"
    rb"u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair
    rb"|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})"
    rb"|.)",
    re.DOTALL,
)


HALF_OF_PAIR = "A text contains half of a surrogate pair"


def replace_halves(document: bytes) -> bytes:
    """Return the document with U+FFFF, which XML cannot represent, for each half of a pair."""
    return _ESCAPE.sub(lambda match: rb"\uffff" if match["half"] else match[0], document)


def has_halves(document: bytes) -> bool:
    """Return whether the document contains half of a surrogate pair."""
    return any(match["half"] for match in _ESCAPE.finditer(document))
