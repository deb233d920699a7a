"""Sending, receiving and settling messages (fast routes of a queue)."""

from collections.abc import Sequence
from functools import partial

from api.auth.consumers import consumer_of
from api.errors import ClientDisconnected
from api.http.codecs import MSGPACK, BytesBody, Items, ItemsBody, answer_type
from api.http.request import Call
from api.http.request_spans import with_callers_trace, with_span_context
from api.http.routing import FastRouter
from api.native.cursors import decode_cursor, encode_cursor
from api.native.examples import AT, BROWSED, LATER, MESSAGE_ID, Example, Repeat
from api.native.fields import (
    idempotency_key,
    optional_ms,
    stated_content_type,
    trace_headers,
)
from api.native.messages import (
    MessageOrBatch,
    PackedMessageOrBatch,
    Receive,
    ReceivedMessageOut,
    ReceivedMessages,
    SendMessages,
    SentMessageOut,
    SentMessages,
    message_from_raw,
)
from api.native.raw_queries import RawMessageQuery
from api.native.settlements import (
    PackedSettlementOrBatch,
    Settle,
    SettlementOrBatch,
    SettleResults,
    count_settled,
    settle_results,
)
from api.observability.tracing import contexts_of
from api.rest.schemas.browsed_message import (
    BrowsedMessageOut,
    BrowsedMessages,
    BrowseQuery,
    DeadLetterOut,
    DeadLetterQuery,
    DeadLetters,
)
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.queues.consumer import ConsumerProtocol
from storage.domain.queues.message import NewMessage, ReceivedMessage, Settlement
from storage.domain.trace_context import context_of
from storage.queues.message_filter import selects_message
from storage.requests.settlements import settle

fast_routes = FastRouter()

_SEND = ItemsBody[NewMessage](
    "messages",
    documented=SendMessages,
    json=MessageOrBatch,
    packed=PackedMessageOrBatch,
    items_max=limits.BATCH_MESSAGES_MAX,
    raw=message_from_raw,
    has_raw_endpoint=True,
)
_SEND_RAW = BytesBody[NewMessage](partial(message_from_raw, content_type_of=stated_content_type))
_SETTLE = ItemsBody[Settlement](
    "settlements",
    documented=Settle,
    json=SettlementOrBatch,
    packed=PackedSettlementOrBatch,
    items_max=limits.SETTLEMENTS_MAX,
    lines=False,
)


@fast_routes.post(
    "/v1/queues/{queue}/messages",
    body=_SEND,
    answer={SentMessages: 201, SentMessageOut: 201},
    action=Action.QUEUE_SEND,
    idempotent=True,
)
async def send_messages(call: Call[Items[NewMessage]]) -> SentMessages | SentMessageOut:
    """Send messages to a queue: all of them or none.

    A single message can be sent as an object or as a raw body of any other content type (`curl -d hello`); the response
    is then one object.
    """
    callers = trace_headers(call.headers)
    messages = call.body.values
    if callers:
        messages = with_callers_trace(messages, callers)
    if call.trace is not None:
        own = (context_of(message.headers) for message in call.body.values)
        call.trace.add_links(own, len(messages))
        messages = messages if callers else with_span_context(messages, call.trace)
    call.metrics.received(len(messages), sum([len(message.body) for message in messages]))
    sent = await call.storage.queues.send(
        call.queue, messages, idempotency_key=idempotency_key(call.headers)
    )
    call.metrics.confirmed(len(sent), sum([message.duplicate for message in sent]))
    if call.body.single:
        return SentMessageOut.from_domain(sent[0])
    return SentMessages([SentMessageOut.from_domain(message) for message in sent])


