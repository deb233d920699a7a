"""Columnar appends of many records."""

import msgspec
from msgspec import UNSET, UnsetType

from api.http.request import Call
from api.http.routing import FastRouter
from api.native.examples import Example, Repeat
from api.native.fields import idempotency_key, total_bytes
from api.native.problems import ItemError, item_error
from api.observability.metric_buffers import count_rejected
from storage.domain.access.permissions import Action
from storage.domain.streams.columnar_batch import Columns
from storage.domain.streams.stream import AppendedRange

fast_routes = FastRouter()


class AppendColumns(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """Bodies, and one partition key per body or none.

    Bodies are base64 in JSON and bin in MessagePack.
    """

    data: list[bytes]
    keys: list[str] = []


class AppendedRangeOut(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The offsets of consecutive records, starting at `offset`, or the error for them.

    `records` are their indexes in the call; if omitted, the range covers all records of the call.
    """

    shard: int | UnsetType = UNSET
    offset: int | UnsetType = UNSET
    duplicate: bool = False
    error: ItemError | UnsetType = UNSET
    records: list[int] | UnsetType = UNSET


class AppendedColumns(msgspec.Struct):
    """Ranges of records, and the number of rejected records."""

    ranges: list[AppendedRangeOut]
    failed: int


@fast_routes.post(
    "/v1/streams/{stream}/columns",
    action=Action.STREAM_PUT,
    sends=lambda columns: len(columns.data),
    idempotent=True,
)
async def append_columns(call: Call[AppendColumns]) -> AppendedColumns:
    """Append many records, column by column.

    The most efficient way to append, in MessagePack. The records are the same as those of other appends, without headers
    and event times. Check `failed`: records can be rejected individually.
    """
    columns = _extract_columns(call.body)
    count = len(columns)
    call.metrics.received(count, total_bytes(columns.data))
    key = idempotency_key(call.headers)
    appending = call.storage.streams.append_columns(call.stream, columns, idempotency_key=key)
    del columns  # which it packs
    ranges = await appending
    failed = duplicates = 0
    for appended in ranges:
        if appended.error is not None:
            count_rejected(appended.error.code)
            failed += len(appended.numbers)
        elif appended.duplicate:
            duplicates += len(appended.numbers)
    call.metrics.confirmed(count - failed, duplicates)
    return AppendedColumns([_range_out(appended, count) for appended in ranges], failed)


def _extract_columns(body: AppendColumns) -> Columns:
    """Return the columns and release them from the call."""
    columns = Columns(body.data, body.keys)
    body.data, body.keys = [], []
    return columns


def _range_out(appended: AppendedRange, count: int) -> AppendedRangeOut:
    numbers = UNSET if len(appended.numbers) == count else [*appended.numbers]
    if appended.error is not None:
        return AppendedRangeOut(error=item_error(appended.error), records=numbers)
    return AppendedRangeOut(appended.shard, appended.offset, appended.duplicate, records=numbers)


# Examples of the OpenAPI document

EXAMPLES = {
    "append_columns": Example(
        "/v1/streams/clicks/columns",
        {"data": ["b25l", "dHdv"], "keys": ["user-7", "user-7"]},
        answer={"ranges": [{"shard": 0, "offset": 3}], "failed": 0},
        repeat=Repeat.KEYED,
    ),
}
