"""AWS CBOR 1.1, as used by the SDK for Java.

Maps of text, byte strings for blobs, and times. A time is tag 1: an integer of *milliseconds*, or a float of seconds,
which is the tag's standard meaning. No other tag has a meaning here; the self-described tag (55799) is skipped.
Indefinite lengths are accepted.
"""

from typing import Any, TypeAlias

import cbor2
import msgspec

Plain: TypeAlias = Any
"""JSON values, and bytes."""

_DEPTH_MAX = 16  # twice as deep as any shape
_TIME = 1
_LIBRARY_TAGS = (
    0, 2, 3, 4, 5, 25, 28, 29, 30, 35, 36, 37, 52, 54, 100, 256, 258, 260, 261, 1004, 43000,
)  # fmt: skip


class MalformedCbor(ValueError):
    """The bytes are not valid CBOR of a call."""


def _refuse(_: Any, __: bool) -> Any:
    raise MalformedCbor("a tag that has no meaning here")


def _seconds(value: Any, _: bool) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise MalformedCbor("a time is a number")
    return value / 1000 if isinstance(value, int) else value


_MEANINGS = {**dict.fromkeys(_LIBRARY_TAGS, _refuse), _TIME: _seconds}


def loads(encoded: bytes) -> Plain:
    """Decode a value. Raises MalformedCbor."""
    try:
        return cbor2.loads(
            encoded,
            semantic_decoders=_MEANINGS,
            tag_hook=_refuse,
            max_depth=_DEPTH_MAX,
            strict_hashable_types=True,
        )
    except (cbor2.CBORDecodeError, ValueError, OverflowError, RecursionError) as error:
        raise MalformedCbor(str(error)) from None


def dumps(answer: msgspec.Struct, times: frozenset[str]) -> bytes:
    """Encode an answer. `times` are the names of members that hold seconds."""
    return cbor2.dumps(_with_times(msgspec.to_builtins(answer, builtin_types=(bytes,)), times))


def _with_times(value: Plain, times: frozenset[str]) -> Plain:
    if isinstance(value, dict):
        return {
            name: cbor2.CBORTag(_TIME, round(below * 1000))
            if name in times
            else _with_times(below, times)
            for name, below in value.items()
        }
    if isinstance(value, list):
        return [_with_times(item, times) for item in value]
    return value
