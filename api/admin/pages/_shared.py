"""Parts that the pages of a queue, and those of a stream, have in common."""

from typing import Any

from fastapi import Request, Response

from api.admin.rendering import Tab, render
from storage.bootstrap import Storage
from storage.domain.access.permissions import Action, Principal
from storage.domain.groups.group import Group
from storage.domain.queues.queue import Queue, QueueStats, QueueType
from storage.domain.streams.stream import Stream
from storage.domain.timeseries.samples import GroupSample


def queue_page(
    request: Request,
    template: str,
    here: str,
    queue: Queue,
    stats: QueueStats,
    *,
    live: bool,
    **values: Any,
) -> Response:
    """Render a page of the queue. `here`: the tab that it belongs to."""
    return render(
        request,
        f"queue/{template}.html",
        live=live,
        queue=queue,
        name=queue.name.name,
        stats=stats,
        tabs=_queue_tabs(queue, stats),
        here=here,
        **values,
    )


def _queue_tabs(queue: Queue, stats: QueueStats) -> list[Tab]:
    path = f"/ui/queues/{queue.name.name}"
    messages = stats.ready + stats.delayed + stats.in_flight + stats.parked
    tabs = [
        Tab("overview", "Overview", path),
        Tab("messages", "Messages", f"{path}/messages", messages),
        Tab("dead", "Dead letters", f"{path}/dead-letters", stats.dead_lettered),
    ]
    if queue.spec.type is QueueType.FIFO or stats.parked:
        tabs.append(Tab("groups", "Parked groups", f"{path}/groups"))
    return [
        *tabs,
        Tab("settings", "Settings", f"{path}/settings"),
        Tab("code", "Code", f"{path}/code"),
    ]


def stream_tabs(stream: Stream) -> list[Tab]:
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
