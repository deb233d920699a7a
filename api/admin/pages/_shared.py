"""Parts that several pages have in common."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from fastapi import Response

from api.admin.lists import PAGE_ROWS, first_page
from api.admin.rendering import PageContext, Tab
from storage.bootstrap import Storage
from storage.domain.access.permissions import Action, Principal
from storage.domain.groups.group import Group
from storage.domain.names import TopicName
from storage.domain.queues.queue import Queue, QueueStats, QueueType
from storage.domain.streams.stream import Stream
from storage.domain.timeseries.samples import GroupSample
from storage.domain.webhooks import WebhookDelivery

D = TypeVar("D")


def queue_page(
    context: PageContext,
    template: str,
    here: str,
    queue: Queue,
    stats: QueueStats,
    **values: Any,
) -> Response:
    """Render a page of the queue. `here`: the tab that it belongs to."""
    tabs = _queue_tabs(queue, stats)
    topic = None if queue.name.route is not None else TopicName.of_queue(queue.name)
    if topic is not None and context.may(Action.TOPIC_LIST, topic.name):
        tabs.insert(-2, Tab("routes", "Routes", f"/ui/queues/{queue.name.name}/routes"))
    return _tabbed_page(context, "queue", template, queue, tabs, here=here, stats=stats, **values)


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
        Tab("consumers", "Consumers", f"{path}/consumers"),
        Tab("settings", "Settings", f"{path}/settings"),
        Tab("code", "Code", f"{path}/code"),
    ]


def stream_page(context: PageContext, template: str, stream: Stream, **values: Any) -> Response:
    """Render a page of the stream; its template is named as the tab that it belongs to."""
    tabs = _stream_tabs(stream)
    topic = stream.name.topic
    if topic.is_of_stream and not stream.is_view and context.may(Action.TOPIC_LIST, topic.name):
        tabs.insert(3, Tab("routes", "Routes", f"/ui/topics/{topic.name}"))
    return _tabbed_page(context, "stream", template, stream, tabs, here=template, **values)


def _tabbed_page(
    context: PageContext,
    noun: str,
    template: str,
    definition: Any,
    tabs: list[Tab],
    **values: Any,
) -> Response:
    values |= {noun: definition, "name": definition.name.name, "tabs": tabs}
    return context.render(f"{noun}/{template}.html", **values)


def _stream_tabs(stream: Stream) -> list[Tab]:
    """Return the tabs of a stream, without pages that its queue or topic has instead."""
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
    elsewhere = set[str]()
    if stream.is_view:
        elsewhere = {"shards", "groups", "settings"}
    elif stream.name.is_of_topic:
        elsewhere = {"settings", "code"}
    return [tab for tab in all_ if tab.key not in elsewhere]


def topic_page(context: PageContext, template: str, topic: Stream, **values: Any) -> Response:
    """Render a page of the topic; its template is named as the tab that it belongs to."""
    name = topic.name.topic.name
    path = f"/ui/topics/{name}"
    reads = context.may(Action.TOPIC_READ, name)
    tabs = [
        Tab("routes", "Routes", path),
        *([Tab("try", "Try a message", f"{path}/try")] if reads else []),
        *([Tab("backtest", "Back-test", f"{path}/backtest")] if reads else []),
        *(
            [Tab("messages", "Messages" if topic.spec.topic else "Records", f"{path}/messages")]
            if reads
            else []
        ),
        *([Tab("settings", "Settings", f"{path}/settings")] if topic.spec.topic else []),
    ]
    if context.may(Action.STREAM_LIST, topic.name.name):
        label = "Log and groups" if topic.spec.topic else "Stream"
        tabs.append(Tab("stream", label, f"/ui/streams/{topic.name.name}"))
    values |= {"topic": topic, "name": name, "tabs": tabs, "here": template}
    return context.render(f"topic/{template}.html", **values)


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


def visible_deliveries(
    context: PageContext, deliveries: Sequence[tuple[str, WebhookDelivery]]
) -> list[tuple[str, WebhookDelivery]]:
    """Return the deliveries by webhooks that the caller may see, with their names."""
    return [
        (name, delivery) for name, delivery in deliveries if context.may(Action.WEBHOOK_LIST, name)
    ]


async def page_by_name(
    context: PageContext,
    list_page: Callable[..., Awaitable[Sequence[D]]],
    action: Action,
    prefix: str,
    after: str,
) -> tuple[list[D], str | None]:
    """Return a page of the objects that the caller may see, and where the next one begins."""
    definitions = await list_page(
        context.namespace, prefix=prefix, after=after, limit=PAGE_ROWS + 1
    )
    rows, next_name = first_page(definitions, _name)
    return [row for row in rows if context.may(action, _name(row))], next_name


def _name(definition: Any) -> str:
    return str(definition.name.name)
