"""Pages of a stream: overview, settings and code snippets."""

from fastapi import APIRouter, Depends, Request, Response

from api.admin.error_pages import PageRoute
from api.admin.rendering import Tab, render, service_access
from api.admin.stream_snippets import stream_snippets
from api.native.dependencies import PrincipalDep, StorageDep, StreamPath, may
from storage.bootstrap import Storage
from storage.domain.access.permissions import Action, Principal
from storage.domain.groups.group import Group
from storage.domain.streams.stream import Stream
from storage.domain.timeseries.samples import GroupSample, StreamSample

router = APIRouter(include_in_schema=False, route_class=PageRoute, prefix="/ui/streams/{stream}")

SEE = Depends(may(Action.STREAM_LIST))


def tabs(stream: Stream) -> list[Tab]:
    """Return the tabs of a stream. A queue's view has no shards, groups or settings pages."""
    path = f"/ui/streams/{stream.name.name}"
    all_ = [
        Tab("overview", "Overview", path),
        Tab("browse", "Browse", f"{path}/browse"),
        Tab("shards", "Shards", f"{path}/shards"),
        Tab("groups", "Groups", f"{path}/groups"),
        Tab("archive", "Archive", f"{path}/archive"),
        Tab("settings", "Settings", f"{path}/settings"),
        Tab("code", "Code", f"{path}/code"),
    ]
    of_queue = {"shards", "groups", "settings"} if stream.is_view else set()
    return [tab for tab in all_ if tab.key not in of_queue]


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
        tabs=tabs(stored),
        here="overview",
        sample=samples.get(stream.name, StreamSample()),
        measured=stream.name in samples,
        groups=await groups_of(storage, principal, stored),
        archives=storage.archive_admin.on and stored.spec.archive,
    )


async def groups_of(
    storage: Storage, principal: Principal, stream: Stream
) -> list[tuple[Group, GroupSample | None]]:
    """Return a stream's groups that the caller may see, each with its last sample."""
    groups = await storage.groups.of_stream(stream)
    samples = await storage.time_series.latest_groups(stream.name.namespace)
    return [
        (group, samples.get(group.name.name))
        for group in groups
        if principal.policy.allows(Action.GROUP_LIST, group.name.name)
    ]


@router.get("/settings", dependencies=[SEE])
async def show_settings(request: Request, stream: StreamPath, storage: StorageDep) -> Response:
    """Show the settings of a stream."""
    stored = await storage.catalog.fresh_stream(stream)
    states = await storage.streams.shards(stream)
    return render(
        request,
        "stream/settings.html",
        stream=stored,
        name=stream.name,
        tabs=tabs(stored),
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
        tabs=tabs(stored),
        here="code",
        snippets=stream_snippets(service_access(request, principal), stream.name),
    )
