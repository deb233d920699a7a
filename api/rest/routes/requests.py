"""Requests: messages whose senders wait for replies (fast routes)."""

from collections.abc import Mapping

import msgspec

from api.errors import ClientDisconnected
from api.http.codecs import MSGPACK, StructBody, answer_type
from api.http.request import Call
from api.http.request_spans import with_callers_trace
from api.http.routing import FastRouter
from api.native.examples import AT, Example, Repeat
from api.native.fields import idempotency_key, to_ms, trace_headers
from api.native.settlements import PackedReply, SendReply
from api.rest.schemas.request import (
    AcceptedReply,
    PackedQueueRequest,
    PackedTopicRequest,
    PendingReplies,
    QueueRequest,
    RepliesOut,
    RepliesQuery,
    RequestReplies,
    TopicRequest,
    replies_out,
)
from storage.domain.access.permissions import Action
from storage.domain.errors import MillstreamError
from storage.domain.requests.token import RequestId
from storage.requests.deduplication import unique_dedup_id, unique_topic_dedup_id

fast_routes = FastRouter()

_REPLIES: Mapping[type[msgspec.Struct], int] = {RequestReplies: 200, PendingReplies: 202}


def _one_message(_: object) -> int:
    return 1


@fast_routes.post(
    "/v1/queues/{queue}/requests",
    body=StructBody(QueueRequest, PackedQueueRequest),
    answer=_REPLIES,
    action=Action.QUEUE_SEND,
    idempotent=True,
    sends=_one_message,
)
async def send_request(call: Call[QueueRequest]) -> RepliesOut:
    """Send a message to a queue, and wait for the reply of its receiver.

    The message expires at the deadline, `timeout_seconds` from now. If the wait ends first, the status is 202: ask again at the
    `Location`, from any process. A retry with the same Idempotency-Key sends nothing, and waits for the same replies.
    """
    body = call.body
    key = idempotency_key(call.headers)
    identity = key or body.dedup_id
    request = await _open(call, body, identity)
    dedup_id = body.dedup_id or await unique_dedup_id(call.storage.catalog, call.queue, request)
    message = body.message(request, dedup_id)
    call.metrics.received(1, len(message.body))
    [message] = with_callers_trace([message], trace_headers(call.headers))
    [sent] = await call.storage.queues.send(call.queue, [message], idempotency_key=key)
    call.metrics.confirmed(1, sent.duplicate)
    return await _wait(call, request, to_ms(body.wait_seconds))


@fast_routes.post(
    "/v1/topics/{topic}/requests",
    body=StructBody(TopicRequest, PackedTopicRequest),
    answer=_REPLIES,
    action=Action.TOPIC_PUBLISH,
    idempotent=True,
    sends=_one_message,
)
async def publish_request(call: Call[TopicRequest]) -> RepliesOut:
    """Publish a message to a topic, and gather the replies of its receivers.

    It waits until there are `replies_max` replies. If the wait ends first, the status is 202, with the replies so far: ask again
    at the `Location`. A retry with the same Idempotency-Key publishes nothing, and waits for the same replies.
    """
    body = call.body
    key = idempotency_key(call.headers)
    request = await _open(call, body, key or body.dedup_id)
    catalog = call.storage.catalog
    dedup_id = body.dedup_id or await unique_topic_dedup_id(catalog, call.topic, request)
    message = body.publication(request, dedup_id)
    call.metrics.received(1, len(message.body))
    results = await call.storage.topics.publish(call.topic, [message], idempotency_key=key)
    call.metrics.written(results)
    if isinstance(results[0], MillstreamError):
        raise results[0]
    return await _wait(call, request, to_ms(body.wait_seconds))


@fast_routes.get("/v1/requests/{request}/reply", action=None, answer=_REPLIES)
async def get_reply(call: Call[RepliesQuery]) -> RepliesOut:
    """Wait for the replies to a request, until there are as many as it accepts.

    Every caller of the namespace that has the request's token may do so, as often as it likes, until the replies expire. The
    status is 202 if the wait ended first.
    """
    return await _wait(call, call.request, to_ms(call.query.wait_seconds))


@fast_routes.post(
    "/v1/requests/{request}/replies",
    body=StructBody(SendReply, PackedReply),
    answer={AcceptedReply: 201},
    action=Action.QUEUE_RECEIVE,
    is_on_any_name=True,
    idempotent=True,
)
async def send_reply(call: Call[SendReply]) -> AcceptedReply:
    """Reply to a request: the `reply_to` of a received message.

    Reply first, then acknowledge: if you fail in between, the message is received again, and a second reply is refused with
    `reply_taken`.
    """
    reply = call.body.to_domain()
    await call.storage.requests.reply(call.request, reply, key=idempotency_key(call.headers))
    return AcceptedReply(call.request.name)


async def _open(
    call: Call[QueueRequest] | Call[TopicRequest], terms: QueueRequest | TopicRequest, key: str
) -> RequestId:
    """Return the address of the replies."""
    return await call.storage.requests.open(
        call.principal.namespace,
        resource="/".join(call.segments[2:4]),
        timeout_ms=terms.timeout_ms,
        replies_max=terms.replies_max,
        reply_ttl_ms=to_ms(terms.reply_ttl_seconds),
        idempotency_key=key,
    )


async def _wait(
    call: Call[QueueRequest] | Call[TopicRequest] | Call[RepliesQuery],
    request: RequestId,
    wait_ms: int,
) -> RepliesOut:
    """Wait for the replies. Raises ClientDisconnected."""
    replies = await call.storage.requests.replies(
        request, wait_ms=wait_ms, is_client_connected=call.is_client_connected
    )
    if wait_ms and not call.is_client_connected():
        raise ClientDisconnected
    return replies_out(request, replies, binary=answer_type(call.headers) == MSGPACK)


# Examples of the OpenAPI document

REQUEST = "AZwT7J4AAQA8MTIzNDU2Nzg5MDEyKQ33nVLaROm_kQ"
_PENDING = {"request": REQUEST, "replies": [], "complete": False}
_REPLY = {"body": {"total": 250}, "content_type": "application/json", "at": AT}

EXAMPLES = {
    "send_request": Example(
        "/v1/queues/orders/requests",
        {"body": {"order": 7}, "timeout_seconds": 60, "wait_seconds": 0},
        202,
        _PENDING,
        repeat=Repeat.KEYED,
    ),
    "send_reply": Example(
        f"/v1/requests/{REQUEST}/replies",
        {"body": {"total": 250}},
        201,
        {"request": REQUEST},
        repeat=Repeat.KEYED,
    ),
    "get_reply": Example(
        f"/v1/requests/{REQUEST}/reply?wait_seconds=1",
        answer={"request": REQUEST, "replies": [_REPLY], "complete": True, "timed_out": False},
    ),
    "publish_request": Example(
        "/v1/topics/prices/requests",
        {
            "body": {"id": 1},
            "subject": "price.requested",
            "replies_max": 10,
            "wait_seconds": 0,
        },
        202,
        _PENDING,
        before=(("PUT", "/v1/topics/prices", {}),),
        repeat=Repeat.KEYED,
    ),
}
