"""The latest messages of a topic."""

from typing import Annotated, NamedTuple

from fastapi import APIRouter, Depends, Query, Response

from api.admin.browsing.body_preview import escape_misleading, summary
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
from storage.domain.streams.record_filter import Filter
from storage.domain.streams.stream import Stream
from storage.domain.topics.message_id import TopicMessageId
from storage.domain.topics.topic import routes_of, subject_of

router = APIRouter(
    include_in_schema=False, route_class=PageRoute, prefix="/ui/topics/{topic}/messages"
)

READ = Depends(may(Action.TOPIC_READ))
_SEARCHED_BACK = 1_000


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
    cursor: Annotated[str, Query(max_length=8_000)] = "",
) -> Response:
    """List the latest messages of a topic, or those from a position on."""
    stored = await context.storage.topics.fresh(topic)
    page = await _read_page(context.storage, stored, q, cursor)
    records = page.records if cursor else page.records[::-1]
    after = None if page.after is None else encode_cursor(_about(stored), page.after)
    return topic_page(
        context,
        "messages",
        stored,
        live=not cursor,
        lines=[_line(stored, record) for record in records],
        scanned=page.scanned,
        gaps=page.gaps,
        q=q,
        cursor=cursor,
        after=after,
    )


async def _read_page(storage: Storage, topic: Stream, text: str, cursor: str) -> BrowsedPage:
    """Return the messages from a cursor, or the latest ones. Raises InvalidCursor."""
    predicate = predicate_of(text, Filter.of_terms((), (), ()))
    if cursor:
        start = BrowsePosition(decode_cursor(cursor, _about(topic), dict[int, int]), None)
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
