"""The latest messages of a topic."""

from typing import Annotated, NamedTuple

from fastapi import APIRouter, Depends, Query, Response

from api.admin.browsing.body_preview import escape_misleading, summary
from api.admin.browsing.message_query import parse_time_ms
from api.admin.browsing.record_browser import (
    ROWS,
    BrowsedPage,
    BrowsePosition,
    BrowseStart,
    ShardRecord,
    position_of,
    predicate_of,
    scan_records,
)
from api.admin.error_pages import PageRoute
from api.admin.lists import Words
from api.admin.pages._shared import topic_page
from api.admin.rendering import Context
from api.native.cursors import decode_cursor, encode_cursor
from api.native.dependencies import TopicPath, may
from storage.bootstrap import Storage
from storage.domain.access.permissions import Action
from storage.domain.errors import ValidationFailed
from storage.domain.log.record_batch import subject_of
from storage.domain.streams.record_filter import Filter
from storage.domain.streams.stream import Stream, Tier
from storage.domain.topics.message_id import TopicMessageId
from storage.domain.topics.topic import routes_of

router = APIRouter(
    include_in_schema=False, route_class=PageRoute, prefix="/ui/topics/{topic}/messages"
)

READ = Depends(may(Action.TOPIC_READ))
_SEARCHED_BACK = 1_000
_NOTHING = BrowsedPage([], None, 0, [], Tier.HOT)


class MessageLine(NamedTuple):
    """Published message as the table shows it."""

    id: TopicMessageId
    arrival_ms: int
    subject: str
    key: str
    size_bytes: int
    routes: int
    summary: str


@router.get("", dependencies=[READ])
async def list_messages(
    context: Context,
    topic: TopicPath,
    q: Words = "",
    time: Words = "",
    cursor: Annotated[str, Query(max_length=8_000)] = "",
) -> Response:
    """List the latest messages of a topic, or those from a time or a position on."""
    stored = await context.storage.topics.fresh(topic)
    page, trouble = _NOTHING, ""
    try:
        page = await _read_page(context.storage, stored, q, time, cursor)
    except ValidationFailed as error:
        trouble = "; ".join(fault.detail for fault in error.faults)
    is_latest = not (time or cursor)
    records = page.records[::-1] if is_latest else page.records
    after = None if page.after is None else encode_cursor(_about(stored), page.after)
    return topic_page(
        context,
        "messages",
        stored,
        live=is_latest,
        lines=[_line(stored, record) for record in records],
        scanned=page.scanned,
        gaps=page.gaps,
        q=q,
        time=time,
        trouble=trouble,
        is_latest=is_latest,
        id=_id_or_none(q),
        after=after,
    )


def _id_or_none(text: str) -> TopicMessageId | None:
    """Return the id of a message that was searched for."""
    try:
        return TopicMessageId.parse(text.strip())
    except ValidationFailed:
        return None


async def _read_page(
    storage: Storage, topic: Stream, text: str, time: str, cursor: str
) -> BrowsedPage:
    """Return the messages from a cursor or a time, or the latest ones.

    Raises ValidationFailed, InvalidCursor.
    """
    predicate = predicate_of(text, Filter.of_terms((), (), ()))
    if cursor:
        start = BrowsePosition(decode_cursor(cursor, _about(topic), dict[int, int]), None)
    elif time:
        time_ms = parse_time_ms(time) or 0
        start = await position_of(storage, topic, BrowseStart.TIME, None, time_ms=time_ms)
    else:
        back = ROWS if predicate is None else _SEARCHED_BACK
        start = await position_of(storage, topic, BrowseStart.LATEST, None, back=back)
    return await scan_records(storage, topic, start, predicate)


def _about(topic: Stream) -> tuple[str, str]:
    return ("topic-messages", topic.stream_id)


def _line(topic: Stream, entry: ShardRecord) -> MessageLine:
    record = entry.record.record
    return MessageLine(
        TopicMessageId(topic.stream_id, entry.shard, entry.record.offset),
        entry.record.arrival_ms,
        escape_misleading(subject_of(record.headers)),
        escape_misleading(record.key),
        len(record.data),
        len(routes_of(record.headers)),
        escape_misleading(summary(record.data)),
    )
