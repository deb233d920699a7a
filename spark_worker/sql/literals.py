"""Literals that Spark replaces by the current time.

`date 'today'` is one, and so is a text that is cast to a time, perhaps by a comparison with one.
"""

import re
from collections.abc import Callable

from spark_worker.sql.refusal import NodeRefused
from spark_worker.sql.tree import Node

_CURRENT = re.compile(
    r"\s*(?:now|today|tomorrow|yesterday)(?:\s.*|(?:utc|gmt|ut|z|[+-]|[a-z]+/).*)?",
    re.IGNORECASE | re.DOTALL,
)
"""Texts that a cast reads as the current time, with or without a time zone."""
_WRITTEN = re.compile(r"""\w+\s*(?:'\s*[+-]?\d[^'\\]*'|"\s*[+-]?\d[^"\\]*")""")
"""A typed literal that begins with a digit and has no escapes."""
_INSTEAD = "Write the date or time itself: Spark reads this as the current time."


def check_literal(node: Node, text_of: Callable[[Node], str]) -> None:
    """Refuse a literal that depends on when it is read.

    The parser has already replaced a typed literal, so its text is checked. Raises NodeRefused.
    """
    value, data_type = node.fields["value"], str(node.fields["dataType"])
    if data_type.startswith("string") and _CURRENT.fullmatch(str(value)):
        raise NodeRefused(f"the text {value!r}", _INSTEAD)
    if data_type.startswith(("date", "time")) and not _WRITTEN.fullmatch(text_of(node)):
        raise NodeRefused(f"a {data_type} that is not written out", _INSTEAD)
