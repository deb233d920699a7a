"""Published messages: content, routes, results of matches, and back-tests."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Path

from api.native.audited_route import AuditedRoute
from api.native.dependencies import StorageDep, TopicPath, may
from api.native.examples import AT, STREAM_ID, Example, Repeat
from api.rest.definition_router import JSON_ONLY
from api.rest.schemas.route_match import (
    BackTestConfig,
    BackTestOut,
    ExplainRequest,
    Explanation,
    MessageRoutes,
    RouteExplanationOut,
)
from api.rest.schemas.topic import TopicMessageOut
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.errors import ValidationFailed
from storage.domain.filters.documents import Document, document_of, meta_of
from storage.domain.names import TopicName
from storage.domain.topics.message_id import TopicMessageId
from storage.domain.topics.report import RouteExplanation

router = APIRouter(prefix="/v1/topics", tags=["topics"], route_class=AuditedRoute)

READ = Depends(may(Action.TOPIC_READ))
MessagePath = Annotated[
    str, Path(description="Id of the message, as the response to its publication has it.")
]


@router.get("/{topic}/messages/{message}", dependencies=[READ])
async def get_published_message(
    topic: TopicPath, message: MessagePath, storage: StorageDep
) -> TopicMessageOut:
    """Show a message that was published to a topic."""
    message_id = TopicMessageId.parse(message)
    return TopicMessageOut.of(message_id, await storage.topic_reports.message(topic, message_id))


@router.get("/{topic}/messages/{message}/routes", dependencies=[READ])
async def get_message_routes(
    topic: TopicPath, message: MessagePath, storage: StorageDep
) -> MessageRoutes:
    """Show the routes that take a published message, and whether its targets have it.

    Which routes take a message is decided when it is accepted, and does not change.
    """
    message_id = TopicMessageId.parse(message)
    reports = storage.topic_reports
    record = await reports.message(topic, message_id)
    routes = await reports.routes_of_message(topic, message_id)
    return MessageRoutes.of(message, record.arrival_ms, routes)


@router.post("/{topic}/explain", dependencies=[READ, JSON_ONLY])
async def explain_message(
    topic: TopicPath, request: ExplainRequest, storage: StorageDep
) -> Explanation:
    """Explain for each route whether it takes a message, and if not, which condition fails.

    The message is not published. It is given, or one that was published is named by its `id`; the routes are those of now.
    """
    document = await _examined(storage, topic, request)
    explanations = storage.topic_reports.explain(topic, document, request.route or "")
    return await _explanation(document.subject, explanations)


async def _examined(storage: Storage, topic: TopicName, request: ExplainRequest) -> Document:
    if (request.message is None) == (request.id is None):
        detail = "Specify exactly one of 'message' and 'id'"
        raise ValidationFailed.at("/message", detail, "exclusive")
    if request.message is not None:
        return request.message.document(topic)
    message_id = TopicMessageId.parse(request.id or "")
    record = await storage.topic_reports.message(topic, message_id)
    return document_of(record.record, meta_of(topic.stream))


async def _explanation(subject: str, explanations: AsyncIterator[RouteExplanation]) -> Explanation:
    """Return the explanations, with those of routes that take the message first."""
    matching: list[RouteExplanationOut] = []
    others: list[RouteExplanationOut] = []
    routes = 0
    async for explanation in explanations:
        routes += 1
        shown = matching if explanation.matches else others
        if len(shown) < limits.EXPLAINED_ROUTES_MAX:
            shown.append(RouteExplanationOut.of(explanation))
    items = (matching + others)[: limits.EXPLAINED_ROUTES_MAX]
    return Explanation(
        subject=subject,
        matches=[item.route for item in matching],
        routes=items,
        complete=len(items) == routes,
    )


@router.post("/{topic}/backtests", dependencies=[READ, JSON_ONLY])
async def backtest_match(
    topic: TopicPath, request: BackTestConfig, storage: StorageDep
) -> BackTestOut:
    """Evaluate a match on the messages that a topic has, beside that of a route.

    Nothing is delivered. The answer is sent when all messages are evaluated. For more messages than one call evaluates, create a
    route with `"mode": "shadow"` and `"start": "earliest"`, which counts them.
    """
    result = await storage.back_tests.run(topic, request.to_domain())
    return BackTestOut.of(result, has_other=request.compare_with is not None)


# Examples of the OpenAPI document

PUBLISHED_ID = f"{STREAM_ID}-0-0"

EXAMPLES = {
    "get_published_message": Example(
        f"/v1/topics/orders/messages/{PUBLISHED_ID}",
        answer={
            "id": PUBLISHED_ID,
            "shard": 0,
            "offset": 0,
            "subject": "order.created",
            "key": "customer-7",
            "headers": {},
            "headers_base64": {},
            "content_type": "application/json",
            "dedup_id": "",
            "delay_seconds": None,
            "ttl_seconds": 0,
            "priority": 0,
            "body": {"id": 1, "total": 250},
            "body_base64": None,
            "published_at": AT,
        },
    ),
    "get_message_routes": Example(
        f"/v1/topics/orders/messages/{PUBLISHED_ID}/routes",
        answer={
            "id": PUBLISHED_ID,
            "published_at": AT,
            "routes": [{"route": "billing", "number": 1, "state": "finished"}],
        },
    ),
    "backtest_match": Example(
        "/v1/topics/orders/backtests",
        {
            "match": {"filter": {"body": {"total": [{"numeric": [">", 100]}]}}},
            "compare_with": "billing",
        },
        answer={
            "evaluated": 1,
            "matched": 1,
            "gained": 0,
            "lost": 0,
            "failed_by_path": {},
            "samples": {"matched": [PUBLISHED_ID], "gained": [], "lost": []},
            "complete": True,
        },
        repeat=Repeat.SAFE,
    ),
    "explain_message": Example(
        "/v1/topics/orders/explain",
        {"message": {"subject": "refund.created", "body": {"id": 1}}},
        answer={
            "subject": "refund.created",
            "matches": [],
            "routes": [
                {
                    "route": "billing",
                    "matches": False,
                    "failed": [
                        {
                            "match": 0,
                            "path": "subject",
                            "expected": ["order.*"],
                            "actual": ["refund.created"],
                        }
                    ],
                }
            ],
            "complete": True,
        },
        repeat=Repeat.SAFE,
    ),
}
