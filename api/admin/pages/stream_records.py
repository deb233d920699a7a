"""Stream browser: records from any position, one record in detail, and a live view."""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
from fastapi import APIRouter, Depends, Query, Response

from api.admin.browsing.body_preview import BodyPreview, escape_misleading, preview, summary
from api.admin.browsing.field_columns import field_columns
from api.admin.browsing.message_query import Columns, Terms, parse_time_ms, present_terms
from api.admin.browsing.record_browser import (
    ROWS,
    BrowsedPage,
    BrowsePosition,
    BrowseStart,
    ShardRecord,
    position_of,
    predicate_of,
    scan_records,
)
from api.admin.error_pages import PageRoute
from api.admin.lists import Words
from api.admin.pages._shared import stream_page, visible_deliveries
from api.admin.rendering import Context, as_file
from api.native.cursors import decode_cursor, encode_cursor
from api.native.dependencies import StorageDep, StreamPath, may
from api.native.records import RecordOut
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.errors import MillstreamError, RecordNotFound, ValidationFailed
from storage.domain.names import StreamName
from storage.domain.replays.replay import own_headers
from storage.domain.streams.record_filter import Filter
from storage.domain.streams.stream import LogRecord, ReadFrom, Stream, Tier
from storage.domain.webhooks import WebhookDelivery

router = APIRouter(include_in_schema=False, route_class=PageRoute, prefix="/ui/streams/{stream}")

READ = Depends(may(Action.STREAM_READ))
EXPORTED_RECORDS_MAX = 10_000
SEARCHED_BACK = 1_000
_NOTHING = BrowsedPage([], None, 0, [], Tier.HOT)
Offset = Annotated[int, Query(ge=0, le=limits.OFFSET_MAX)]
Shard = Annotated[str, Query(pattern="^[0-9]{0,9}$")]


class RecordQuery(NamedTuple):
    """Query of the stream browser, from the URL.

    `cursor`: the position where a page continues, in place of `begin`.
    """

    begin: BrowseStart
    shard: int | None
    offset: int
    time: str
    key: str
    text: str
    headers: tuple[str, ...]
    body: tuple[str, ...]
    columns: str
    cursor: str

    @property
    def link_parameters(self) -> dict[str, Any]:
        """Parameters for links to the same view."""
        return {
            "at": self.begin.value,
            "shard": self.shard,
            "offset": self.offset or None,
            "time": self.time,
            "key": self.key,
            "q": self.text,
            "header": self.headers,
            "body": self.body,
            "columns": self.columns,
            "cursor": self.cursor,
        }

    @property
    def has_conditions(self) -> bool:
        """True if the fields that are folded away restrict the records."""
        return bool(self.headers or self.body)

    @property
    def is_search(self) -> bool:
        """True if records are selected, not only the start."""
        return bool(self.text or self.key or self.has_conditions)


def parse_query(
    begin: Annotated[BrowseStart, Query(alias="at")] = BrowseStart.LATEST,
    shard: Shard = "",
    offset: Offset = 0,
    time: Words = "",
    key: Annotated[str, Query(max_length=limits.KEY_CHARACTERS_MAX)] = "",
    q: Words = "",
    header: Terms = [],  # noqa: B006
    body: Terms = [],  # noqa: B006
    columns: Columns = "",
    cursor: Annotated[str, Query(max_length=8_000)] = "",
) -> RecordQuery:
    """Parse the URL's parameters."""
    index = int(shard) if shard else None
    headers, conditions = present_terms(header), present_terms(body)
    return RecordQuery(begin, index, offset, time, key, q, headers, conditions, columns, cursor)


RecordQueryDep = Annotated[RecordQuery, Depends(parse_query)]


class Line(NamedTuple):
    """A record as the table shows it."""

    shard: int
    offset: int
    arrival_ms: int
    key: str
    size_bytes: int
    headers: int
    summary: str


class RecordDetail(NamedTuple):
    """Record shown in detail."""

    shard: int
    record: LogRecord
    body: BodyPreview
    key: str
    headers: Sequence[tuple[str, str]]


@router.get("/browse", dependencies=[READ])
async def browse(
    context: Context,
    stream: StreamPath,
    query: RecordQueryDep,
    see: Annotated[str, Query(pattern="^([0-9]{1,9}:[0-9]{1,16})?$")] = "",
    form: Words = "",
) -> Response:
    """Show records of a stream, and one of them in detail."""
    storage = context.storage
    stored = await storage.catalog.fresh_stream(stream)
    page, trouble = _NOTHING, ""
    if query.begin is not BrowseStart.LIVE:
        try:
            page = await _read_page(storage, stored, query)
        except MillstreamError as error:
            trouble = str(error)
            if isinstance(error, ValidationFailed):
                trouble = "; ".join(fault.detail for fault in error.faults)
    newest_first = query.begin is BrowseStart.LATEST and not query.cursor
    records = page.records[::-1] if newest_first else page.records
    return stream_page(
        context,
        "browse",
        stored,
        live=False,
        query=query,
        link_parameters=query.link_parameters,
        lines=[_line(one) for one in records],
        fields=field_columns(query.columns, [one.record.record.data for one in records]),
        newest_first=newest_first,
        page=page,
        after=_after(stored, query, page),
        older=_older(query, page),
        trouble=trouble,
        see=see,
        seen=await _record_detail(storage, stream, see, form) if see else None,
        deliveries=await _deliveries(context, stored, see) if see else [],
    )


