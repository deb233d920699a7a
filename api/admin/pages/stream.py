"""Pages of a stream: overview, settings and code snippets."""

from fastapi import APIRouter, Depends, Response

from api.admin.error_pages import PageRoute
from api.admin.pages._shared import groups_of, stream_page
from api.admin.rendering import Context
from api.admin.stream_snippets import stream_snippets
from api.native.dependencies import StreamPath, may
from storage.domain.access.permissions import Action
from storage.domain.streams.stream import StreamSpec
from storage.domain.timeseries.samples import StreamSample

router = APIRouter(include_in_schema=False, route_class=PageRoute, prefix="/ui/streams/{stream}")

SEE = Depends(may(Action.STREAM_LIST))


@router.get("", dependencies=[SEE])
async def show_stream(context: Context, stream: StreamPath) -> Response:
    """Show the throughput, size and consumer groups of a stream."""
    storage = context.storage
    stored = await storage.catalog.fresh_stream(stream)
    samples = await storage.time_series.latest_streams(stream.namespace)
    return stream_page(
        context,
        "overview",
        stored,
        live=True,
        sample=samples.get(stream.name, StreamSample()),
        measured=stream.name in samples,
        groups=await groups_of(storage, context.principal, stored),
        archives=storage.archive_admin.on and stored.spec.archive,
    )


@router.get("/settings", dependencies=[SEE])
async def show_settings(context: Context, stream: StreamPath) -> Response:
    """Show the settings of a stream."""
    storage = context.storage
    stored = await storage.catalog.fresh_stream(stream)
    states = await storage.record_reader.shards(stream)
    return stream_page(
        context,
        "settings",
        stored,
        live=False,
        spec=stored.spec,
        default=StreamSpec(),
        held=sum(state.next - state.start for state in states),
        groups=len(await storage.groups.of_stream(stored)),
    )


@router.get("/code", dependencies=[SEE])
async def show_code(context: Context, stream: StreamPath) -> Response:
    """Programs that use it."""
    stored = await context.storage.catalog.fresh_stream(stream)
    return stream_page(
        context,
        "code",
        stored,
        live=False,
        snippets=stream_snippets(context.service, stream.name),
    )