@fast_routes.post(
    "/v1/queues/{queue}/messages/raw",
    body=_SEND_RAW,
    query=RawMessageQuery,
    answer={SentMessageOut: 201},
    action=Action.QUEUE_SEND,
    idempotent=True,
)
async def send_raw_message(call: Call[Items[NewMessage]]) -> SentMessageOut:
    """Send the request's body as a message, whatever its content type.

    For programs whose requests you cannot shape, such as webhooks of other services. The message has the request's content
    type; its other fields are in headers (`Millstream-Group`, `Millstream-Header-Name`, …) or in the query.
    """
    sent = await send_messages(call)
    assert isinstance(sent, SentMessageOut)
    return sent


@fast_routes.post("/v1/queues/{queue}/receive", action=Action.QUEUE_RECEIVE)
async def receive_messages(call: Call[Receive]) -> ReceivedMessages:
    """Receive messages.

    Each message is hidden from other consumers until its visibility timeout expires: settle it before then. With
    `wait_seconds`, the call waits for the first message; an empty list means that none arrived.
    """
    receive = call.body
    messages = await call.storage.queues.receive(
        call.queue,
        messages_max=receive.messages_max,
        visibility_timeout_ms=optional_ms(receive.visibility_timeout_seconds),
        wait_ms=optional_ms(receive.wait_seconds),
        attempt_id=receive.attempt_id,
        is_client_connected=call.is_client_connected,
        consumer=consumer_of(call.principal, ConsumerProtocol.REST, call.client, call.headers),
    )
    if messages or receive.wait_seconds != 0:
        await _release_if_disconnected(call, messages)
    call.metrics.delivered(messages)
    if call.trace is not None:
        call.trace.add_links(contexts_of(messages), len(messages))
    binary = answer_type(call.headers) == MSGPACK
    return ReceivedMessages([ReceivedMessageOut.from_domain(one, binary) for one in messages])


async def _release_if_disconnected(
    call: Call[Receive], messages: Sequence[ReceivedMessage]
) -> None:
    """Release the messages when the client has disconnected. Raises ClientDisconnected."""
    if not call.is_client_connected():
        if messages:
            await call.storage.queues.release(call.queue, messages)
        raise ClientDisconnected


@fast_routes.post("/v1/queues/{queue}/settle", body=_SETTLE, action=Action.QUEUE_RECEIVE)
async def settle_messages(call: Call[Items[Settlement]]) -> SettleResults:
    """Settle deliveries.

    ack: processed. nack: failed; redelivered after `delay_seconds` or the queue's back-off. release: not attempted;
    redelivered immediately. extend: still processing; hidden for `visibility_timeout_seconds` from now. reject: failed
    permanently; dead-lettered. Each settlement has its own result. An ack can have the `reply` to a request, which is sent first.
    """
    settlements = call.body.values
    storage = call.storage
    settled = await settle(storage.requests, storage.queues, call.queue, settlements)
    count_settled(call.metrics, settlements, settled)
    return SettleResults(settle_results(settled))


@fast_routes.get("/v1/queues/{queue}/messages", action=Action.QUEUE_PEEK)
async def browse_messages(call: Call[BrowseQuery]) -> BrowsedMessages:
    """Browse messages without receiving them: all, or those that match a filter.

    A filtered page may be short or empty and yet not be the last: it ends after 1000 messages were examined.
    """
    query = call.query
    queue = await call.storage.catalog.queue(call.queue)
    message_filter = query.to_filter()
    about = ("messages", queue.log_id, query.state or "", *message_filter.terms)
    after = decode_cursor(query.cursor, about, int) if query.cursor else -1
    messages, last = await call.storage.inspector.browse(
        call.queue,
        after_offset=after,
        messages_max=query.limit,
        state=query.state,
        selects=selects_message(message_filter),
    )
    binary = answer_type(call.headers) == MSGPACK
    consumers = await call.storage.queue_consumers.receivers_of(call.queue, messages)
    return BrowsedMessages(
        [BrowsedMessageOut.from_domain(message, binary, consumers) for message in messages],
        None if last is None else encode_cursor(about, last),
    )


