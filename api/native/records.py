"""Records of a stream on the wire."""

from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from api.http.codecs import Lined, refuse_field_headers
from api.native.fields import (
    body_from_json,
    body_from_msgpack,
    content_type_from_http,
    header_names_from_http,
    headers_from_http,
    headers_from_json,
    http_text,
    moment_ms,
    rfc3339,
    show_body,
    show_headers,
)
from api.native.messages import AnyBody, Base64, ContentType, HeaderMap, RawBody, Time, WaitSeconds
from api.native.problems import ItemError, item_error
from api.types import RequestHeaders
from storage.domain import limits
from storage.domain.errors import MillstreamError, ValidationFailed
from storage.domain.log.record_batch import CONTENT_TYPE, SUBJECT, Headers, Record
from storage.domain.streams.stream import (
    UNCONDITIONAL,
    AppendCondition,
    Appended,
    LogRecord,
    Producer,
    Shard,
    Tier,
)

Key = Annotated[
    str,
    Meta(
        max_length=limits.KEY_CHARACTERS_MAX,
        description="Partition key. Records with the same key stay in one shard, in order.",
    ),
]
HashKey = Annotated[
    str,
    Meta(
        pattern=r"^(0|[1-9][0-9]{0,38})$",
        description="Hash key, which overrides the one derived from the key. Not allowed "
        "when appending to a shard.",
    ),
]
Moment = Annotated[datetime, Meta(tz=True)]
StartTime = Annotated[
    Moment, Meta(description="Start with the first record that arrived at or after this time.")
]
Count = Annotated[int, Meta(ge=0, le=limits.OFFSET_MAX)]
RecordsMax = Annotated[int, Meta(ge=1, le=limits.READ_RECORDS_MAX)]
BytesMax = Annotated[int, Meta(ge=1, le=limits.READ_BYTES_MAX)]

RECORDS_DEFAULT = 1_000


class _RecordFields(msgspec.Struct, kw_only=True, gc=False, forbid_unknown_fields=True):
    """Fields that every form of a record has beside its data."""

    data_base64: Base64 | UnsetType = UNSET
    key: Key = ""
    headers: HeaderMap = {}
    content_type: ContentType = ""
    event_time: Moment | None = None
    hash_key: HashKey | None = None

    def _with(self, data: bytes, own_content_type: str) -> Record:
        content_type = self.content_type or own_content_type
        headers = headers_from_json(self.headers) if self.headers else ()
        return Record(
            data,
            self.key,
            with_content_type(headers, content_type) if content_type else headers,
            None if self.event_time is None else moment_ms(self.event_time),
            None if self.hash_key is None else int(self.hash_key),
        )


class RecordIn(_RecordFields, kw_only=True, gc=False):
    """A record to append: `data` or `data_base64`."""

    data: RawBody | UnsetType = UNSET

    def to_domain(self) -> Record:
        """Convert the record. Raises ValidationFailed when its data cannot be decoded."""
        return self._with(*body_from_json(self.data, self.data_base64, "data"))


class RecordOrBatch(RecordIn, kw_only=True, gc=False):
    """A record, or a batch of them."""

    records: list[RecordIn] | UnsetType = UNSET


class PackedRecord(_RecordFields, kw_only=True, gc=False):
    """A record in MessagePack, where data may be bin."""

    data: Any = UNSET

    def to_domain(self) -> Record:
        """Convert the record. Raises ValidationFailed when its data cannot be decoded."""
        if type(self.data) is bytes and not (
            self.headers
            or self.content_type
            or self.event_time
            or self.data_base64
            or self.hash_key
        ):
            return Record(self.data, self.key)
        return self._with(*body_from_msgpack(self.data, self.data_base64, "data"))


class PackedRecordOrBatch(PackedRecord, kw_only=True, gc=False):
    """A record, or a batch of them, in MessagePack."""

    records: list[PackedRecord] | UnsetType = UNSET


class AppendRecords(msgspec.Struct, forbid_unknown_fields=True):
    """Batch of records.

    A single record, NDJSON, MessagePack and raw bodies are also accepted.
    """

    records: Annotated[list[RecordIn], Meta(min_length=1, max_length=limits.BATCH_RECORDS_MAX)]


class ProducerIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An idempotent producer, with the sequence of the first record.

    The next ones follow. A new epoch starts at 0.
    """

    id: Annotated[str, Meta(min_length=1, max_length=limits.PRODUCER_ID_CHARACTERS_MAX)]
    epoch: Count
    sequence: Count


Fence = Annotated[
    str,
    Meta(
        max_length=limits.FENCE_CHARACTERS_MAX,
        description="Fencing token of the shard, if it is fenced.",
    ),
]


class ShardRecordOrBatch(RecordOrBatch, kw_only=True, gc=False):
    """A record, or a batch of them, for one shard, with the conditions of the append."""

    producer: ProducerIn | None = None
    expected_offset: Count | None = None
    fence: Fence = ""


class PackedShardRecordOrBatch(PackedRecordOrBatch, kw_only=True, gc=False):
    """A record, or a batch of them, for one shard, with the conditions, in MessagePack."""

    producer: ProducerIn | None = None
    expected_offset: Count | None = None
    fence: Fence = ""


class AppendToShard(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A batch of records for one shard: all of them or none, and only if the conditions hold."""

    records: Annotated[list[RecordIn], Meta(min_length=1, max_length=limits.BATCH_RECORDS_MAX)]
    producer: ProducerIn | None = None
    expected_offset: (
        Annotated[Count, Meta(description="Append only if this is the shard's next offset.")] | None
    ) = None
    fence: Fence = ""


def condition_of(around: ShardRecordOrBatch | PackedShardRecordOrBatch | None) -> AppendCondition:
    """Return the conditions of an append; none for lines and raw bodies."""
    if around is None:
        return UNCONDITIONAL
    identity = around.producer
    producer = (
        None if identity is None else Producer(identity.id, identity.epoch, identity.sequence)
    )
    if producer is None and around.expected_offset is None and not around.fence:
        return UNCONDITIONAL
    return AppendCondition(producer, around.expected_offset, around.fence)


def with_content_type(headers: Headers, content_type: str) -> Headers:
    """Return a record's headers with its content type, which has a reserved name there."""
    return (*headers, (CONTENT_TYPE, "", content_type.encode()))


def record_from_raw(
    payload: bytes,
    headers: RequestHeaders,
    content_type_of: Callable[[RequestHeaders], str] = content_type_from_http,
) -> Record:
    """Build a record whose data is the request's body. Raises ValidationFailed.

    The other fields are in headers.
    """
    refuse_field_headers(headers, (b"millstream-key", *header_names_from_http(headers)))
    key = http_text(headers, "Millstream-Key")
    if len(key) > limits.KEY_CHARACTERS_MAX:
        raise ValidationFailed.at("/Millstream-Key", "At most 256 characters", "too_long")
    own = headers_from_http(headers)
    content_type = content_type_of(headers)
    return Record(payload, key, with_content_type(own, content_type) if content_type else own)


class AppendedOut(msgspec.Struct, omit_defaults=True, kw_only=True, gc=False):
    """Shard and offset of a record, or the reason why it was refused.

    `duplicate`: it had been appended before.
    """

    shard: int | UnsetType = UNSET
    offset: int | UnsetType = UNSET
    duplicate: bool | UnsetType = UNSET
    error: ItemError | UnsetType = UNSET

    @classmethod
    def from_domain(cls, result: Appended | MillstreamError) -> "AppendedOut":
        """Convert the result of one record."""
        if isinstance(result, MillstreamError):
            return cls(error=item_error(result))
        return cls(shard=result.shard, offset=result.offset, duplicate=result.duplicate)


class AppendedRecordOut(msgspec.Struct, frozen=True):
    """Shard and offset of a single record."""

    shard: int
    offset: int
    duplicate: bool


class AppendedRecords(msgspec.Struct):
    """One result for each record, in their order, and how many were refused."""

    records: list[AppendedOut]
    failed: int


