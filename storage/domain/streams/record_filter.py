"""Which records of a stream are meant: by key, header, JSON body, and by lot.

What is selected depends on the record and its place alone, so that whoever asks again gets the same answer. A
condition on a body names a place in it by a JSON Pointer (RFC 6901) and says what is there:

    {"path": "/user/id", "equals": 7}        the value there is 7; 7.0 is the same number, "7" and true are not
    {"path": "/user/email", "exists": false} nothing is there, not even null

A body that is not JSON meets no condition, but that nothing exists. All conditions of a filter must hold.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from storage.domain import limits
from storage.domain.errors import FieldFault
from storage.domain.streams.stream import LogRecord

_SAMPLES = 2**64


class SampleBy(StrEnum):
    """What draws the lot: a key takes all of its records along."""

    KEY = "key"
    OFFSET = "offset"


class Sample(msgspec.Struct, frozen=True):
    """About this fraction of the records, above 0 and below 1. A record without a key is drawn by its offset."""

    fraction: float
    by: SampleBy = SampleBy.OFFSET


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """What a body says: exactly one of `equals`, whose `None` is JSON's null, and `exists` is given."""

    path: str
    equals: Any = msgspec.UNSET
    exists: bool | msgspec.UnsetType = msgspec.UNSET

    def faults(self, pointer: str) -> list[FieldFault]:
        """What is wrong with it."""
        found = []
        if (self.equals is msgspec.UNSET) == (self.exists is msgspec.UNSET):
            found.append(FieldFault(pointer, "Exactly one of equals and exists", "exclusive"))
        if self.path and not self.path.startswith("/"):
            detail = "A JSON Pointer is empty or begins with '/'"
            found.append(FieldFault(f"{pointer}/path", detail))
        return found


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which records are meant: those that meet all that is said."""

    keys: tuple[str, ...] = ()
    headers: dict[str, str] = {}
    body: tuple[Condition, ...] = ()
    sample: Sample | None = None

    @property
    def takes_all(self) -> bool:
        """Nothing is said."""
        return not (self.keys or self.headers or self.body or self.sample)

    def faults(self) -> list[FieldFault]:
        """What is wrong with it."""
        found = [
            fault
            for nth, condition in enumerate(self.body)
            for fault in condition.faults(f"/filter/body/{nth}")
        ]
        for name, some in (("keys", self.keys), ("headers", self.headers), ("body", self.body)):
            if len(some) > limits.FILTER_WORDS_MAX:
                detail = f"At most {limits.FILTER_WORDS_MAX}"
                found.append(FieldFault(f"/filter/{name}", detail, "too_many"))
        if self.sample is not None and not 0 < self.sample.fraction < 1:
            detail = "A fraction is above 0 and below 1"
            found.append(FieldFault("/filter/sample/fraction", detail, "out_of_range"))
        return found


Selects = Callable[[int, LogRecord], bool]
"""Whether the record of a shard is meant."""


def selects(filter_: Filter) -> Selects:
    """The filter as a question."""
    tests: list[Selects] = []
    if filter_.keys:
        keys = frozenset(filter_.keys)
        tests.append(lambda _, at: at.record.key in keys)
    if filter_.sample is not None:
        tests.append(_drawn(filter_.sample))
    if filter_.headers:
        wanted = {name: value.encode() for name, value in filter_.headers.items()}
        tests.append(lambda _, at: _has_headers(at, wanted))
    if filter_.body:
        conditions = filter_.body
        tests.append(lambda _, at: _says(at.record.data, conditions))
    return lambda shard, at: all(test(shard, at) for test in tests)


def _drawn(sample: Sample) -> Selects:
    below = int(sample.fraction * _SAMPLES)

    def is_drawn(shard: int, at: LogRecord) -> bool:
        by_key = sample.by is SampleBy.KEY and at.record.key
        word = f"key {at.record.key}" if by_key else f"{shard} {at.offset}"
        digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") < below

    return is_drawn


def _has_headers(at: LogRecord, wanted: Mapping[str, bytes]) -> bool:
    found = {(name, value) for name, _, value in at.record.headers}
    return all(header in found for header in wanted.items())


class _Nothing:
    """What is at a place that is not there."""


_NOTHING = _Nothing()


def _says(body: bytes, conditions: Sequence[Condition]) -> bool:
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        value = _NOTHING
    return all(_holds(value, condition) for condition in conditions)


def _holds(value: Any, condition: Condition) -> bool:
    found = at_pointer(value, condition.path)
    if condition.exists is not msgspec.UNSET:
        return (found is not _NOTHING) is condition.exists
    return _same(found, condition.equals)


def at_pointer(value: Any, pointer: str) -> Any:
    """What a JSON Pointer leads to."""
    if value is _NOTHING or not pointer:
        return value
    for word in pointer[1:].split("/"):
        name = word.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(name, _NOTHING)
        elif isinstance(value, list) and _is_index(name) and int(name) < len(value):
            value = value[int(name)]
        else:
            return _NOTHING
    return value


def _is_index(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) < 10 and (word == "0" or word[0] != "0")


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON: Python takes True for 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)
