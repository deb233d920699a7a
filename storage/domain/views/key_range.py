"""Range of encoded keys that a read of rows selects."""

import msgspec

from storage.domain import limits
from storage.domain.errors import ValidationFailed
from storage.domain.views.key_text import parse_key_value, time_text
from storage.domain.views.plan import ViewPlan
from storage.domain.views.row_key import (
    WINDOW,
    encode_key,
    encode_part,
    encoded_width,
    end_of_prefix,
    ordered_bytes,
    text_prefix,
)
from storage.domain.views.rows import RowQuery

_AFTER = b"\x00"  # appended to a key: the next possible one


class KeyRange(msgspec.Struct, frozen=True, kw_only=True):
    """Rows with `low` <= key < `high`, in the order of keys; `high` None has no end.

    `ends_after_ms` and `ends_before_ms`: bounds of the ends of their windows, which are not included; `starts_before`: encoded bound of
    the starts of sessions, which are the last part of their keys. `newest_bytes`: width of a key's window, of which only the newest one
    is read; 0 for all.
    """

    low: bytes = b""
    high: bytes | None = None
    ends_after_ms: int | None = None
    ends_before_ms: int | None = None
    starts_before: bytes | None = None
    newest_bytes: int = 0
    descending: bool = False


def key_range(query: RowQuery, plan: ViewPlan) -> KeyRange:
    """Return the range of a read.

    Raises ValidationFailed for what the view's key does not have.
    """
    low, high = _selected(query, plan)
    newest_bytes = _window_bytes(plan) if query.latest else 0
    if query.after_key is not None:
        first, last = _beside(query.after_key, newest_bytes)
        if query.descending:
            high = first if high is None else min(high, first)
        else:
            low = max(low, last)
    window_to_ms = query.window_to_ms
    if (query.window_from_ms, window_to_ms) != (None, None) and not plan.has_windows:
        pointer = "/window_to" if query.window_from_ms is None else "/window_from"
        raise ValidationFailed.at(pointer, "The view has no windows")
    ends_before_ms = starts_before = None
    if window_to_ms is not None and plan.window_ms is not None:
        ends_before_ms = window_to_ms + plan.window_ms[0]
    elif window_to_ms is not None:
        starts_before = encode_part({"start": time_text(window_to_ms)}, WINDOW)
    return KeyRange(
        low=low,
        high=high,
        ends_after_ms=query.window_from_ms,
        ends_before_ms=ends_before_ms,
        starts_before=starts_before,
        newest_bytes=newest_bytes,
        descending=query.descending,
    )


def _selected(query: RowQuery, plan: ViewPlan) -> tuple[bytes, bytes | None]:
    """Return the bounds of the keys with the values and the prefix of a query."""
    columns = plan.key
    if len(query.key) > len(columns):
        detail = f"The key has {len(columns)} columns"
        raise ValidationFailed.at(f"/key/{len(columns)}", detail)
    values = [
        parse_key_value(text, columns[nth].type, f"/key/{nth}")
        for nth, text in enumerate(query.key)
    ]
    if query.prefix and len(values) == len(columns):
        raise ValidationFailed.at("/prefix", "The key has no column after those of `key`")
    if columns and len(values) == len(columns) and columns[-1].type != WINDOW:
        key = encode_key(values, columns)
        return key, key + _AFTER
    if columns and len(values) == len(columns):
        key = encode_key(values, columns)  # of a window it has the start
        return key, end_of_prefix(key)
    begin = b"".join(
        encode_part(value, column.type) for value, column in zip(values, columns, strict=False)
    )
    if query.prefix:
        if columns[len(values)].type != "string":
            detail = f"Column {len(values) + 1} of the key is not text; use `key`"
            raise ValidationFailed.at("/prefix", detail)
        begin += text_prefix(query.prefix)
    if len(begin) > (most := ordered_bytes(columns)):
        detail = f"Too long to search for: at most {most} bytes"
        raise ValidationFailed.at("/prefix" if query.prefix else "/key", detail)
    return begin, end_of_prefix(begin)


def _window_bytes(plan: ViewPlan) -> int:
    """Return the width of the window at the end of each key. Raises ValidationFailed."""
    widths = [encoded_width(column.type) or 0 for column in plan.key if column.is_window]
    is_last = all(column.is_window for column in plan.key[len(plan.key) - len(widths) :])
    if not widths or not is_last or not all(widths):
        detail = "Only a view that is grouped by a window, its start or its end has a newest one"
        raise ValidationFailed.at("/latest", detail)
    return sum(widths)


def _beside(key: bytes, newest_bytes: int) -> tuple[bytes, bytes]:
    """Return the end of the range before a key, and the begin of the one after it.

    With `newest_bytes` both are outside of all windows of the key.
    """
    if not newest_bytes or len(key) > limits.VIEW_KEY_BYTES_MAX:
        return key, key + _AFTER
    others = key[: max(0, len(key) - newest_bytes)]
    return others, end_of_prefix(others) or key + _AFTER
