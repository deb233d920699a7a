"""Sending over a socket: publishes, requests and replies, one after another.

At its `ok` a publish is as durable as after the HTTP call. A request is answered when its replies are there.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import assert_never

import msgspec
from msgspec.structs import replace

from api.http.request_spans import contexts_of_records, records_with_span_context, with_span_context
from api.http.responses import RequestContext, log_failure
from api.native.fields import to_ms, total_bytes
from api.native.messages import SentMessageOut
from api.native.problems import code_of, status_of
from api.native.publications import PublicationResult
from api.native.records import AppendedOut
from api.observability.metric_buffers import ProtocolMetrics
from api.observability.tracing import SEND, TraceSpan, Tracing, failure_of
from api.websocket.connection import SocketClosed
from api.websocket.frames import ClientReply, Publish, Request, Sending, ServerOk
from api.websocket.reply_waiter import ReplyWaiter
from api.websocket.session import PushSession
from storage.access.authorization import Authorizer
from storage.catalog.catalog import Catalog
from storage.concurrency.batcher import Batcher
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.errors import MillstreamError, ValidationFailed
from storage.domain.names import QueueName, StreamName, TopicName
from storage.domain.queues.message import NewMessage, SentMessage
from storage.domain.requests.token import REPLY_TO, RequestId
from storage.domain.topics.topic import NewPublication, Published
from storage.domain.trace_context import context_of
from storage.queues.engine import Queues
from storage.quotas.enforcer import QuotaEnforcer
from storage.requests.deduplication import unique_dedup_id, unique_topic_dedup_id
from storage.requests.engine import Requests
from storage.streams.engine import Streams
from storage.topics.engine import Topics


class PublishMetrics(msgspec.Struct, frozen=True):
    """Metrics of published messages and records."""

    queues: ProtocolMetrics
    streams: ProtocolMetrics
    topics: ProtocolMetrics


class Publisher(msgspec.Struct, frozen=True, kw_only=True):
    """Publisher for all sessions; publishes of one session run in the order of its frames."""

    queues: Queues
    streams: Streams
    topics: Topics
    requests: Requests
    replies: ReplyWaiter
    access: Authorizer
    quotas: QuotaEnforcer
    metrics: PublishMetrics
    catalog: Catalog
    tracing: Tracing | None = None

    async def publish(self, session: PushSession, frame: Sending) -> None:
        """Queue a frame for publishing; the answer is sent when it is done."""
        if session.publishing is None:
            session.publishing = Batcher(
                partial(self._publish_all, session), backlog_max=limits.PUSH_PENDING_MAX
            )
        await session.publishing.add(frame)

    async def _publish_all(self, session: PushSession, frames: Sequence[Sending]) -> None:
        for frame in frames:
            try:
                answer = await self._publish(session, frame)
            except Exception as error:
                context = RequestContext(session.principal)
                log_failure(
                    error, _tag(frame), status_of(code_of(error)), frame.id.encode(), context
                )
                payload = session.wire.failure(error, id_=frame.id)
            else:
                if answer is None:
                    continue
                payload = session.wire.encode(answer)
            with suppress(
                SocketClosed
            ):  # it is published anyway; a retry with its key adds nothing
                await session.send_bytes(payload)

    async def _publish(self, session: PushSession, frame: Sending) -> ServerOk | None:
        if self.tracing is None:
            return await self._do(session, frame, None)
        trace = self.tracing.start_span(SEND, _tag(frame), _destination(frame), b"")
        trace.set_attributes({"millstream.namespace": session.principal.namespace})
        try:
            answer = await self._do(session, frame, trace)
        except Exception as error:
            trace.end(status_of(code_of(error)), failure_of(error))
            raise
        trace.end(200)
        return answer

    async def _do(
        self, session: PushSession, frame: Sending, trace: TraceSpan | None
    ) -> ServerOk | None:
        match frame:
            case Publish():
                return await self._publish_items(session, frame, trace)
            case Request():
                await self._request(session, frame, trace)
                return None  # it is answered with its replies
            case ClientReply():
                return await self._reply(session, frame)
            case _:
                assert_never(frame)

    # Publishing

    async def _publish_items(
        self, session: PushSession, frame: Publish, trace: TraceSpan | None
    ) -> ServerOk:
        kind, _, word = frame.to.partition(":")
        namespace = session.principal.namespace
        if kind == "queue":
            return await self._publish_messages(session, frame, QueueName(word, namespace), trace)
        if kind == "topic":
            return await self._publish_to_topic(session, frame, TopicName(word, namespace))
        return await self._append(session, frame, StreamName(word, namespace), trace)

    async def _publish_messages(
        self, session: PushSession, frame: Publish, queue: QueueName, trace: TraceSpan | None
    ) -> ServerOk:
        self.access.authorise(session.principal, Action.QUEUE_SEND, str(queue))
        messages = [session.wire.message(item) for item in frame.items]
        sent = await self._send(session, queue, messages, frame.idempotency_key, trace)
        return ServerOk(frame.id, [SentMessageOut.from_domain(message) for message in sent], 0)

    async def _publish_to_topic(
        self, session: PushSession, frame: Publish, topic: TopicName
    ) -> ServerOk:
        self.access.authorise(session.principal, Action.TOPIC_PUBLISH, str(topic))
        messages = [session.wire.publication(item) for item in frame.items]
        results, failed = await self._send_to_topic(session, topic, messages, frame.idempotency_key)
        return ServerOk(frame.id, [PublicationResult.from_domain(one) for one in results], failed)

    async def _append(
        self, session: PushSession, frame: Publish, stream: StreamName, trace: TraceSpan | None
    ) -> ServerOk:
        self.access.authorise(session.principal, Action.STREAM_PUT, str(stream))
        records = [session.wire.record(item) for item in frame.items]
        if trace is not None:
            trace.add_links(contexts_of_records(records), len(records))
            bytes_max = (await self.catalog.stream(stream)).spec.record_bytes_max
            records = records_with_span_context(records, trace, bytes_max)
        metrics = self.metrics.streams
        size_bytes = total_bytes([record.data for record in records])
        await self._spend(session, f"stream/{stream.name}", len(records), size_bytes)
        metrics.received(len(records), size_bytes)
        results = await self.streams.append(stream, records, idempotency_key=frame.idempotency_key)
        failed = metrics.written(results)
        return ServerOk(frame.id, [AppendedOut.from_domain(one) for one in results], failed)

    async def _send(
        self,
        session: PushSession,
        queue: QueueName,
        messages: Sequence[NewMessage],
        key: str,
        trace: TraceSpan | None,
    ) -> list[SentMessage]:
        if trace is not None:
            trace.add_links((context_of(message.headers) for message in messages), len(messages))
            messages = with_span_context(messages, trace)
        metrics = self.metrics.queues
        size_bytes = total_bytes([message.body for message in messages])
        await self._spend(session, f"queue/{queue.name}", len(messages), size_bytes)
        metrics.received(len(messages), size_bytes)
        sent = await self.queues.send(queue, messages, idempotency_key=key)
        metrics.confirmed(len(sent), sum([message.duplicate for message in sent]))
        return sent

    async def _send_to_topic(
        self, session: PushSession, topic: TopicName, messages: Sequence[NewPublication], key: str
    ) -> tuple[list[Published | MillstreamError], int]:
        """Return a result for each message, and the number of those that were refused."""
        metrics = self.metrics.topics
        size_bytes = total_bytes([message.body for message in messages])
        await self._spend(session, f"topic/{topic.name}", len(messages), size_bytes)
        metrics.received(len(messages), size_bytes)
        results = await self.topics.publish(topic, messages, idempotency_key=key)
        return results, metrics.written(results)

    # Requests

    async def _request(self, session: PushSession, frame: Request, trace: TraceSpan | None) -> None:
        kind, _, word = frame.to.partition(":")
        namespace = session.principal.namespace
        self.replies.check_capacity(session)
        if kind == "queue":
            queue = QueueName(word, namespace)
            request = await self._request_of_queue(session, frame, queue, trace)
        else:
            request = await self._request_of_topic(session, frame, TopicName(word, namespace))
        self.replies.start(session, frame.id, request)

    async def _request_of_queue(
        self, session: PushSession, frame: Request, queue: QueueName, trace: TraceSpan | None
    ) -> RequestId:
        self.access.authorise(session.principal, Action.QUEUE_SEND, str(queue))
        message = session.wire.message(frame.message)
        _check_times(message.delay_ms, message.ttl_ms)
        request = await self._open(frame, queue, frame.idempotency_key or message.dedup_id)
        message = replace(
            message,
            dedup_id=message.dedup_id or await unique_dedup_id(self.catalog, queue, request),
            system=((REPLY_TO, "", request.name.encode()),),
            ttl_ms=to_ms(frame.timeout_seconds),
        )
        await self._send(session, queue, [message], frame.idempotency_key, trace)
        return request

    async def _request_of_topic(
        self, session: PushSession, frame: Request, topic: TopicName
    ) -> RequestId:
        self.access.authorise(session.principal, Action.TOPIC_PUBLISH, str(topic))
        message = session.wire.publication(frame.message)
        own = message.options
        _check_times(own.delay_ms, own.ttl_ms)
        request = await self._open(frame, topic, frame.idempotency_key or own.dedup_id)
        unique = await unique_topic_dedup_id(self.catalog, topic, request)
        options = own if own.dedup_id or not unique else own._replace(dedup_id=unique)
        message = replace(message, reply_to=request.name, options=options)
        [result], _ = await self._send_to_topic(session, topic, [message], frame.idempotency_key)
        if isinstance(result, MillstreamError):
            raise result
        return request

    async def _open(self, frame: Request, name: QueueName | TopicName, key: str) -> RequestId:
        """Return the address of the replies."""
        kind, _, word = frame.to.partition(":")
        return await self.requests.open(
            name.namespace,
            resource=f"{kind}s/{word}",
            timeout_ms=to_ms(frame.timeout_seconds),
            replies_max=frame.replies_max,
            reply_ttl_ms=to_ms(frame.reply_ttl_seconds),
            idempotency_key=key,
        )

    async def _reply(self, session: PushSession, frame: ClientReply) -> ServerOk:
        self.access.authorise_list(session.principal, Action.QUEUE_RECEIVE)
        reply = session.wire.reply(frame.reply)
        await self._spend(session, "", 0, 0)
        request = RequestId(reply.request, session.principal.namespace)
        await self.requests.reply(request, reply.to_domain(), key=frame.idempotency_key)
        return ServerOk(frame.id)

    async def _spend(
        self, session: PushSession, resource: str, messages: int, size_bytes: int
    ) -> None:
        """Charge a publish to the quota as one call. Raises QuotaExceeded."""
        waiting = self.quotas.acquire(
            session.principal, resource, messages=messages, size_bytes=size_bytes
        )
        if waiting is not None:
            await waiting


def _tag(frame: Sending) -> str:
    return str(frame.__struct_config__.tag)


def _destination(frame: Sending) -> str:
    """Return the name of the queue, stream or topic that a frame sends to."""
    return "" if isinstance(frame, ClientReply) else frame.to.partition(":")[2]


def _check_times(delay_ms: int | None, ttl_ms: int) -> None:
    """Raise ValidationFailed for a request with a delay or a time to live of its own."""
    if ttl_ms or delay_ms is not None:
        field = "ttl_seconds" if ttl_ms else "delay_seconds"
        detail = "A request is due at once, and expires at its deadline"
        raise ValidationFailed.at(f"/message/{field}", detail, "conflict")