@fast_routes.get("/v1/queues/{queue}/dead-letters", action=Action.QUEUE_PEEK)
async def list_dead_letters(call: Call[DeadLetterQuery]) -> DeadLetters:
    """List the dead letters of a queue, oldest first: all, or those that match a filter.

    A filtered page may be short or empty and yet not be the last: it ends after 1000 dead letters were examined.
    """
    query = call.query
    queue = await call.storage.catalog.queue(call.queue)
    message_filter = query.to_filter(query.reason)
    about = ("dead-letters", queue.log_id, *message_filter.terms)
    after = decode_cursor(query.cursor, about, int) if query.cursor else -1
    letters, last = await call.storage.dead_letters.browse(
        call.queue,
        after_offset=after,
        messages_max=query.limit,
        selects=selects_message(message_filter),
    )
    binary = answer_type(call.headers) == MSGPACK
    consumers = await call.storage.queue_consumers.receivers_of(call.queue, letters)
    return DeadLetters(
        [DeadLetterOut.from_domain(letter, binary, consumers) for letter in letters],
        None if last is None else encode_cursor(about, last),
    )


# Examples of the OpenAPI document

_HANDLE = "lbAxYzdlNGE5MDViM2RmMjFhB88AAAGbbHnEAAHPAAABm2x5xAA"
_RECEIVED = {
    "id": MESSAGE_ID,
    "body": {"order": 7},
    "content_type": "application/json",
    "headers": {"source": "web"},
    "receipt_handle": _HANDLE,
    "offset": 7,
    "sent_at": AT,
    "first_received_at": AT,
    "visible_at": LATER,
    "receive_count": 1,
    "failures": 0,
    "crash_count": 0,
}
_DEAD = {
    "id": MESSAGE_ID,
    "body": "hello",
    "offset": 7,
    "reason": "not an order",
    "sent_at": AT,
    "died_at": LATER,
    "receive_count": 1,
    "failures": 0,
    "crash_count": 0,
}

EXAMPLES = {
    "send_messages": Example(
        "/v1/queues/orders/messages",
        {"messages": [{"body": {"order": 7}, "headers": {"source": "web"}}, {"body": "hello"}]},
        201,
        {
            "messages": [
                {"id": MESSAGE_ID, "offset": 7, "duplicate": False},
                {"id": MESSAGE_ID[:-1] + "8", "offset": 8, "duplicate": False},
            ]
        },
        repeat=Repeat.KEYED,
    ),
    "send_raw_message": Example(
        "/v1/queues/hooks/messages/raw?keep_headers=webhook-",
        {"type": "order.paid"},
        201,
        {"id": MESSAGE_ID, "offset": 0, "duplicate": False},
        before=(("PUT", "/v1/queues/hooks", {}),),
        repeat=Repeat.KEYED,
    ),
    "receive_messages": Example(
        "/v1/queues/orders/receive",
        {"messages_max": 10, "wait_seconds": 1},
        200,
        {"messages": [_RECEIVED]},
        guards=("attempt_id",),  # of a fifo queue
    ),
    "settle_messages": Example(
        "/v1/queues/orders/settle",
        {"settlements": [{"receipt_handle": _HANDLE, "action": "ack"}]},
        200,
        {
            "results": [
                {
                    "status": "error",
                    "error": {
                        "code": "receipt_handle_invalid",
                        "detail": "The receipt handle was not issued by this queue.",
                        "retryable": False,
                    },
                }
            ]
        },
        repeat=Repeat.SAFE,  # an acknowledgement may be given twice; other verdicts end the delivery
    ),
    "browse_messages": Example(
        "/v1/queues/orders/messages?state=ready&limit=10",
        answer={"items": [BROWSED], "next_cursor": None},
    ),
    "list_dead_letters": Example(
        "/v1/queues/orders/dead-letters?limit=10", answer={"items": [_DEAD], "next_cursor": None}
    ),
}
