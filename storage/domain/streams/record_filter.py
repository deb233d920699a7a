"""Filter for the records of a stream: by key, header, JSON body, match and sample.

The selection depends only on the record and its position, so that a repeated request gets the same
result. A condition on a body names a location in it by a JSON Pointer (RFC 6901) and the value required
there:

    {"path": "/user/id", "equal_to": 7}      the value there is 7; 7.0 is the same number, "7" and true are not
    {"path": "/user/email", "exists": false} no value exists there, not even null

A body that is not JSON meets no condition except `exists: false`. All conditions of a filter must hold.

A match is that of a route (`storage.domain.filters.matches`), so that readers select what a route would take.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from storage.domain import limits
from storage.domain.errors import FieldFault, MatchInvalid, ValidationFailed
from storage.domain.filters.documents import document_of, meta_of
from storage.domain.filters.matches import CompiledMatch, parse_matches
from storage.domain.log.json_body import (
    JSON_POINTER,
    NOTHING,
    at_pointer,
    equals_as_json,
    json_of,
)
from storage.domain.log.record_batch import Record
from storage.domain.names import StreamName
from storage.domain.streams.stream import LogRecord

_SAMPLES = 2**64


class SampleBy(StrEnum):
    """Sampling unit: a key is selected with all of its records."""

    KEY = "key"
    OFFSET = "offset"


class Sample(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Random sample of about this fraction of the records, above 0 and below 1.

    A record without a key is sampled by its offset.
    """

    fraction: float
    by: SampleBy = SampleBy.OFFSET


class Condition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Condition on a JSON body.

    Exactly one of `equals`, whose `None` is JSON's null, and `exists` is given. On the wire, `equals` is `equal_to`.
    """

    path: str
    equals: Any = msgspec.UNSET
    exists: bool | msgspec.UnsetType = msgspec.UNSET

    @property
    def term(self) -> str:
        """The condition as text, as `parse_condition` takes it."""
        if self.equals is not msgspec.UNSET:
            return f"{self.path}={msgspec.json.encode(self.equals).decode()}"
        return self.path if self.exists else f"no {self.path}"

    def faults(self, pointer: str) -> list[FieldFault]:
        """Return the condition's validation faults."""
        field_faults = []
        if (self.equals is msgspec.UNSET) == (self.exists is msgspec.UNSET):
            field_faults.append(
                FieldFault(pointer, "Specify exactly one of equal_to and exists", "exclusive")
            )
        if not JSON_POINTER.fullmatch(self.path):
            detail = "A JSON Pointer must be empty or start with '/'; '~' is followed by 0 or 1"
            field_faults.append(FieldFault(f"{pointer}/path", detail))
        return field_faults


def parse_condition(term: str) -> Condition:
    """Parse `/pointer=value`, or `/pointer` for a location that exists.

    A value that is valid JSON is that JSON value; any other is text.
    """
    path, equals, value = term.partition("=")
    if not equals:
        return Condition(path=path, exists=True)
    try:
        return Condition(path=path, equals=msgspec.json.decode(value))
    except (msgspec.DecodeError, UnicodeEncodeError):
        return Condition(path=path, equals=value)


class Filter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Filter of records: selects those that match every field that is set.

    `match` is a match or a list of matches in their JSON form, of which any selects a record; None and `{}` select all. Where it
    is not set, it is not encoded: a version that does not know it refuses a filter that has it, instead of selecting everything.
    """

    keys: tuple[str, ...] = ()
    headers: dict[str, str] = {}
    body: tuple[Condition, ...] = ()
    sample: Sample | None = None
    match: Any = msgspec.UNSET

    @classmethod
    def of_terms(
        cls,
        keys: Sequence[str],
        headers: Sequence[str],
        body: Sequence[str],
        match: Any = msgspec.UNSET,
    ) -> "Filter":
        """Return the filter of a query: `name:value` headers and `/pointer=value` conditions.

        Raises ValidationFailed, MatchInvalid.
        """
        parts = [term.partition(":") for term in headers]
        if not all(name and colon for name, colon, _ in parts):
            raise ValidationFailed.at("/header", "A header must be written as name:value")
        pairs = {name: value for name, _, value in parts}
        if len(pairs) < len(headers):
            raise ValidationFailed.at("/header", "A header can have only one value", "conflict")
        conditions = tuple(parse_condition(term) for term in body)
        record_filter = cls(keys=tuple(keys), headers=pairs, body=conditions, match=match)
        record_filter.check("/match")
        return record_filter

    @property
    def takes_all(self) -> bool:
        """True if no field is set."""
        return not (self.keys or self.headers or self.body or self.sample or self.match)

    def check(self, match_pointer: str = "/filter/match") -> None:
        """Raise ValidationFailed or MatchInvalid for an invalid filter."""
        if faults := self.faults():
            raise ValidationFailed("The filter is invalid.", *faults)
        self.compiled_match(match_pointer)

    def compiled_match(self, pointer: str = "/filter/match") -> CompiledMatch | None:
        """Compile the match, which is asked for each record; None if it has no condition.

        Raises MatchInvalid.
        """
        matches = parse_matches(None if self.match is msgspec.UNSET else self.match, pointer)
        if not matches:
            return None
        compiled = CompiledMatch(matches)
        _check_cost(compiled, pointer)
        return compiled

    def faults(self) -> list[FieldFault]:
        """Return the filter's validation faults, without those of its match."""
        field_faults = [
            fault
            for nth, condition in enumerate(self.body)
            for fault in condition.faults(f"/filter/body/{nth}")
        ]
        for name, values in (("keys", self.keys), ("headers", self.headers), ("body", self.body)):
            if len(values) > limits.FILTER_TERMS_MAX:
                detail = f"At most {limits.FILTER_TERMS_MAX}"
                field_faults.append(FieldFault(f"/filter/{name}", detail, "too_many"))
        if self.sample is not None and not 0 < self.sample.fraction < 1:
            detail = "The fraction must be greater than 0 and less than 1"
            field_faults.append(FieldFault("/filter/sample/fraction", detail, "out_of_range"))
        return field_faults


