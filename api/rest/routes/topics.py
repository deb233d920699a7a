"""Topics: configuration, counts, published messages, and why routes take them."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import Depends, Path

from api.native.dependencies import StorageDep, TopicPath, may
from api.native.examples import AT, CREATED, LATER, STREAM_ID, Example, Repeat
from api.rest.definition_router import JSON_ONLY, definition_router
from api.rest.noun import Noun, Schemas, Verbs, verbs_of
from api.rest.schemas.route import (
    ExplainRequest,
    Explanation,
    MessageRoutes,
    RouteExplanationOut,
)
from api.rest.schemas.topic import (
    TopicConfig,
    TopicMessageOut,
    TopicOut,
    TopicPage,
    TopicPatch,
    TopicStats,
    TopicStored,
)
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.access.permissions import Action, Principal
from storage.domain.errors import ValidationFailed
from storage.domain.names import TopicName
from storage.domain.topics.message_id import TopicMessageId
from storage.domain.topics.report import RouteExplanation
from storage.domain.topics.topic import NewPublication

SEE = Depends(may(Action.TOPIC_LIST))
READ = Depends(may(Action.TOPIC_READ))
MessagePath = Annotated[
    str, Path(description="Id of the message, as the response to its publication has it.")
]


def _verbs(storage: Storage, _: Principal) -> Verbs:
    topics = storage.topics
    return verbs_of(topics, get=topics.fresh, list=topics.list_topics)


TOPICS = Noun(
    name="topic",
    path=TopicPath,
    schemas=Schemas(TopicOut, TopicConfig, TopicStored, TopicPatch, TopicPage),
    verbs=_verbs,
    text=lambda topic: str(topic.name.topic.name),
    is_etag_complete=True,
    descriptions={
        "put": """Create a topic, or replace its configuration.

            A topic is a log that messages are published to under a subject. Its routes copy each message that they match to a
            queue or a stream, once. The log is the stream `topic:<name>`, which readers, groups and replays can name. With
            `If-None-Match: *`, an existing topic is not changed: the response is 412, with the topic (`current`) and the requested
            fields that differ from it (`changes`).
            """,
        "get": "Show a topic's configuration.",
        "change": "Change fields of a topic's configuration.",
        "delete": """Delete a topic with its messages and routes.

            Messages that routes have not delivered yet are lost. The routes' targets are kept.
            """,
        "list": "List topics by name.",
    },
)
router = definition_router(TOPICS)


@router.get("/{topic}/stats", dependencies=[SEE])
async def get_topic_stats(topic: TopicPath, storage: StorageDep) -> TopicStats:
    """Count the messages of a topic, and those that are not yet examined for its routes."""
    return TopicStats.of(await storage.topic_reports.status(topic))


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
    message = await _examined(storage, topic, request)
    document = message.document(topic)
    explanations = storage.topic_reports.explain(topic, document, request.route or "")
    return await _explanation(message.subject, explanations)


async def _examined(storage: Storage, topic: TopicName, request: ExplainRequest) -> NewPublication:
    if (request.message is None) == (request.id is None):
        detail = "Specify exactly one of 'message' and 'id'"
        raise ValidationFailed.at("/message", detail, "exclusive")
    if request.message is not None:
        return request.message.to_domain()
    message_id = TopicMessageId.parse(request.id or "")
    record = await storage.topic_reports.message(topic, message_id)
    return NewPublication.of_record(record.record)


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


# Examples of the OpenAPI document

_TOPIC: dict[str, Any] = {
    "name": "orders",
    "stream": "topic:orders",
    "shards": 1,
    "open_shards": 1,
    "unmatched": "drop",
    "message_bytes_max": 1048576,
    "retention_seconds": 345600,
    "retention_bytes": None,
    "archive": False,
    "tags": {},
    "version": 1,
    "created_at": AT,
    "changed_at": AT,
}
PUBLISHED_ID = f"{STREAM_ID}-0-0"

EXAMPLES = {
    "put_topic": Example("/v1/topics/orders", {}, 201, {**_TOPIC, **CREATED}),
    "get_topic": Example("/v1/topics/orders", answer=_TOPIC),
    "change_topic": Example(
        "/v1/topics/orders",
        {"unmatched": "refuse"},
        200,
        {**_TOPIC, "unmatched": "refuse", "version": 2, "changed_at": LATER},
    ),
    "list_topics": Example("/v1/topics?prefix=or", answer={"items": [_TOPIC], "next_cursor": None}),
    "get_topic_stats": Example(
        "/v1/topics/orders/stats",
        answer={
            "messages": 1,
            "bytes_held": 512,
            "routes": 1,
            "lag_messages": 0,
            "lag_seconds": 0,
        },
    ),
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
    "delete_topic": Example("/v1/topics/orders", status=204),
}