class GapOut(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Offsets [first, next) that cannot be read.

    `reason`: 'expired' by retention; 'failover', without a record that was acknowledged; or a 'hole', whose records, if there
    were any, are lost.
    """

    shard: int | UnsetType = UNSET
    first: int
    next: int
    reason: str


class RecordOut(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """A record with its offset. `shard` is present when several are read."""

    shard: int | UnsetType = UNSET
    offset: int
    data: AnyBody = UNSET
    data_base64: Base64 | UnsetType = UNSET
    content_type: str = ""
    key: str = ""
    subject: Annotated[str, Meta(description="Of a message that was published to a topic.")] = ""
    headers: dict[str, str] = {}
    headers_base64: dict[str, str] = {}
    arrival_time: Time
    event_time: Time | UnsetType = UNSET

    @classmethod
    def from_domain(
        cls, log_record: LogRecord, binary: bool, shard: int | UnsetType = UNSET
    ) -> "RecordOut":
        """Convert a record. `binary`: the answer is MessagePack, where the data is bin."""
        record = log_record.record
        content_type, subject = _reserved_values(record.headers) if record.headers else ("", "")
        data, encoded = (record.data, UNSET) if binary else show_body(record.data, content_type)
        texts, others = show_headers(record.headers) if record.headers else ({}, {})
        return cls(
            shard=shard,
            offset=log_record.offset,
            data=data,
            data_base64=encoded,
            content_type=content_type,
            key=record.key,
            subject=subject,
            headers=texts,
            headers_base64=others,
            arrival_time=rfc3339(log_record.arrival_ms),
            event_time=UNSET if record.event_time_ms is None else rfc3339(record.event_time_ms),
        )


def _reserved_values(headers: Headers) -> tuple[str, str]:
    """Return a record's content type and its subject, each empty when it has none."""
    content_type = subject = ""
    for name, _, value in headers:
        if name == CONTENT_TYPE:
            content_type = value.decode("utf-8", "replace")
        elif name == SUBJECT:
            subject = value.decode("utf-8", "replace")
    return content_type, subject


def content_type_of(headers: Headers) -> str:
    """Return a record's content type, from its reserved header; empty when it has none."""
    return _reserved_values(headers)[0]


StreamId = Annotated[
    str,
    Meta(
        pattern=r"^[0-9a-f]{16}$",
        description="The stream that the offset belongs to, from an earlier response: if it was deleted and "
        "another stream has its name, the answer is 410 `stream_recreated`.",
    ),
]


class ReadShard(msgspec.Struct, forbid_unknown_fields=True):
    """Start position and size of a read.

    The position is `offset`, `time` or `tail`; without any, the oldest record.
    """

    offset: Annotated[Count, Meta(description="Offset of the first record to read.")] | None = None
    time: StartTime | None = None
    tail: Annotated[RecordsMax, Meta(description="Read the last N records.")] | None = None
    limit: RecordsMax = RECORDS_DEFAULT
    bytes_max: BytesMax = limits.READ_BYTES_MAX
    wait_seconds: WaitSeconds = 0
    stream_id: StreamId | None = None


class ChildOut(msgspec.Struct, frozen=True):
    """A shard that continues where its parents were closed: read it after all of them."""

    shard: int
    first_hash_key: str
    last_hash_key: str
    parents: list[int]

    @classmethod
    def from_domain(cls, shard: Shard) -> "ChildOut":
        return cls(
            shard.index, str(shard.first_hash_key), str(shard.last_hash_key), list(shard.parents)
        )


class ShardRecords(Lined, kw_only=True, omit_defaults=True):
    """Records of one shard.

    `tip` is the next offset to be written; `gap` describes offsets that cannot be read. `tier` is where the records came from,
    which affects only the latency. `ended`: the shard was split or merged, and nothing is left in it; continue with its
    `children`. Send `stream_id` with the next read, so that it fails if another stream has the name by then.
    """

    lines_field: ClassVar[str] = "records"
    records: list[RecordOut]
    stream_id: str
    next_offset: int
    start: int
    tip: int
    behind_seconds: float
    tier: Tier
    ended: bool
    gap: GapOut | UnsetType = UNSET
    children: list[ChildOut] | UnsetType = UNSET


class Start(StrEnum):
    """Start of a read of all shards without a cursor."""

    EARLIEST = "earliest"
    LATEST = "latest"


class ReadStream(msgspec.Struct, forbid_unknown_fields=True, rename={"start": "from"}):
    """Start of a read of all shards, and its size."""

    cursor: Annotated[str, Meta(description="`next_cursor` of the previous response.")] = ""
    start: Start = Start.EARLIEST
    time: (
        Annotated[Moment, Meta(description="Read records that arrived at or after this time.")]
        | None
    ) = None
    limit: RecordsMax = RECORDS_DEFAULT
    bytes_max: BytesMax = limits.READ_BYTES_MAX
    wait_seconds: WaitSeconds = 0


class StreamRecords(Lined, kw_only=True):
    """Records of all shards, by arrival; within a shard in their order.

    `tier` is the archive when any of them came from there.
    """

    lines_field: ClassVar[str] = "records"
    records: list[RecordOut]
    next_cursor: str
    behind_seconds: float
    tier: Tier
    gaps: list[GapOut]
