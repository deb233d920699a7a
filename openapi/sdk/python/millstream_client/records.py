"""Records of a stream in MessagePack, where data are their bytes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from millstream_client.bodies import decode_json, encode_body
from millstream_client.calls import IDEMPOTENCY_KEY, Call
from millstream_client.errors import ItemRefused
from millstream_client.messages import PACKED, path, reading

_encode = msgspec.msgpack.Encoder().encode
_ACCEPT = {"accept": PACKED["accept"]}

Start = str | datetime
"""Start of a read: "earliest", "latest", or a time, for records that arrived at or after it."""


@dataclass(frozen=True)
class NewRecord:
    """A record to append. `data`: bytes, text, or any value with a JSON form.

    Records with the same key stay in order.
    """

    data: Any
    key: str = ""
    headers: dict[str, str] | None = None
    content_type: str = ""
    event_time: datetime | None = None


class OutRecord(msgspec.Struct, omit_defaults=True):
    """A record in the form in which it is sent."""

    data: bytes
    key: str = ""
    headers: dict[str, str] = {}
    content_type: str = ""
    event_time: str | None = None


def outgoing(record: Any) -> OutRecord:
    """Return the record to append for a NewRecord or data.

    Raises TypeError for data without a JSON form.
    """
    asked = record if isinstance(record, NewRecord) else NewRecord(record)
    data, content_type = encode_body(asked.data, asked.content_type)
    moment = None if asked.event_time is None else moment_text(asked.event_time)
    return OutRecord(data, asked.key, asked.headers or {}, content_type, moment)


def moment_text(moment: datetime) -> str:
    """Format a time as RFC 3339; a time without a zone is in this machine's."""
    return moment.astimezone().isoformat()


class Appended(msgspec.Struct, frozen=True):
    """Shard and offset of a record.

    `duplicate`: it had been appended before.
    """

    shard: int
    offset: int
    duplicate: bool = False


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A record with its offset. `shard` is -1 if only one shard is read.

    `subject` is that of a message that was published to a topic.
    """

    shard: int = -1
    offset: int
    data: bytes
    content_type: str = ""
    key: str = ""
    subject: str = ""
    headers: dict[str, str] = {}
    headers_base64: dict[str, str] = {}
    arrival_time: datetime
    event_time: datetime | None = None

    @property
    def text(self) -> str:
        """The data as text. Raises UnicodeDecodeError, a ValueError, if it is not UTF-8."""
        return self.data.decode()

    def json(self) -> Any:
        """The data as a JSON value. Raises ValueError if it is not JSON."""
        return decode_json(self.data)


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """Offsets [first, next) of a shard that are not available.

    `reason`: 'expired' by retention; 'failover', without a record that was acknowledged; or a 'hole', whose records, if there were any, are
    lost.
    """

    shard: int = -1
    first: int
    next: int
    reason: str


class Child(msgspec.Struct, frozen=True):
    """A shard that continues where its parents were closed."""

    shard: int
    first_hash_key: str
    last_hash_key: str
    parents: list[int]


class ShardRead(msgspec.Struct, frozen=True, kw_only=True):
    """Records of one shard; continue at `next_offset` until it has `ended`.

    `stream_id`: the stream that the offset belongs to, whatever has its name later.
    """

    records: list[Record]
    stream_id: str = ""
    next_offset: int
    start: int
    tip: int
    behind_seconds: float
    tier: str
    ended: bool
    gap: Gap | None = None
    children: list[Child] = []


class StreamRead(msgspec.Struct, frozen=True, kw_only=True):
    """Records of all shards, by arrival; continue at `next_cursor`."""

    records: list[Record]
    next_cursor: str
    behind_seconds: float
    tier: str
    gaps: list[Gap] = []


class GroupRead(msgspec.Struct, frozen=True, kw_only=True):
    """Records of a member's shards; `token` commits them."""

    records: list[Record]
    member: str
    generation: int
    shards: list[int]
    token: str
    behind_seconds: float
    tier: str
    gaps: list[Gap] = []


class _Error(msgspec.Struct):
    code: str
    detail: str
    retryable: bool


class _AppendedOut(msgspec.Struct):
    shard: int = -1
    offset: int = -1
    duplicate: bool = False
    error: _Error | None = None

    def result(self) -> Appended | ItemRefused:
        if self.error is not None:
            return ItemRefused(self.error.code, self.error.detail, self.error.retryable)
        return Appended(self.shard, self.offset, self.duplicate)


class _AppendedRecords(msgspec.Struct):
    records: list[_AppendedOut]
    failed: int


_read_appended = reading(_AppendedRecords)
_read_shard = reading(ShardRead)
_read_stream = reading(StreamRead)
_read_group = reading(GroupRead)


# ── Calls ──


def append(
    stream: str, records: Sequence[OutRecord], idempotency_key: str
) -> Call[list[Appended | ItemRefused]]:
    """Append records, each with its own result."""
    return Call(
        "append_records",
        "POST",
        path("streams", stream, "records"),
        lambda response: [one.result() for one in _read_appended(response).records],
        headers={**PACKED, IDEMPOTENCY_KEY: idempotency_key},
        content=_encode({"records": records}),
    )


def append_to_shard(
    stream: str, shard: int, records: Sequence[OutRecord], conditions: Mapping[str, Any]
) -> Call[list[Appended | ItemRefused]]:
    """Append records to one shard, all of them or none.

    A repeat is safe with a producer or an expected offset.
    """
    said = {name: value for name, value in conditions.items() if value is not None}
    return Call(
        "append_records_to_shard",
        "POST",
        path("streams", stream, "shards", shard, "records"),
        lambda response: [one.result() for one in _read_appended(response).records],
        headers=PACKED,
        content=_encode({"records": records, **said}),
        guarded="producer" in said or "expected_offset" in said,
    )


def read_shard(stream: str, shard: int, query: Mapping[str, Any]) -> Call[ShardRead]:
    """Read a shard in order."""
    return Call(
        "read_shard",
        "GET",
        path("streams", stream, "shards", shard, "records"),
        _read_shard,
        params=_said(query),
        headers=_ACCEPT,
    )


def read_stream(stream: str, query: Mapping[str, Any]) -> Call[StreamRead]:
    """Read all shards by arrival."""
    return Call(
        "read_stream",
        "GET",
        path("streams", stream, "records"),
        _read_stream,
        params=_said(query),
        headers=_ACCEPT,
    )


def fetch(group: str, query: Mapping[str, Any]) -> Call[GroupRead]:
    """Read records as a member of a group."""
    return Call(
        "fetch_records",
        "GET",
        path("groups", group, "records"),
        _read_group,
        params=_said(query),
        headers=_ACCEPT,
    )


def _said(query: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: moment_text(value) if isinstance(value, datetime) else value
        for name, value in query.items()
        if value is not None and value != ""
    }
