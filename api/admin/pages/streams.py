"""The list of streams."""

from collections.abc import Callable
from typing import Any, NamedTuple

from fastapi import APIRouter, Depends, Response

from api.admin.error_pages import PageRoute
from api.admin.lists import Start, Words, parse_search, slice_of, sort_keys, sorted_names
from api.admin.rendering import Context
from api.native.dependencies import may
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.streams.stream import Stream, StreamSpec
from storage.domain.timeseries.samples import StreamSample

router = APIRouter(include_in_schema=False, route_class=PageRoute)

SEE = Depends(may(Action.STREAM_LIST))
_COLUMNS: dict[str, Callable[[StreamSample], Any]] = {
    "shards": lambda stream: stream.shards,
    "in": lambda stream: stream.records_in_per_second,
    "bytes": lambda stream: stream.bytes_in_per_second,
    "held": lambda stream: stream.bytes_held,
    "groups": lambda stream: stream.groups,
    "lag": lambda stream: stream.lag_records,
}


class StreamListRow(NamedTuple):
    """A stream as the list shows it. `sample` is None before it was measured."""

    stream: Stream
    sample: StreamSample | None


async def find_names(storage: Storage, namespace: str, part: str) -> list[str]:
    """Return names of streams that contain `part`."""
    return await storage.search.stream_names(namespace, part)


@router.get("/ui/streams", dependencies=[SEE])
async def list_streams(
    context: Context, q: Words = "", sort: Words = "name", start: Start = 0
) -> Response:
    """All streams of the namespace that the caller may see."""
    storage = context.storage
    part, tags = parse_search(q)
    namespace = context.namespace
    names = await storage.search.stream_names(namespace, part, tags)
    samples = await storage.time_series.latest_streams(namespace)
    seen = [name for name in names if context.may(Action.STREAM_LIST, name)]
    page = slice_of(sorted_names(seen, sort, sort_keys(samples, StreamSample(), _COLUMNS)), start)
    streams = await storage.search.streams(namespace, page.names)
    rows = [
        StreamListRow(streams[name], samples.get(name)) for name in page.names if name in streams
    ]
    sparks = await storage.time_series.of_streams([row.stream.name for row in rows], limits.HOUR_MS)
    return context.render(
        "stream/list.html",
        live=True,
        rows=rows,
        page=page,
        defaults=StreamSpec(),
        q=q,
        sort=sort,
        sparks={
            name.name: chart.columns.get("records_in_per_second", ())
            for name, chart in sparks.items()
        },
        archives=storage.archive_admin.on,
    )
