"""A message of a topic: the routes that took it, and why the others did not."""

from collections.abc import Sequence, Set
from typing import NamedTuple

from fastapi import APIRouter, Depends, Response

from api.admin.browsing.body_preview import escape_misleading, preview
from api.admin.error_pages import PageRoute
from api.admin.lists import Words
from api.admin.match_text import compact_json
from api.admin.pages._shared import topic_page
from api.admin.rendering import Context, as_file
from api.native.dependencies import StorageDep, TopicPath, may
from storage.bootstrap import Storage
from storage.domain.access.permissions import Action
from storage.domain.errors import RouteNotFound
from storage.domain.filters.documents import document_of, meta_of
from storage.domain.filters.matches import FailedCondition
from storage.domain.log.record_batch import subject_of
from storage.domain.names import TopicName
from storage.domain.replays.replay import own_headers
from storage.domain.streams.stream import LogRecord
from storage.domain.topics.message_id import TopicMessageId
from storage.domain.topics.report import (
    MessageRoute,
    MessageRouteState,
    RouteExplanation,
    RouteProgress,
    RouteState,
)
from storage.domain.topics.route import TopicRoute
from storage.domain.topics.targets.named_target import NamedTarget
from storage.domain.topics.topic import options_of

router = APIRouter(
    include_in_schema=False, route_class=PageRoute, prefix="/ui/topics/{topic}/messages/{message}"
)

READ = Depends(may(Action.TOPIC_READ))
EXAMINED_ROUTES_MAX = 200
"""Routes that the page explains; others are explained by name."""

_VALUE_CHARACTERS_MAX = 200


class FailedLine(NamedTuple):
    """Condition that a message does not meet, as text. `actual`: empty without a value."""

    path: str
    expected: str
    actual: Sequence[str]


class RouteVerdict(NamedTuple):
    """Present route that did not take a message; without failed conditions, it would today."""

    route: TopicRoute
    failed: Sequence[FailedLine]


class MessageRouteRow(NamedTuple):
    """Route that took a message. `progress`: of one whose target may not have it yet."""

    message_route: MessageRoute
    progress: RouteProgress | None

    @property
    def target(self) -> NamedTarget | None:
        """Queue, stream or topic that gets the message; None of a URL, and of a forgotten route."""
        route = self.message_route.route
        named = () if route is None else route.spec.target.named
        return self.message_route.member or next(iter(named), None)

    @property
    def reason(self) -> str:
        """Reason why the target may not have the message."""
        if self.progress is None:
            return ""
        if self.progress.state is RouteState.PAUSED:
            return "The route is paused."
        return self.progress.route.failure or "The router has not come to it yet."


@router.get("", dependencies=[READ])
async def show_message(
    context: Context, topic: TopicPath, message: str, route: Words = "", form: Words = ""
) -> Response:
    """Show a message: the routes that took it, and why the others did not."""
    storage = context.storage
    message_id = TopicMessageId.parse(message)
    record = await storage.topic_reports.message(topic, message_id)
    message_routes = await storage.topic_reports.routes_of_message(topic, message_id)
    numbers = {one.number for one in message_routes}
    verdicts, is_complete = await _verdicts(storage, topic, record, route, numbers)
    return topic_page(
        context,
        "message",
        await storage.topics.fresh(topic),
        live=any(one.state is MessageRouteState.WAITING for one in message_routes),
        id=message_id,
        record=record,
        subject=escape_misleading(subject_of(record.record.headers)),
        headers=_header_texts(record),
        options=options_of(record.record.headers),
        body=preview(record.record.data, form),
        message_routes=await _with_progress(storage, topic, message_routes[:EXAMINED_ROUTES_MAX]),
        route_count=len(message_routes),
        verdicts=verdicts,
        is_complete=is_complete,
        route=route,
    )


@router.get("/body", dependencies=[READ])
async def download_message(topic: TopicPath, message: str, storage: StorageDep) -> Response:
    """Download a message's raw body, with headers that keep browsers from showing it."""
    record = await storage.topic_reports.message(topic, TopicMessageId.parse(message))
    return as_file(record.record.data, f"{topic.name}-{message}.bin")


def _header_texts(record: LogRecord) -> list[tuple[str, str]]:
    """Return the headers of the publisher, and the content type, as text."""
    own, content_type = own_headers(record.record.headers)
    texts = [(name, value.decode("utf-8", "replace")) for name, _, value in own]
    texts += [("content type", content_type)] if content_type else []
    return [(escape_misleading(name), escape_misleading(value)) for name, value in texts]


async def _with_progress(
    storage: Storage, topic: TopicName, message_routes: Sequence[MessageRoute]
) -> list[MessageRouteRow]:
    waiting = [
        one.route
        for one in message_routes
        if one.route is not None and one.state is MessageRouteState.WAITING
    ]
    progress = await storage.topic_reports.progress_of(topic, waiting) if waiting else []
    by_number = {one.route.number: one for one in progress}
    return [MessageRouteRow(one, by_number.get(one.number)) for one in message_routes]


async def _verdicts(
    storage: Storage, topic: TopicName, record: LogRecord, route: str, numbers: Set[int]
) -> tuple[list[RouteVerdict], bool]:
    """Return why present routes, or one, did not take a message, and whether these are all.

    `numbers`: those of the routes that took it.
    """
    document = document_of(record.record, meta_of(topic.stream))
    verdicts: list[RouteVerdict] = []
    try:
        async for explanation in storage.topic_reports.explain(topic, document, route):
            if explanation.route.number in numbers:
                continue
            if len(verdicts) == EXAMINED_ROUTES_MAX:
                return verdicts, False
            verdicts.append(_verdict(explanation))
    except RouteNotFound:
        return [], True
    return verdicts, True


def _verdict(explanation: RouteExplanation) -> RouteVerdict:
    return RouteVerdict(explanation.route, [_failed_line(one) for one in explanation.failed])


def _failed_line(failed: FailedCondition) -> FailedLine:
    return FailedLine(
        failed.path, _short(failed.expected), [_short(value) for value in failed.actual]
    )


def _short(value: object) -> str:
    text = compact_json(value)
    return text if len(text) <= _VALUE_CHARACTERS_MAX else f"{text[:_VALUE_CHARACTERS_MAX]}…"