async def _deliveries(
    context: Context, stream: Stream, see: str
) -> list[tuple[str, WebhookDelivery]]:
    shard, offset = map(int, see.split(":"))
    deliveries = await context.storage.deliveries.of_record(stream, shard, offset)
    return visible_deliveries(context, deliveries)


@router.get("/records.ndjson", dependencies=[READ])
async def export(stream: StreamPath, storage: StorageDep, query: RecordQueryDep) -> Response:
    """Download the records of a view from its start, as NDJSON."""
    stored = await storage.catalog.fresh_stream(stream)
    page = await _read_page(storage, stored, query, rows=EXPORTED_RECORDS_MAX)
    lines = [
        msgspec.json.encode(RecordOut.from_domain(one.record, False, one.shard))
        for one in page.records
    ]
    body = b"".join(line + b"\n" for line in lines)
    return as_file(body, f"{stream.name}.ndjson")


@router.get("/shards/{shard}/records/{offset}/preview", dependencies=[READ])
async def show_preview(context: Context, stream: StreamPath, shard: int, offset: int) -> Response:
    """Return a fragment with the body and the headers of a record."""
    entry = await _record(context.storage, stream, shard, offset)
    return context.render("stream/preview.html", seen=_detail(shard, entry))


@router.get("/shards/{shard}/records/{offset}/body", dependencies=[READ])
async def download(stream: StreamPath, shard: int, offset: int, storage: StorageDep) -> Response:
    """Download a record's raw body, with headers that keep browsers from showing it."""
    record = await _record(storage, stream, shard, offset)
    return as_file(record.record.data, f"{stream.name}-{shard}-{offset}.bin")


async def _read_page(
    storage: Storage, stream: Stream, query: RecordQuery, rows: int = ROWS
) -> BrowsedPage:
    """Return the records of the query.

    Raises ValidationFailed, InvalidCursor, and the errors of reads.
    """
    shard = query.shard
    if query.begin is BrowseStart.KEY and shard is None:
        [taking] = stream.open_shards_for([query.key])
        shard = taking.index
    if shard is not None:
        stream.shard(shard)
    if query.begin is BrowseStart.OFFSET and shard is None:
        raise ValidationFailed.at("/shard", "Select a shard for the offset", "required")
    keys = (query.key,) if query.key else ()
    predicate = predicate_of(query.text, Filter.of_terms(keys, query.headers, query.body))
    if query.cursor:
        positions = decode_cursor(query.cursor, _about(stream), dict[int, int])
        start = BrowsePosition(positions, shard)
    else:
        start = await position_of(
            storage,
            stream,
            query.begin,
            shard,
            offset=query.offset,
            time_ms=parse_time_ms(query.time) or 0,
            back=rows if predicate is None else SEARCHED_BACK,
        )
    return await scan_records(storage, stream, start, predicate, rows)


def _about(stream: Stream) -> tuple[str, str]:
    return ("records", stream.stream_id)


def _after(stream: Stream, query: RecordQuery, page: BrowsedPage) -> dict[str, Any] | None:
    """Return the parameters of the link to the next page."""
    if page.after is None:
        return None
    return query.link_parameters | {"cursor": encode_cursor(_about(stream), page.after)}


def _older(query: RecordQuery, page: BrowsedPage) -> dict[str, Any] | None:
    """Return the parameters of the link to the previous page, in one shard without a search."""
    if query.shard is None or not page.records or query.is_search:
        return None
    first = page.records[0].record.offset
    if not first:
        return None
    return {
        "at": BrowseStart.OFFSET.value,
        "shard": query.shard,
        "offset": max(0, first - ROWS) or None,
        "columns": query.columns,
    }


def _line(entry: ShardRecord) -> Line:
    record = entry.record.record
    return Line(
        entry.shard,
        entry.record.offset,
        entry.record.arrival_ms,
        escape_misleading(record.key),
        len(record.data),
        len(own_headers(record.headers)[0]),
        escape_misleading(summary(record.data)),
    )


async def _record_detail(
    storage: Storage, name: StreamName, see: str, form: str
) -> RecordDetail | None:
    shard, offset = map(int, see.split(":"))
    try:
        entry = await _record(storage, name, shard, offset)
    except MillstreamError:
        return None
    return _detail(shard, entry, form)


def _detail(shard: int, entry: LogRecord, form: str = "") -> RecordDetail:
    record = entry.record
    headers = [
        (escape_misleading(key), escape_misleading(_text(value)))
        for key, _, value in record.headers
    ]
    return RecordDetail(
        shard, entry, preview(record.data, form), escape_misleading(record.key), headers
    )


async def _record(storage: Storage, name: StreamName, shard: int, offset: int) -> LogRecord:
    """Return a record.

    Raises RecordNotFound, and the errors of shard reads.
    """
    where = ReadFrom(offset=offset)
    read = await storage.record_reader.read_shard(name, shard, where, records_max=1)
    if not read.records or read.records[0].offset != offset:
        raise RecordNotFound(f"Record {offset} of shard {shard} does not exist.")
    return read.records[0]


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.hex(" ")
