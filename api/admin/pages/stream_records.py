"""Browsing a stream: its records from anywhere on, one of them looked into, and those that come."""

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
    """What an address says of where to look, and for what; `cursor`: where a page goes on, in place of `begin`."""

    begin: From
    shard: int | None
    offset: int
    time: str
    key: str
    text: str
    cursor: str

    @property
    def kept(self) -> dict[str, Any]:
        """What links to the same view carry along."""
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
    """The address, read."""
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
    """A record that is looked into."""

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
    asked: AskedDep,
    see: Annotated[str, Query(pattern="^([0-9]{1,9}:[0-9]{1,16})?$")] = "",
    form: Words = "",
) -> Response:
    """Records of a stream, and what one of them says."""
    stored = await storage.catalog.fresh_stream(stream)
    found, trouble = _NOTHING, ""
    if asked.begin is not From.LIVE:
        try:
            found = await _found(storage, stored, asked)
        except MillstreamError as error:
            trouble = str(error)
    newest_first = asked.begin is From.LATEST and not asked.cursor
    return render(
        request,
        "stream/browse.html",
        stream=stored,
        name=stream.name,
        tabs=tabs(stored),
        here="browse",
        asked=asked,
        kept=asked.kept,
        lines=[_line(one) for one in (found.records[::-1] if newest_first else found.records)],
        newest_first=newest_first,
        found=found,
        after=_after(stored, asked, found),
        older=_older(asked, found),
        trouble=trouble,
        see=see,
        seen=await _seen(storage, stream, see, form) if see else None,
    )


@router.get("/records.ndjson", dependencies=[READ])
async def export(stream: StreamPath, storage: StorageDep, asked: AskedDep) -> Response:
    """The records of a view from its beginning on, a line of JSON each, as a file."""
    stored = await storage.catalog.fresh_stream(stream)
    found = await _found(storage, stored, asked, rows=EXPORTED_RECORDS_MAX)
    lines = [
        msgspec.json.encode(RecordOut.from_domain(one.record, False, one.shard))
        for one in found.records
    ]
    body = b"".join(line + b"\n" for line in lines)
    return as_file(body, f"{stream.name}.ndjson")


@router.get("/shards/{shard}/records/{offset}/body", dependencies=[READ])
async def download(stream: StreamPath, shard: int, offset: int, storage: StorageDep) -> Response:
    """A record's body as it is, which no browser takes for anything but a file."""
    at = await _record(storage, stream, shard, offset)
    return as_file(at.record.data, f"{stream.name}-{shard}-{offset}.bin")


async def _found(storage: Storage, stream: Stream, asked: Asked, rows: int = ROWS) -> Found:
    """Raises ValidationFailed, InvalidCursor, and what reading does."""
    shard = asked.shard
    if asked.begin is From.KEY and shard is None:
        [taking] = stream.open_shards_for([asked.key])
        shard = taking.index
    if shard is not None:
        stream.shard(shard)
    if asked.begin is From.OFFSET and shard is None:
        raise ValidationFailed.at("/shard", "Select a shard for the offset", "required")
    wanted = wants(asked.text, asked.key)
    if asked.cursor:
        positions = decode_cursor(asked.cursor, _about(stream), dict[int, int])
        place = Place(positions, shard)
    else:
        place = await place_at(
            storage,
            stream,
            asked.begin,
            shard,
            offset=asked.offset,
            time_ms=moment(asked.time) if asked.time else 0,
            back=rows if wanted is None else SEARCHED_BACK,
        )
    return await look(storage, stream.name, place, wanted, rows)


def _about(stream: Stream) -> tuple[str, str]:
    return ("records", stream.stream_id)


def _after(stream: Stream, asked: Asked, found: Found) -> dict[str, Any] | None:
    """What the link to the next page says."""
    if found.after is None:
        return None
    return asked.kept | {"cursor": encode_cursor(_about(stream), found.after)}


def _older(asked: Asked, found: Found) -> dict[str, Any] | None:
    """What the link to the page before says, in one shard that is not searched."""
    if asked.shard is None or not found.records or asked.text or asked.key:
        return None
    first = found.records[0].record.offset
    if not first:
        return None
    return {"at": From.OFFSET.value, "shard": asked.shard, "offset": max(0, first - ROWS) or None}


def _line(one: At) -> Line:
    record = one.record.record
    return Line(
        one.shard,
        one.record.offset,
        one.record.arrival_ms,
        spelled_out(record.key),
        len(record.data),
        len(own_headers(record.headers)[0]),
        spelled_out(summary(record.data)),
    )


async def _seen(storage: Storage, name: StreamName, see: str, form: str) -> Seen | None:
    shard, offset = map(int, see.split(":"))
    try:
        at = await _record(storage, name, shard, offset)
    except MillstreamError:
        return None
    record = at.record
    headers = [(spelled_out(key), spelled_out(_text(value))) for key, _, value in record.headers]
    return Seen(shard, at, shown(record.data, form), spelled_out(record.key), headers)


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
