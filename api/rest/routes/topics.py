"""Topics: configuration and counts."""

from typing import Any

from fastapi import Depends

from api.native.dependencies import StorageDep, TopicPath, may
from api.native.examples import AT, CREATED, LATER, Example
from api.rest.definition_router import definition_router
from api.rest.noun import Noun, Schemas, Verbs, verbs_of
from api.rest.schemas.topic import (
    TopicConfig,
    TopicOut,
    TopicPage,
    TopicPatch,
    TopicStats,
    TopicStored,
)
from storage.bootstrap import Storage
from storage.domain.access.permissions import Action, Principal

SEE = Depends(may(Action.TOPIC_LIST))


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
            queue or a stream, once. On a topic of the type `fifo` a repeated deduplication id adds nothing. The log is the stream `topic:<name>`, which readers, groups and replays can name. With
            `If-None-Match: *`, an existing topic is not changed: the response is 412, with the topic (`current`) and the requested
            fields that differ from it (`changes`).
            """,
        "get": "Show a topic's configuration.",
        "change": "Change fields of a topic's configuration.",
        "delete": """Delete a topic with its messages and routes.

            Messages that routes have not delivered yet are lost. The routes' targets are kept.
            """,
        "list": "List topics by name, and behind them streams that have routes, as `stream:<name>`.",
    },
)
router = definition_router(TOPICS)


@router.get("/{topic}/stats", dependencies=[SEE])
async def get_topic_stats(topic: TopicPath, storage: StorageDep) -> TopicStats:
    """Count the messages of a topic, and those that are not yet examined for its routes."""
    return TopicStats.of(await storage.topic_reports.status(topic))


# Examples of the OpenAPI document

_TOPIC: dict[str, Any] = {
    "name": "orders",
    "stream": "topic:orders",
    "type": "standard",
    "shards": 1,
    "open_shards": 1,
    "unmatched": "drop",
    "deduplicate_by_content": False,
    "dedup_scope": "topic",
    "message_bytes_max": 1048576,
    "retention_seconds": 345600,
    "retention_bytes": None,
    "archive": False,
    "tags": {},
    "version": 1,
    "created_at": AT,
    "changed_at": AT,
}

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
    "delete_topic": Example("/v1/topics/orders", status=204),
}
