"""Pages of a stream: overview, settings and code snippets."""

from fastapi import APIRouter, Depends, Request, Response

from api.admin.error_pages import PageRoute
from api.admin.pages._shared import groups_of, stream_tabs
from api.admin.rendering import render, service_access
from api.admin.stream_snippets import stream_snippets
from api.native.dependencies import PrincipalDep, StorageDep, StreamPath, may
from storage.domain.access.permissions import Action
from storage.domain.timeseries.samples import StreamSample

router = APIRouter(include_in_schema=False, route_class=PageRoute, prefix="/ui/streams/{stream}")

SEE = Depends(may(Action.STREAM_LIST))


@router.get("", dependencies=[SEE])
async def show_stream(
    request: Request, stream: StreamPath, storage: StorageDep, principal: PrincipalDep
) -> Response:
    """Show the throughput, size and consumer groups of a stream."""
    stored = await storage.catalog.fresh_stream(stream)
    samples = await storage.time_series.latest_streams(stream.namespace)
    return render(
        request,
        "stream/overview.html",
        live=True,
        stream=stored,
        name=stream.name,
        tabs=stream_tabs(stored),
        here="overview",
        sample=samples.get(stream.name, StreamSample()),
        measured=stream.name in samples,
        groups=await groups_of(storage, principal, stored),
        archives=storage.archive_admin.on and stored.spec.archive,
    )


@router.get("/settings", dependencies=[SEE])
async def show_settings(request: Request, stream: StreamPath, storage: StorageDep) -> Response:
    """Show the settings of a stream."""
    stored = await storage.catalog.fresh_stream(stream)
    states = await storage.record_reader.shards(stream)
    return render(
        request,
        "stream/settings.html",
        stream=stored,
        name=stream.name,
        tabs=stream_tabs(stored),
        here="settings",
        spec=stored.spec,
        held=sum(state.next - state.start for state in states),
        groups=len(await storage.groups.of_stream(stored)),
    )


@router.get("/code", dependencies=[SEE])
async def show_code(
    request: Request, stream: StreamPath, storage: StorageDep, principal: PrincipalDep
) -> Response:
    """Programs that use it."""
    stored = await storage.catalog.fresh_stream(stream)
    return render(
        request,
        "stream/code.html",
        stream=stored,
        name=stream.name,
        tabs=stream_tabs(stored),
        here="code",
        snippets=stream_snippets(service_access(request), stream.name),
    )