Selects = Callable[[int, LogRecord], bool]
"""Predicate on a shard index and a record: true if the filter selects it."""


def selects(filter_: Filter, stream: StreamName | None = None) -> Selects | None:
    """Compile the filter of a stream's records to a predicate; None if it selects all.

    Raises MatchInvalid.
    """
    if filter_.takes_all:
        return None
    tests: list[Selects] = []
    if filter_.keys:
        keys = frozenset(filter_.keys)
        tests.append(lambda _, entry: entry.record.key in keys)
    if filter_.sample is not None:
        tests.append(_sampler(filter_.sample))
    if filter_.headers:
        headers = {name: value.encode() for name, value in filter_.headers.items()}
        tests.append(lambda _, entry: _has_headers(entry, headers))
    if compiled := filter_.compiled_match():
        tests.append(_matcher(compiled, {} if stream is None else meta_of(stream)))
    if filter_.body:
        conditions = filter_.body
        tests.append(lambda _, entry: _matches_body(entry.record.data, conditions))
    if len(tests) == 1:
        return tests[0]
    return lambda shard, entry: all(test(shard, entry) for test in tests)


def _check_cost(match: CompiledMatch, pointer: str) -> None:
    """Raise MatchInvalid for a match that takes too long to be asked for each record."""
    count = len(match.alternatives)
    if count > (most := limits.READER_ALTERNATIVES_MAX):
        detail = f"The match has {count} alternatives; a reader's can have at most {most}"
        raise MatchInvalid(None, FieldFault(pointer, detail, "too_many"))
    size = sum(len(alternative.condition) for alternative in match.alternatives)
    if size > (most := limits.READER_WHERE_CHARACTERS_MAX):
        detail = (
            f"The conditions in 'where' have {size} characters in all alternatives; at most {most}"
        )
        raise MatchInvalid(None, FieldFault(pointer, detail, "too_long"))


def _matcher(match: CompiledMatch, meta: Mapping[str, object]) -> Selects:
    return lambda _, entry: match.matches(document_of(entry.record, meta))


def _sampler(sample: Sample) -> Selects:
    below = int(sample.fraction * _SAMPLES)

    def is_sampled(shard: int, entry: LogRecord) -> bool:
        by_key = sample.by is SampleBy.KEY and entry.record.key
        unit = f"key {entry.record.key}" if by_key else f"{shard} {entry.offset}"
        digest = hashlib.blake2b(unit.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") < below

    return is_sampled


def _has_headers(entry: LogRecord, required: Mapping[str, bytes]) -> bool:
    present = {(name, value) for name, _, value in entry.record.headers}
    return all(header in present for header in required.items())


def has_text(record: Record, text: str) -> bool:
    """Return whether the body, the key or a header has this text, ignoring case."""
    encoded = text.lower().encode()
    return (
        encoded in record.data.lower()
        or encoded in record.key.lower().encode()
        or any(
            encoded in value.lower() or encoded in name.lower().encode()
            for name, _, value in record.headers
        )
    )


def _matches_body(body: bytes, conditions: Sequence[Condition]) -> bool:
    value = json_of(body)
    return all(_holds(value, condition) for condition in conditions)


def _holds(value: Any, condition: Condition) -> bool:
    actual = at_pointer(value, condition.path)
    if condition.exists is not msgspec.UNSET:
        return (actual is not NOTHING) is condition.exists
    return equals_as_json(actual, condition.equals)
