"""Rows of views."""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import msgspec
from fastapi import APIRouter, Depends, Query, Response

from api.native.audited_route import AuditedRoute
from api.native.cursors import decode_cursor, encode_cursor
from api.native.dependencies import Cursor, Limit, PrincipalDep, StorageDep, ViewPath, may
from api.native.examples import AT, LATER, Example
from api.native.fields import moment_ms, to_ms
from api.native.records import GapOut, RecordOut
from api.rest.schema_base import Moment
from api.rest.schemas.view_rows import ViewAsOf, ViewRowsOut, ViewSourcesOut
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.errors import InvalidCursor, ValidationFailed
from storage.domain.names import StreamName, ViewName
from storage.domain.views.rows import IncludedRecord, RowPage, RowQuery
from storage.domain.views.source_search import RecordLocation
from storage.views.sources import RowSources

router = APIRouter(prefix="/v1/views", tags=["views"], route_class=AuditedRoute)

_OTHER_QUERY = "The cursor is of an earlier revision of the view; read from the first page."
_AFTER = re.compile(r"(?:([a-z_][a-z0-9_]{0,63}):)?([0-9]{1,9}):([0-9]{1,16})", re.ASCII)


class RowOrder(StrEnum):
    """Order of rows by their keys."""

    ASC = "asc"
    DESC = "desc"


Key = Annotated[
    list[str] | None,
    Query(
        description="Only rows with this value of the first column of the key; repeat for the next columns. A window as a whole is given by its start.",
        max_length=limits.VIEW_OUTPUT_COLUMNS_MAX,
    ),
]
KeyPrefix = Annotated[
    str,
    Query(
        description="Only rows whose next column of the key, a text, begins with this.",
        max_length=limits.VIEW_KEY_BYTES_MAX,
    ),
]
WindowFrom = Annotated[
    Moment | None, Query(description="Only rows whose window ends after this time.")
]
WindowTo = Annotated[
    Moment | None, Query(description="Only rows whose window begins before this time.")
]
Newest = Annotated[bool, Query(description="Only the newest window of each key.")]
Order = Annotated[RowOrder, Query(description="Order by key.")]
After = Annotated[
    str,
    Query(
        description="`shard:offset` of a record, as an append returns them: wait until the rows include it, up to `wait_seconds`; otherwise "
        "the response is 503 `view_behind`. For a view that joins two streams `name:shard:offset`, with the name in the query."
    ),
]
AtTime = Annotated[
    Moment | None,
    Query(
        alias="at",
        description="The rows as they were at this time, for a view with `history_seconds`. All pages are of the same batch.",
    ),
]
AtBatch = Annotated[
    int | None,
    Query(
        ge=0,
        le=limits.OFFSET_MAX,
        description="The rows as they were after this batch of the present revision.",
    ),
]
WaitSeconds = Annotated[float, Query(ge=0, le=limits.VIEW_WAIT_MS / limits.SECOND_MS)]


@router.get(
    "/{view}/rows", dependencies=[Depends(may(Action.VIEW_READ))], response_model=ViewRowsOut
)
async def read_view_rows(
    *,
    view: ViewPath,
    storage: StorageDep,
    key: Key = None,
    prefix: KeyPrefix = "",
    window_from: WindowFrom = None,
    window_to: WindowTo = None,
    latest: Newest = False,
    order: Order = RowOrder.ASC,
    limit: Limit = limits.PAGE_ITEMS_DEFAULT,
    cursor: Cursor = "",
    after: After = "",
    wait_seconds: WaitSeconds = 0,
    at_time: AtTime = None,
    at_batch: AtBatch = None,
) -> Response:
    """Read rows of a view, in the order of their keys.

    All rows of a page belong to one batch, which `as_of` describes; the next page may belong to a later one,
    unless the rows are read `at` a time. Numbers that JSON cannot
    hold exactly, such as decimals, are returned as the query computed them.
    """
    query = RowQuery(
        key=tuple(key or ()),
        prefix=prefix,
        window_from_ms=None if window_from is None else moment_ms(window_from),
        window_to_ms=None if window_to is None else moment_ms(window_to),
        latest=latest,
        descending=order is RowOrder.DESC,
        limit=limit,
        includes=_record_of(after) if after else None,
        wait_ms=to_ms(wait_seconds),
        at_ms=None if at_time is None else moment_ms(at_time),
        at_batch=at_batch,
    )
    about = _subject_of(view, query)
    if not cursor:
        page = await storage.view_rows.read(view, query)
    else:
        revision_id, after_key, batch = decode_cursor(cursor, about, tuple[str, bytes, int | None])
        query = msgspec.structs.replace(query, after_key=after_key)
        if batch is not None:
            query = msgspec.structs.replace(query, at_ms=None, at_batch=batch)
        page = await storage.view_rows.read(view, query)
        if page.revision.revision_id != revision_id:
            raise InvalidCursor(_OTHER_QUERY)
    return Response(_body(page, query, about), media_type="application/json")


