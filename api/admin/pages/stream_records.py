"""Stream browser: records from any position, one record in detail, and a live view."""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
from fastapi import APIRouter, Depends, Query, Request, Response

from api.admin.body_preview import Shown, shown, spelled_out, summary
from api.admin.error_pages import PageRoute
from api.admin.lists import Words
from api.admin.pages.stream import tabs
from api.admin.record_browser import ROWS, At, Found, From, Place, look, moment, place_at, wants
from api.admin.rendering import as_file, render
from api.native.cursors import decode_cursor, encode_cursor
from api.native.dependencies import StorageDep, StreamPath, may
from api.native.records import RecordOut
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.errors import MillstreamError, RecordNotFound, ValidationFailed
from storage.domain.names import StreamName
from storage.domain.replays.replay import own_headers
from storage.domain.streams.stream import LogRecord, ReadFrom, Stream, Tier

router = APIRouter(include_in_schema=False, route_class=PageRoute, prefix="/ui/streams/{stream}")

READ = Depends(may(Action.STREAM_READ))
EXPORTED_RECORDS_MAX = 10_000
SEARCHED_BACK = 1_000
_NOTHING = Found([], None, 0, [], Tier.HOT)
Offset = Annotated[int, Query(ge=0, le=limits.OFFSET_MAX)]
Shard = Annotated[str, Query(pattern="^[0-9]{0,9}$")]


class Asked(NamedTuple):
    """Query of the stream browser, from the URL.

    `cursor`: the position where a page continues, in place of `begin`.
    """

    begin: From
    shard: int | None
    offset: int
    time: str
    key: str
    text: str
    cursor: str

    @property
    def kept(self) -> dict[str, Any]:
        """Parameters for links to the same view."""
        return {
            "at": self.begin.value,
            "shard": self.shard,
            "offset": self.offset or None,
            "time": self.time,
            "key": self.key,
            "q": self.text,
            "cursor": self.cursor,
        }


def asked_from(
    at: From = From.LATEST,
    shard: Shard = "",
    offset: Offset = 0,
    time: Words = "",
    key: Annotated[str, Query(max_length=limits.KEY_CHARACTERS_MAX)] = "",
    q: Words = "",
    cursor: Annotated[str, Query(max_length=8_000)] = "",
) -> Asked:
    """Parse the URL's parameters."""
    return Asked(at, int(shard) if shard else None, offset, time, key, q, cursor)


AskedDep = Annotated[Asked, Depends(asked_from)]


class Line(NamedTuple):
    """A record as the table shows it."""

    shard: int
    offset: int
    arrival_ms: int
    key: str
    size_bytes: int
    headers: int
    summary: str


class Seen(NamedTuple):
    """Record shown in detail."""

    shard: int
    at: LogRecord
    body: Shown
    key: str
    headers: Sequence[tuple[str, str]]


@router.get("/browse", dependencies=[READ])
async def browse(
    request: Request,
    stream: StreamPath,
    storage: StorageDep,
    query: AskedDep,
    see: Annotated[str, Query(pattern="^([0-9]{1,9}:[0-9]{1,16})?$")] = "",
    form: Words = "",
) -> Response:
    """Show records of a stream, and one of them in detail."""
    stored = await storage.catalog.fresh_stream(stream)
    page, trouble = _NOTHING, ""
    if query.begin is not From.LIVE:
        try:
            page = await _found(storage, stored, query)
        except MillstreamError as error:
            trouble = str(error)
    newest_first = query.begin is From.LATEST and not query.cursor
    return render(
        request,
        "stream/browse.html",
        stream=stored,
        name=stream.name,
        tabs=tabs(stored),
        here="browse",
        asked=query,
        kept=query.kept,
        lines=[_line(one) for one in (page.records[::-1] if newest_first else page.records)],
        newest_first=newest_first,
        found=page,
        after=_after(stored, query, page),
        older=_older(query, page),
        trouble=trouble,
        see=see,
        seen=await _seen(storage, stream, see, form) if see else None,
    )


