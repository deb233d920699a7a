"""Publishing of messages to topics (fast routes of a topic)."""

from collections.abc import Mapping
from functools import partial

import msgspec

from api.http.codecs import BytesBody, Items, ItemsBody
from api.http.request import Call
from api.http.routing import FastRouter
from api.native.examples import STREAM_ID, Example, Repeat
from api.native.fields import idempotency_key, stated_content_type, total_bytes
from api.native.publications import (
    PackedPublicationOrBatch,
    PublicationOrBatch,
    PublicationResult,
    PublishedMessageOut,
    PublishedMessages,
    PublishMessages,
    publication_from_raw,
)
from api.native.raw_queries import RawPublicationQuery
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.errors import MillstreamError
from storage.domain.topics.topic import NewPublication

fast_routes = FastRouter()

_MESSAGES = ItemsBody[NewPublication](
    "messages",
    documented=PublishMessages,
    json=PublicationOrBatch,
    packed=PackedPublicationOrBatch,
    items_max=limits.BATCH_RECORDS_MAX,
    raw=publication_from_raw,
    has_raw_endpoint=True,
)
_RAW_MESSAGE = BytesBody[NewPublication](
    partial(publication_from_raw, content_type_of=stated_content_type)
)
_PUBLISHED: Mapping[type[msgspec.Struct], int] = {PublishedMessages: 200, PublishedMessageOut: 201}


@fast_routes.post(
    "/v1/topics/{topic}/messages",
    body=_MESSAGES,
    answer=_PUBLISHED,
    action=Action.TOPIC_PUBLISH,
    idempotent=True,
)
async def publish_messages(
    call: Call[Items[NewPublication]],
) -> PublishedMessages | PublishedMessageOut:
    """Publish messages to a topic.

    The response is sent when the messages are on disk with the decision which routes take them; their copies follow. On a FIFO topic
    a repeated `dedup_id` adds nothing, and is answered with the first message and `duplicate`. Each message
    has its own result: check `failed`. A single message can be sent as an object or as a raw body of any other content type, with
    its subject in the header `Millstream-Subject`; the response is then one object, or a problem.
    """
    messages = call.body.values
    call.metrics.received(len(messages), total_bytes([message.body for message in messages]))
    results = await call.storage.topics.publish(
        call.topic, messages, idempotency_key=idempotency_key(call.headers)
    )
    failed = call.metrics.written(results)
    if not call.body.single:
        return PublishedMessages([PublicationResult.from_domain(one) for one in results], failed)
    [only] = results
    if isinstance(only, MillstreamError):
        raise only
    return PublishedMessageOut.from_domain(only)


@fast_routes.post(
    "/v1/topics/{topic}/messages/raw",
    body=_RAW_MESSAGE,
    query=RawPublicationQuery,
    answer={PublishedMessageOut: 201},
    action=Action.TOPIC_PUBLISH,
    idempotent=True,
)
async def publish_raw_message(call: Call[Items[NewPublication]]) -> PublishedMessageOut:
    """Publish the request's body as a message, whatever its content type.

    For programs whose requests you cannot shape, such as webhooks of other services. The message has the request's content
    type; its other fields are in headers (`Millstream-Subject`, `Millstream-Key`, `Millstream-Dedup-Id`, `Millstream-Header-Name`, …) or in the query.
    """
    published = await publish_messages(call)
    assert isinstance(published, PublishedMessageOut)
    return published


# Examples of the OpenAPI document

_PUBLISHED_EXAMPLE = {
    "id": f"{STREAM_ID}-0-0",
    "shard": 0,
    "offset": 0,
    "duplicate": False,
    "routes": 1,
}

EXAMPLES = {
    "publish_messages": Example(
        "/v1/topics/orders/messages",
        {
            "messages": [
                {
                    "body": {"id": 1, "total": 250},
                    "subject": "order.created",
                    "key": "customer-7",
                }
            ]
        },
        200,
        {"messages": [_PUBLISHED_EXAMPLE], "failed": 0},
        repeat=Repeat.KEYED,
    ),
    "publish_raw_message": Example(
        "/v1/topics/hooks/messages/raw?subject=order.created",
        {"page": "/cart"},
        201,
        {**_PUBLISHED_EXAMPLE, "routes": 0},
        before=(("PUT", "/v1/topics/hooks", {}),),
        repeat=Repeat.KEYED,
    ),
}