def _record_of(after: str) -> IncludedRecord:
    """Return a record by its stream, shard and offset. Raises ValidationFailed."""
    match = _AFTER.fullmatch(after)
    if match is None:
        detail = "Must be shard:offset, such as 0:120, or for a join stream:shard:offset"
        raise ValidationFailed.at("/after", detail)
    return IncludedRecord(int(match[2]), int(match[3]), match[1] or "")


def _subject_of(view: ViewName, query: RowQuery) -> Sequence[str]:
    """Return what a cursor is bound to: all that selects and orders rows."""
    selection = (
        *("view", view.name, query.prefix, str(query.window_from_ms), str(query.window_to_ms)),
        *(str(query.latest), str(query.descending), str(query.at_ms), str(query.at_batch)),
        *query.key,
    )
    return selection


def _body(page: RowPage, query: RowQuery, about: Sequence[str]) -> bytes:
    """Return the response, with the rows as they are stored."""
    place = None
    if page.next_key is not None:
        batch = page.revision.progress.batch if query.is_of_history else None
        place = (page.revision.revision_id, page.next_key, batch)
    cursor = None if place is None else encode_cursor(about, place)
    as_of = ViewAsOf.of(page.revision).model_dump_json().encode()
    rows = b",".join(page.rows)
    return b'{"rows":[%b],"as_of":%b,"next_cursor":%b}' % (
        rows,
        as_of,
        msgspec.json.encode(cursor),
    )


@router.get(
    "/{view}/rows/sources",
    dependencies=[Depends(may(Action.VIEW_READ))],
    response_model=ViewSourcesOut,
)
async def list_view_sources(
    *,
    view: ViewPath,
    storage: StorageDep,
    principal: PrincipalDep,
    key: Key = None,
    limit: Limit = limits.PAGE_ITEMS_DEFAULT,
    cursor: Cursor = "",
) -> Response:
    """List the records that contributed to a row, for a view whose `sources` are `range`.

    `key` has the values of all columns of the key. A worker finds the records by the query; without one, or while it starts, the
    response is 503 `view_sources_pending`. The records of tables, as they are now, decide about joins, and late records that the view
    dropped are listed too. The caller also needs `stream:read` on the stream.
    """

    def authorise(stream: StreamName) -> None:
        storage.authorizer.authorise(principal, Action.STREAM_READ, str(stream))

    about = ("sources", view.name, *(key or ()))
    revision_id, place = "", None
    if cursor:
        revision_id, *shard_offset = decode_cursor(cursor, about, tuple[str, int, int])
        place = RecordLocation(*shard_offset)
    sources = await storage.view_sources.read(
        view, key or (), limit=limit, after=place, authorise=authorise
    )
    if cursor and sources.revision.revision_id != revision_id:
        raise InvalidCursor(_OTHER_QUERY)
    return Response(_sources_body(sources, about), media_type="application/json")


def _sources_body(sources: RowSources, about: Sequence[str]) -> bytes:
    """Return the response, with the row as it is stored."""
    place = None if sources.next is None else (sources.revision.revision_id, *sources.next)
    ranges = [{"shard": shard, **one._asdict()} for shard, one in sorted(sources.ranges.items())]
    parts = {
        "ranges": ranges,
        "records": [RecordOut.from_domain(one, False, shard) for shard, one in sources.records],
        "gaps": [
            GapOut(shard=shard, first=gap.first, next=gap.next, reason=gap.reason.value)
            for shard, gap in sources.gaps
        ],
        "as_of": msgspec.Raw(ViewAsOf.of(sources.revision).model_dump_json().encode()),
        "next_cursor": None if place is None else encode_cursor(about, place),
    }
    row = msgspec.Raw(sources.row or b"null")
    return msgspec.json.encode({"row": row, **parts})


# Examples of the OpenAPI document

EXAMPLES = {
    "read_view_rows": Example(
        "/v1/views/page-clicks/rows?key=home&limit=10",
        answer={
            "rows": [{"page": "home", "clicks": 41}],
            "as_of": {
                "revision": 1,
                "batch": 3,
                "positions": {"0": 120, "1": 96},
                "joined": {},
                "watermark": AT,
                "changed_at": LATER,
            },
            "next_cursor": None,
        },
    ),
    "list_view_sources": Example(
        "/v1/views/page-clicks/rows/sources?key=home&limit=1",
        answer={
            "row": {"page": "home", "clicks": 41},
            "ranges": [{"shard": 0, "first": 2, "last": 118, "records": 41}],
            "records": [
                {
                    "shard": 0,
                    "offset": 2,
                    "data": {"page": "home", "ms": 12},
                    "key": "user-1",
                    "arrival_time": AT,
                }
            ],
            "gaps": [],
            "as_of": {
                "revision": 1,
                "batch": 3,
                "positions": {"0": 120},
                "joined": {},
                "watermark": AT,
                "changed_at": LATER,
            },
            "next_cursor": "k5Kn",
        },
    ),
}