@router.get("/records.ndjson", dependencies=[READ])
async def export(stream: StreamPath, storage: StorageDep, query: AskedDep) -> Response:
    """Download the records of a view from its start, as NDJSON."""
    stored = await storage.catalog.fresh_stream(stream)
    page = await _found(storage, stored, query, rows=EXPORTED_RECORDS_MAX)
    lines = [
        msgspec.json.encode(RecordOut.from_domain(one.record, False, one.shard))
        for one in page.records
    ]
    body = b"".join(line + b"\n" for line in lines)
    return as_file(body, f"{stream.name}.ndjson")


@router.get("/shards/{shard}/records/{offset}/body", dependencies=[READ])
async def download(stream: StreamPath, shard: int, offset: int, storage: StorageDep) -> Response:
    """Download a record's raw body, with headers that keep browsers from showing it."""
    record = await _record(storage, stream, shard, offset)
    return as_file(record.record.data, f"{stream.name}-{shard}-{offset}.bin")


async def _found(storage: Storage, stream: Stream, query: Asked, rows: int = ROWS) -> Found:
    """Return the records of the query.

    Raises ValidationFailed, InvalidCursor, and the errors of reads.
    """
    shard = query.shard
    if query.begin is From.KEY and shard is None:
        [taking] = stream.open_shards_for([query.key])
        shard = taking.index
    if shard is not None:
        stream.shard(shard)
    if query.begin is From.OFFSET and shard is None:
        raise ValidationFailed.at("/shard", "Select a shard for the offset", "required")
    predicate = wants(query.text, query.key)
    if query.cursor:
        positions = decode_cursor(query.cursor, _about(stream), dict[int, int])
        place = Place(positions, shard)
    else:
        place = await place_at(
            storage,
            stream,
            query.begin,
            shard,
            offset=query.offset,
            time_ms=moment(query.time) if query.time else 0,
            back=rows if predicate is None else SEARCHED_BACK,
        )
    return await look(storage, stream.name, place, predicate, rows)


def _about(stream: Stream) -> tuple[str, str]:
    return ("records", stream.stream_id)


def _after(stream: Stream, query: Asked, page: Found) -> dict[str, Any] | None:
    """Return the parameters of the link to the next page."""
    if page.after is None:
        return None
    return query.kept | {"cursor": encode_cursor(_about(stream), page.after)}


def _older(query: Asked, page: Found) -> dict[str, Any] | None:
    """Return the parameters of the link to the previous page, in one shard without a search."""
    if query.shard is None or not page.records or query.text or query.key:
        return None
    first = page.records[0].record.offset
    if not first:
        return None
    return {"at": From.OFFSET.value, "shard": query.shard, "offset": max(0, first - ROWS) or None}


def _line(entry: At) -> Line:
    record = entry.record.record
    return Line(
        entry.shard,
        entry.record.offset,
        entry.record.arrival_ms,
        spelled_out(record.key),
        len(record.data),
        len(own_headers(record.headers)[0]),
        spelled_out(summary(record.data)),
    )


async def _seen(storage: Storage, name: StreamName, see: str, form: str) -> Seen | None:
    shard, offset = map(int, see.split(":"))
    try:
        entry = await _record(storage, name, shard, offset)
    except MillstreamError:
        return None
    record = entry.record
    headers = [(spelled_out(key), spelled_out(_text(value))) for key, _, value in record.headers]
    return Seen(shard, entry, shown(record.data, form), spelled_out(record.key), headers)


async def _record(storage: Storage, name: StreamName, shard: int, offset: int) -> LogRecord:
    """Raises RecordNotFound, and what reading a shard does."""
    where = ReadFrom(offset=offset)
    read = await storage.streams.read_shard(name, shard, where, records_max=1)
    if not read.records or read.records[0].offset != offset:
        raise RecordNotFound(f"Record {offset} of shard {shard} does not exist.")
    return read.records[0]


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.hex(" ")
