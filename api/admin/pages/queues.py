"""The list of queues: all of them, however many, by what is wrong with them."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from fastapi import APIRouter, Depends, Response

from api.admin.alerts.queues import is_stalled
from api.admin.error_pages import PageRoute
from api.admin.lists import Slice, Start, Words, parse_search, slice_of, sort_keys, sorted_names
from api.admin.rendering import Context
from api.native.dependencies import may
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.clock import SystemClock
from storage.domain.errors import QueueNotFound
from storage.domain.names import QueueName
from storage.domain.queues.queue import Queue, QueueSpec, QueueStats
from storage.domain.timeseries.samples import QueueSample

router = APIRouter(include_in_schema=False, route_class=PageRoute)

SEE = Depends(may(Action.QUEUE_LIST))
_UNMEASURED = QueueSample()  # of a queue that was made a moment ago
_CLOCK = SystemClock()


class QueueFilter(NamedTuple):
    """State that the list can be filtered by."""

    key: str
    label: str
    holds: Callable[[QueueSample, int], bool]


STATES = (
    QueueFilter("waiting", "Ready", lambda queue, _: queue.ready > 0),
    QueueFilter("in_flight", "In flight", lambda queue, _: queue.in_flight > 0),
    QueueFilter("delayed", "Delayed", lambda queue, _: queue.delayed > 0),
    QueueFilter("stuck", "Stuck", is_stalled),
    QueueFilter("dead", "Dead letters", lambda queue, _: queue.dead_lettered > 0),
    QueueFilter("parked", "Parked", lambda queue, _: queue.parked > 0),
)


class QueueListRow(NamedTuple):
    """A queue as the list shows it: counted now, its rates as they were measured last."""

    queue: Queue
    stats: QueueStats
    sample: QueueSample
    hour: tuple[float | None, ...]


async def find_names(storage: Storage, namespace: str, part: str) -> list[str]:
    """Return names of queues that contain `part`."""
    return await storage.search.queue_names(namespace, part)


@router.get("/ui/queues", dependencies=[SEE])
async def list_queues(
    context: Context, q: Words = "", state: Words = "", sort: Words = "name", start: Start = 0
) -> Response:
    """List the queues of the namespace that the caller may see.

    One statement for the names, one read for all samples, and then what this page alone needs.
    """
    storage = context.storage
    part, tags = parse_search(q)
    names, latest = await asyncio.gather(
        storage.search.queue_names(context.namespace, part, tags),
        storage.time_series.latest_queues(context.namespace),
    )
    now_ms = _CLOCK.now_ms()
    seen = [name for name in names if context.may(Action.QUEUE_LIST, name)]
    if selected := next((one for one in STATES if one.key == state), None):
        seen = [name for name in seen if selected.holds(latest.get(name, _UNMEASURED), now_ms)]
    keys = sort_keys(latest, _UNMEASURED, _columns(now_ms))
    page = slice_of(sorted_names(seen, sort, keys), start)
    return context.render(
        "queues.html",
        live=True,
        rows=await _rows(storage, context.namespace, page, latest),
        page=page,
        states=STATES,
        defaults=QueueSpec(),
        rate_max=limits.MOVE_RATE_MAX,
        filters={"q": q, "state": state, "sort": sort},
    )


def _columns(now_ms: int) -> dict[str, Callable[[QueueSample], Any]]:
    return {
        "ready": lambda queue: queue.ready,
        "in_flight": lambda queue: queue.in_flight,
        "delayed": lambda queue: queue.delayed,
        "oldest": lambda queue: queue.oldest_age_ms(now_ms),
        "in": lambda queue: queue.sent_per_second,
        "out": lambda queue: queue.acknowledged_per_second,
        "consumers": lambda queue: queue.consumers,
        "dead": lambda queue: queue.dead_lettered,
    }


async def _rows(
    storage: Storage, namespace: str, page: Slice, latest: Mapping[str, QueueSample]
) -> list[QueueListRow]:
    queues = await storage.search.queues(namespace, page.names)
    present = [queues[name] for name in page.names if name in queues]
    counted, charts = await asyncio.gather(
        asyncio.gather(*(_counted(storage, queue.name) for queue in present)),
        _charts(storage, [queue.name for queue in present]),
    )
    return [
        QueueListRow(
            queue, stats, latest.get(queue.name.name, _UNMEASURED), charts.get(queue.name, ())
        )
        for queue, stats in zip(present, counted, strict=True)
        if stats is not None
    ]


async def _counted(storage: Storage, queue: QueueName) -> QueueStats | None:
    """Return a queue's statistics; None if it was deleted in the meantime."""
    try:
        return await storage.queues.stats(queue)
    except QueueNotFound:
        return None


async def _charts(
    storage: Storage, queues: Sequence[QueueName]
) -> dict[QueueName, tuple[float | None, ...]]:
    """Return the send rates of the last hour."""
    charts = await storage.time_series.of_queues(queues, limits.HOUR_MS)
    return {queue: chart.columns.get("sent_per_second", ()) for queue, chart in charts.items()}
