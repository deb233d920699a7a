"""The list of streams."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fastapi import APIRouter, Depends, Request, Response

from api.admin.error_pages import PageRoute
from api.admin.lists import Slice, Start, Words, parse_search, slice_of, sorted_names
from api.admin.rendering import render
from api.native.dependencies import PrincipalDep, StorageDep, may
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.streams.stream import Stream, StreamSpec
from storage.domain.timeseries.samples import StreamSample

router = APIRouter(include_in_schema=False, route_class=PageRoute)

SEE = Depends(may(Action.STREAM_LIST))
_UNKNOWN = StreamSample()


class StreamListRow(NamedTuple):
    """A stream as the list shows it. `sample` is None before it was measured."""

    stream: Stream
    sample: StreamSample | None


async def find_names(storage: Storage, namespace: str, part: str) -> list[str]:
    """Return names of streams that contain `part`."""
    return await storage.search.stream_names(namespace, part)


@router.get("/ui/streams", dependencies=[SEE])
async def list_streams(
    request: Request,
    storage: StorageDep,
    principal: PrincipalDep,
    q: Words = "",
    sort: Words = "name",
    start: Start = 0,
) -> Response:
    """All streams of the namespace that the caller may see."""
    part, tags = parse_search(q)
    namespace = principal.namespace
    names = await storage.search.stream_names(namespace, part, tags)
    samples = await storage.time_series.latest_streams(namespace)
    seen = [name for name in names if principal.policy.allows(Action.STREAM_LIST, name)]
    page = slice_of(sorted_names(seen, sort, _keys(samples)), start)
    streams = await storage.search.streams(namespace, page.names)
    rows = _rows(streams, samples, page)
    sparks = await storage.time_series.of_streams([row.stream.name for row in rows], limits.HOUR_MS)
    return render(
        request,
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


def _rows(
    streams: Mapping[str, Stream], samples: Mapping[str, StreamSample], page: Slice
) -> list[StreamListRow]:
    return [
        StreamListRow(streams[name], samples.get(name)) for name in page.names if name in streams
    ]


def _keys(samples: Mapping[str, StreamSample]) -> dict[str, Callable[[str], Any]]:
    def of(name: str) -> StreamSample:
        return samples.get(name, _UNKNOWN)

    return {
        "shards": lambda name: of(name).shards,
        "in": lambda name: of(name).records_in_per_second or 0,
        "bytes": lambda name: of(name).bytes_in_per_second or 0,
        "held": lambda name: of(name).bytes_held,
        "groups": lambda name: of(name).groups,
        "lag": lambda name: of(name).lag_records or 0,
    }
