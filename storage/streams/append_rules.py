"""Validation and normalisation of records before they are appended, without a store."""

import hashlib
from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from storage.domain import limits
from storage.domain.errors import BatchTooLarge, MessageTooLarge, ValidationFailed
from storage.domain.log.record_batch import CONTENT_TYPE, Record, headers_size_bytes
from storage.domain.queues.message import check_header_names
from storage.domain.requests.token import REPLY_TO
from storage.domain.streams.columnar_batch import Columns
from storage.domain.streams.stream import RING_SIZE, EventTimes, Stream, StreamSpec
from storage.domain.topics.topic import ROUTES
from storage.domain.trace_context import without_context

OWN_HEADERS = frozenset({CONTENT_TYPE})
"""Reserved headers that protocol endpoints may set on a record."""


def check_records(
    stream: Stream, records: Sequence[Record], own: frozenset[str] = OWN_HEADERS
) -> list[int]:
    """Return the records' sizes in bytes; raise for a batch that this stream does not accept.

    `own` are the reserved headers that the records may have.
    """
    if not records:
        raise ValidationFailed.at("/records", "A batch must have at least one record", "too_few")
    if len(records) > limits.BATCH_RECORDS_MAX:
        raise BatchTooLarge(f"A call can append at most {limits.BATCH_RECORDS_MAX} records.")
    sizes = [record.size_bytes if record.headers else _small_size(record) for record in records]
    largest = stream.spec.record_bytes_max
    counted = sizes if max(sizes) <= largest else _counted(records, sizes, own - OWN_HEADERS)
    if max(counted) > largest:
        place = next(nth for nth, size in enumerate(counted) if size > largest)
        raise MessageTooLarge(
            f"Record {place} has {counted[place]} bytes, including key and headers; the stream allows {largest}.",
            record_bytes_max=largest,
        )
    for place, record in enumerate(records):
        if len(record.key) > limits.KEY_CHARACTERS_MAX:
            detail = f"A key can have at most {limits.KEY_CHARACTERS_MAX} characters"
            raise ValidationFailed.at(f"/records/{place}/key", detail, "too_long")
        if record.headers:
            check_header_names(record.headers, own)
        if record.hash_key is not None and not 0 <= record.hash_key < RING_SIZE:
            detail = "A hash key must be 0 to 340282366920938463463374607431768211455"
            raise ValidationFailed.at(f"/records/{place}/hash_key", detail, "out_of_range")
    return sizes


def check_columns(stream: Stream, columns: Columns) -> None:
    """Raise for columns of an idempotent append that this stream does not accept."""
    columns.check_keys()
    check_sizes(stream, columns)
    for headers in columns.headers:
        if headers:
            check_header_names(headers, OWN_HEADERS)


def check_sizes(stream: Stream, columns: Columns) -> None:
    """Raise MessageTooLarge for a record that is larger than the stream allows."""
    most = stream.spec.record_bytes_max
    place = columns.larger_than(most)
    if place is not None:
        size = columns.sizes()[place]
        headers = " and headers" if columns.headers else ""
        raise MessageTooLarge(
            f"Record {place} has {size} bytes, including its key{headers}; the stream allows {most}.",
            record_bytes_max=most,
        )


def check_unrouted(records: Sequence[Record]) -> None:
    """Raise ValidationFailed for a record with a hash key.

    A record appended to a shard's own address is not routed.
    """
    for place, record in enumerate(records):
        if record.hash_key is not None:
            detail = "A record appended to a shard cannot have a hash key"
            raise ValidationFailed.at(f"/records/{place}/hash_key", detail, "not_allowed")


def timed(
    spec: StreamSpec, records: Sequence[Record], now_ms: Callable[[], int]
) -> Sequence[Record]:
    """Return the records with the event times that the stream keeps.

    Raises ValidationFailed for an event time that the stream does not accept.
    """
    if _keeps_times(spec):
        return records
    if spec.event_times is EventTimes.ARRIVAL:
        return [
            record if record.event_time_ms is None else replace(record, event_time_ms=None)
            for record in records
        ]
    _check_times(spec, [record.event_time_ms for record in records], now_ms())
    return records


def timed_columns(spec: StreamSpec, columns: Columns, now_ms: Callable[[], int]) -> Columns:
    """Return the columns with the event times that the stream keeps, like `timed`."""
    if _keeps_times(spec):
        return columns
    if spec.event_times is EventTimes.ARRIVAL:
        return replace(columns, event_times_ms=())
    _check_times(spec, columns.event_times_ms or [None] * len(columns), now_ms())
    return columns


def _keeps_times(spec: StreamSpec) -> bool:
    return spec.event_times is EventTimes.CLIENT_PREFER and spec.event_time_skew_ms_max is None


def _check_times(spec: StreamSpec, times_ms: Sequence[int | None], now_ms: int) -> None:
    for place, time_ms in enumerate(times_ms):
        fault = _event_time_fault(spec, time_ms, now_ms)
        if fault:
            raise ValidationFailed.at(f"/records/{place}/event_time", *fault)


def _event_time_fault(
    spec: StreamSpec, event_time_ms: int | None, now_ms: int
) -> tuple[str, str] | None:
    if event_time_ms is None:
        required = spec.event_times is EventTimes.CLIENT_REQUIRE
        return (
            ("The stream requires an event time for each record", "missing") if required else None
        )
    skew_ms = spec.event_time_skew_ms_max
    if skew_ms is not None and abs(event_time_ms - now_ms) > skew_ms:
        return (f"must be within {skew_ms / limits.SECOND_MS:g} seconds of now", "out_of_range")
    return None


def _counted(records: Sequence[Record], sizes: Sequence[int], own: frozenset[str]) -> Sequence[int]:
    """Return the sizes that count against the stream's record limit.

    Headers in `own`, which Millstream adds to the writer's record, do not count.
    """
    return [
        size - headers_size_bytes(tuple(one for one in record.headers if one[0] in own))
        for record, size in zip(records, sizes, strict=True)
    ]


def _small_size(record: Record) -> int:
    """Return `size_bytes` of a record without headers, without a call for most keys."""
    key = record.key
    return len(record.data) + (len(key) if key.isascii() else len(key.encode()))


_OF_CALLS = frozenset({ROUTES, REPLY_TO})


def fingerprint(records: Iterable[Record]) -> str:
    """Return the content fingerprint stored with an idempotency key: 16 hex digits.

    It distinguishes other content from a repeat. Trace context does not count, as a retry is made in another span
    than the first call, nor do the routes that take a published message, which may change in between, and the token of a request.
    """
    digest = hashlib.blake2b(digest_size=8)
    for record in records:
        digest.update(record.key.encode())
        digest.update(record.data)
        if record.hash_key is not None:
            digest.update(b"\0%d\0" % record.hash_key)
        for name, kind, value in without_context(record.headers):
            if name not in _OF_CALLS:
                digest.update(f"{name}\0{kind}\0".encode() + value)
    return digest.hexdigest()
