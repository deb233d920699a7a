"""The list of topics."""

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
from storage.domain.names import StreamName, TopicName
from storage.domain.streams.stream import Stream
from storage.domain.timeseries.samples import StreamSample
from storage.domain.topics.report import TopicStatus

router = APIRouter(include_in_schema=False, route_class=PageRoute, prefix="/ui/topics")

SEE = Depends(may(Action.TOPIC_LIST))
_COLUMNS: dict[str, Callable[[StreamSample], Any]] = {
    "messages": lambda topic: topic.records,
    "in": lambda topic: topic.records_in_per_second,
}


class TopicListRow(NamedTuple):
    """Topic as the list shows it. `sample` is None before it was measured."""

    topic: Stream
    status: TopicStatus
    sample: StreamSample | None
    spark: tuple[float | None, ...]

    @property
    def name(self) -> str:
        """Name of the topic."""
        return self.topic.name.topic.name


async def find_names(storage: Storage, namespace: str, part: str) -> list[str]:
    """Return names of topics that contain `part`."""
    return await storage.search.topic_names(namespace, part)


@router.get("", dependencies=[SEE])
async def list_topics(
    context: Context, q: Words = "", sort: Words = "name", start: Start = 0
) -> Response:
    """List the topics of the namespace that the caller may see."""
    part, tags = parse_search(q)
    names = await context.storage.search.topic_names(context.namespace, part, tags)
    samples = await _samples(context.storage, context.namespace)
    seen = [name for name in names if context.may(Action.TOPIC_LIST, name)]
    page = slice_of(sorted_names(seen, sort, sort_keys(samples, StreamSample(), _COLUMNS)), start)
    rows = await _rows(context.storage, context.namespace, page.names, samples)
    return context.render("topic/list.html", live=True, rows=rows, page=page, q=q, sort=sort)


async def _samples(storage: Storage, namespace: str) -> dict[str, StreamSample]:
    """Return the last samples of topics, by name."""
    samples = await storage.time_series.latest_streams(namespace)
    return {StreamName(name, namespace).topic.name: sample for name, sample in samples.items()}


async def _rows(
    storage: Storage, namespace: str, names: list[str], samples: dict[str, StreamSample]
) -> list[TopicListRow]:
    stream_names = [TopicName(name, namespace).stream.name for name in names]
    streams = await storage.search.streams(namespace, stream_names)
    topics = [streams[name] for name in stream_names if name in streams]
    statuses = await storage.topic_reports.statuses(topics)
    sparks = await storage.time_series.of_streams([topic.name for topic in topics], limits.HOUR_MS)
    return [
        TopicListRow(
            topic,
            status,
            samples.get(topic.name.topic.name),
            tuple(sparks[topic.name].columns.get("records_in_per_second", ()))
            if topic.name in sparks
            else (),
        )
        for topic, status in zip(topics, statuses, strict=True)
    ]
