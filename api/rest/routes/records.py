"""Appends and reads of records (fast routes of a stream)."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import msgspec

from api.http.codecs import MSGPACK, BytesBody, Items, ItemsBody, answer_type
from api.http.request import Call
from api.http.request_spans import (
    contexts_of_records,
    records_with_span_context,
    with_callers_trace,
)
from api.http.routing import FastRouter
from api.native.cursors import decode_records_cursor, encode_records_cursor
from api.native.examples import RECORD, STREAM_ID, Example, Repeat
from api.native.fields import (
    idempotency_key,
    moment_ms,
    stated_content_type,
    to_ms,
    to_seconds,
    total_bytes,
    trace_headers,
)
from api.native.raw_queries import RawRecordQuery
from api.native.records import (
    AppendedOut,
    AppendedRecordOut,
    AppendedRecords,
    AppendRecords,
    AppendToShard,
    ChildOut,
    GapOut,
    PackedRecordOrBatch,
    PackedShardRecordOrBatch,
    ReadShard,
    ReadStream,
    RecordOrBatch,
    RecordOut,
    ShardRecordOrBatch,
    ShardRecords,
    Start,
    StreamRecords,
    condition_of,
    record_from_raw,
)
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.errors import (
    InvalidCursor,
    MillstreamError,
    StreamRecreated,
    ValidationFailed,
)
from storage.domain.log.record_batch import Record
from storage.domain.names import LogId
from storage.domain.streams.stream import Appended, Gap, ReadFrom, ShardRead, slowest
from storage.streams.seek import positions_since

fast_routes = FastRouter()

_records_body = partial(
    ItemsBody[Record], "records", items_max=limits.BATCH_RECORDS_MAX, raw=record_from_raw
)
_RECORDS = _records_body(
    documented=AppendRecords, json=RecordOrBatch, packed=PackedRecordOrBatch, has_raw_endpoint=True
)
_RAW_RECORD = BytesBody[Record](partial(record_from_raw, content_type_of=stated_content_type))
_SHARD_RECORDS = _records_body(
    documented=AppendToShard, json=ShardRecordOrBatch, packed=PackedShardRecordOrBatch
)
_APPENDED: Mapping[type[msgspec.Struct], int] = {AppendedRecords: 200, AppendedRecordOut: 201}


# ── Append ──


@fast_routes.post(
    "/v1/streams/{stream}/records",
    body=_RECORDS,
    answer=_APPENDED,
    action=Action.STREAM_PUT,
    idempotent=True,
)
async def append_records(call: Call[Items[Record]]) -> AppendedRecords | AppendedRecordOut:
    """Append records to a stream. The key of each record selects its shard.

    Each record has its own result: check `failed`. A single record can be sent as an object or as a raw body of any other
    content type; the response is then one object, or a problem.
    """
    records = await _incoming(call)
    results = await call.storage.streams.append(
        call.stream, records, idempotency_key=idempotency_key(call.headers)
    )
    return _appended_out(call, results)


@fast_routes.post(
    "/v1/streams/{stream}/records/raw",
    body=_RAW_RECORD,
    query=RawRecordQuery,
    answer={AppendedRecordOut: 201},
    action=Action.STREAM_PUT,
    idempotent=True,
)
async def append_raw_record(call: Call[Items[Record]]) -> AppendedRecordOut:
    """Append the request's body as a record, whatever its content type.

    For programs whose requests you cannot shape, such as webhooks of other services. The record has the request's content
    type; its other fields are in headers (`Millstream-Key`, `Millstream-Header-Name`, …) or in the query.
    """
    appended = await append_records(call)
    assert isinstance(appended, AppendedRecordOut)
    return appended


@fast_routes.post(
    "/v1/streams/{stream}/shards/{shard}/records",
    body=_SHARD_RECORDS,
    answer=_APPENDED,
    action=Action.STREAM_PUT,
)
async def append_records_to_shard(call: Call[Items[Record]]) -> AppendedRecords | AppendedRecordOut:
    """Append records to one shard: all of them or none.

    With `producer`, a repeated batch adds nothing. With `expected_offset`, the batch is accepted only if it is the next
    offset of the shard. With `fence`, it is accepted only if that is the fencing token of the shard.
    """
    records = await _incoming(call)
    condition = condition_of(call.body.around)
    results = await call.storage.streams.append_to_shard(
        call.stream, call.shard, records, condition
    )
    return _appended_out(call, results)


async def _incoming(call: Call[Items[Record]]) -> list[Record]:
    callers = trace_headers(call.headers)
    records = with_callers_trace(call.body.values, callers)
    if call.trace is not None:
        call.trace.add_links(contexts_of_records(call.body.values), len(records))
        if not callers:
            stream = await call.storage.catalog.stream(call.stream)
            records = records_with_span_context(records, call.trace, stream.spec.record_bytes_max)
    call.metrics.received(len(records), total_bytes([record.data for record in records]))
    return records


def _appended_out(
    call: Call[Items[Record]], results: Sequence[Appended | MillstreamError]
) -> AppendedRecords | AppendedRecordOut:
    """Return the response. Raises the error of a record that was sent alone."""
    failed = call.metrics.written(results)
    if not call.body.single:
        return AppendedRecords([AppendedOut.from_domain(result) for result in results], failed)
    [only] = results
    if isinstance(only, MillstreamError):
        raise only
    return AppendedRecordOut(only.shard, only.offset, only.duplicate)


# ── Read one shard ──


@fast_routes.get("/v1/streams/{stream}/shards/{shard}/records", action=Action.STREAM_READ)
async def read_shard(call: Call[ReadShard]) -> ShardRecords:
    """Read a shard in order, from an offset, from a time, or its last records.

    Continue at `next_offset` until the shard has `ended`; its `children` follow. Expired records and holes are reported
    as a `gap`. With `wait_seconds`, the call waits at the end of the shard for the next record.
    """
    query = call.query
    read = await call.storage.record_reader.read_shard(
        call.stream,
        call.shard,
        _start_of(query),
        records_max=query.limit,
        bytes_max=query.bytes_max,
        wait_ms=to_ms(query.wait_seconds),
        stream_id=query.stream_id,
    )
    call.metrics.read(len(read.records))
    if call.trace is not None:
        made = contexts_of_records(at.record for at in read.records)
        call.trace.add_links(made, len(read.records))
    return _shard_records(read, binary=answer_type(call.headers) == MSGPACK)


def _start_of(query: ReadShard) -> ReadFrom:
    if sum([query.offset is not None, query.time is not None, query.tail is not None]) > 1:
        raise ValidationFailed.at(
            "/offset", "Specify only one of 'offset', 'time' and 'tail'", "conflict"
        )
    if query.time is not None:
        return ReadFrom(time_ms=moment_ms(query.time))
    if query.tail is not None:
        return ReadFrom(tail=query.tail)
    if query.offset is not None:
        return ReadFrom(offset=query.offset)
    return ReadFrom(time_ms=0)


def _shard_records(read: ShardRead, binary: bool) -> ShardRecords:
    return ShardRecords(
        records=[RecordOut.from_domain(record, binary) for record in read.records],
        stream_id=read.stream_id,
        next_offset=read.next_offset,
        start=read.start,
        tip=read.tip,
        behind_seconds=to_seconds(read.behind_ms),
        tier=read.tier,
        ended=read.ended,
        gap=msgspec.UNSET if read.gap is None else _gap_out(read.gap),
        children=_children_out(read),
    )


def _children_out(read: ShardRead) -> list[ChildOut] | msgspec.UnsetType:
    if not read.ended:
        return msgspec.UNSET
    return [ChildOut.from_domain(child) for child in read.children]


def _gap_out(gap: Gap, shard: int | msgspec.UnsetType = msgspec.UNSET) -> GapOut:
    return GapOut(shard=shard, first=gap.first, next=gap.next, reason=gap.reason)


# ── Read all shards ──


@fast_routes.get("/v1/streams/{stream}/records", action=Action.STREAM_READ)
async def read_stream(call: Call[ReadStream]) -> StreamRecords:
    """Read all shards of a stream by arrival time; each shard in order, after its parents.

    Continue at `next_cursor`, which is also returned if no records were found. Without a cursor, the read starts at the
    oldest record, with `from=latest` at new records only, or at a `time`.
    """
    query = call.query
    stream_id, positions = await _positions(call)
    try:
        read = await call.storage.record_reader.read(
            call.stream,
            positions,
            records_max=query.limit,
            bytes_max=query.bytes_max,
            wait_ms=to_ms(query.wait_seconds),
            stream_id=stream_id,
        )
    except StreamRecreated:
        raise InvalidCursor("The cursor belongs to a deleted stream.") from None
    call.metrics.read(sum([len(shard.records) for shard in read.shards]))
    if call.trace is not None:
        records = [at.record for shard in read.shards for at in shard.records]
        call.trace.add_links(contexts_of_records(records), len(records))
    cursor = encode_records_cursor(read.stream_id, read.positions)
    return _stream_records(read.shards, cursor, binary=answer_type(call.headers) == MSGPACK)


async def _positions(call: Call[ReadStream]) -> tuple[LogId | None, Mapping[int, int]]:
    """Return the requested next offset of each shard, and the stream that a cursor belongs to.

    Raises InvalidCursor, ValidationFailed.
    """
    query = call.query
    if query.time is not None:
        if query.cursor:
            raise ValidationFailed.at(
                "/time", "Specify only one of 'cursor' and 'time'", "conflict"
            )
        storage = call.storage
        time_ms = moment_ms(query.time)
        return None, await positions_since(
            storage.record_reader, storage.catalog, call.stream, time_ms
        )
    if query.cursor:
        return decode_records_cursor(query.cursor)
    if query.start is Start.LATEST:
        shards = await call.storage.record_reader.shards(call.stream)
        return None, {state.shard.index: state.next for state in shards if state.shard.is_open}
    return None, {}


def _stream_records(reads: Sequence[ShardRead], cursor: str, binary: bool) -> StreamRecords:
    return StreamRecords(
        records=_by_arrival(reads, binary),
        next_cursor=cursor,
        behind_seconds=to_seconds(max([read.behind_ms for read in reads], default=0)),
        tier=slowest(reads),
        gaps=[_gap_out(read.gap, read.shard) for read in reads if read.gap is not None],
    )


def _by_arrival(reads: Iterable[ShardRead], binary: bool) -> list[RecordOut]:
    """Sort records by arrival; each shard keeps its order.

    Arrival times of a shard never decrease and the sort is stable.
    """
    records = [(read.shard, record) for read in reads for record in read.records]
    records.sort(key=lambda pair: pair[1].arrival_ms)
    return [RecordOut.from_domain(record, binary, shard) for shard, record in records]


# Examples of the OpenAPI document

_CURSOR = "kpSmcXVldWVzp2RlZmF1bHSgpm9yZGVycw"

EXAMPLES = {
    "append_records": Example(
        "/v1/streams/clicks/records",
        {"records": [{"data": {"page": "/"}, "key": "user-1"}]},
        200,
        {"records": [{"shard": 0, "offset": 0, "duplicate": False}], "failed": 0},
        repeat=Repeat.KEYED,
    ),
    "append_raw_record": Example(
        "/v1/streams/hooks/records/raw?key=user-1",
        {"page": "/cart"},
        201,
        {"shard": 0, "offset": 0, "duplicate": False},
        before=(("PUT", "/v1/streams/hooks", {}),),
        repeat=Repeat.KEYED,
    ),
    "append_records_to_shard": Example(
        "/v1/streams/clicks/shards/0/records",
        {
            "records": [{"data": "hello", "key": "user-1"}],
            "producer": {"id": "importer", "epoch": 0, "sequence": 0},
        },
        200,
        {"records": [{"shard": 0, "offset": 1, "duplicate": False}], "failed": 0},
        guards=("producer", "expected_offset"),
    ),
    "read_shard": Example(
        "/v1/streams/clicks/shards/0/records?offset=0&limit=100",
        answer={
            "records": [RECORD],
            "stream_id": STREAM_ID,
            "next_offset": 1,
            "start": 0,
            "tip": 2,
            "behind_seconds": 0.5,
            "tier": "hot",
            "ended": False,
        },
    ),
    "read_stream": Example(
        "/v1/streams/clicks/records?from=earliest",
        answer={
            "records": [{"shard": 0, **RECORD}],
            "next_cursor": _CURSOR,
            "behind_seconds": 0,
            "tier": "hot",
            "gaps": [],
        },
    ),
}
