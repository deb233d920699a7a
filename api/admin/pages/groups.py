"""Consumer groups: all of them, those of a stream, and where one is in every shard."""

from collections.abc import Callable
from typing import Any, NamedTuple

from fastapi import APIRouter, Depends, Response

from api.admin.error_pages import PageRoute
from api.admin.lists import Start, Words, slice_of, sort_keys, sorted_names
from api.admin.pages._shared import groups_of, stream_page
from api.admin.rendering import Context
from api.native.dependencies import GroupPath, StreamPath, may
from storage.bootstrap import Storage
from storage.domain.access.permissions import Action
from storage.domain.groups.group import Group, GroupKind
from storage.domain.timeseries.samples import GroupSample

router = APIRouter(include_in_schema=False, route_class=PageRoute)

SEE = Depends(may(Action.GROUP_LIST))
SEE_STREAM = Depends(may(Action.STREAM_LIST))
_COLUMNS: dict[str, Callable[[GroupSample], Any]] = {
    "lag": lambda group: group.lag_records,
    "age": lambda group: -(group.unread_at_ms or 2**60),
    "members": lambda group: group.members,
    "rate": lambda group: group.committed_per_second,
}


class GroupListRow(NamedTuple):
    """A group as a list shows it. `sample` is None before it was measured."""

    group: Group
    sample: GroupSample | None


async def find_names(storage: Storage, namespace: str, part: str) -> list[str]:
    """Return names of groups that contain `part`."""
    return await storage.groups.names(namespace, part)


@router.get("/ui/groups", dependencies=[SEE])
async def list_groups(
    context: Context, q: Words = "", sort: Words = "-lag", start: Start = 0
) -> Response:
    """List the groups of the namespace that the caller may see, by default by lag."""
    storage = context.storage
    namespace = context.namespace
    names = await storage.groups.names(namespace, q.strip())
    samples = await storage.time_series.latest_groups(namespace)
    seen = [name for name in names if context.may(Action.GROUP_LIST, name)]
    page = slice_of(sorted_names(seen, sort, sort_keys(samples, GroupSample(), _COLUMNS)), start)
    groups = await storage.groups.with_names(namespace, page.names)
    rows = [GroupListRow(groups[name], samples.get(name)) for name in page.names if name in groups]
    return context.render("group/list.html", live=True, rows=rows, page=page, q=q, sort=sort)


@router.get("/ui/streams/{stream}/groups", dependencies=[SEE_STREAM])
async def show_stream_groups(context: Context, stream: StreamPath) -> Response:
    """Show the consumer groups of a stream."""
    stored = await context.storage.catalog.fresh_stream(stream)
    rows = [
        GroupListRow(*one) for one in await groups_of(context.storage, context.principal, stored)
    ]
    return stream_page(
        context,
        "groups",
        stored,
        live=True,
        rows=rows,
    )


@router.get("/ui/groups/{group}", dependencies=[SEE])
async def show_group(context: Context, group: GroupPath) -> Response:
    """Show a group: its current position in every shard, assignments, and how to move it."""
    storage = context.storage
    stored, members, shards = await storage.groups.describe(group)
    lags = await storage.groups.lags.by_shard(group)
    owned = {
        member.member_id: sorted(
            shard for shard, found in shards.items() if found.lease.owner == member.member_id
        )
        for member in members
    }
    return context.render(
        "group/show.html",
        live=True,
        group=stored,
        name=group.name,
        ordered=stored.spec.kind is GroupKind.ORDERED,
        members=members,
        owned=owned,
        lags=lags,
        behind=sum(lag.records for lag in lags),
        behind_ms=max((lag.lag_ms for lag in lags), default=0),
        loss_in_ms=min(
            (lag.loss_in_ms for lag in lags if lag.loss_in_ms is not None), default=None
        ),
        lost=sum(lag.expired for lag in lags),
        committed_at_ms=max((lag.committed_at_ms or 0 for lag in lags), default=0),
        bookmarks=await storage.groups.positions.bookmarks(group),
        reads=context.may(Action.STREAM_LIST, stored.spec.stream),
    )
