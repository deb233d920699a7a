"""Publishing over a socket, one publish after another.

At its `ok` a publish is as durable as after the HTTP call.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import msgspec

from api.http.request_spans import contexts_of_records, records_with_span_context, with_span_context
from api.http.responses import RequestContext, log_failure
from api.native.fields import total_bytes
from api.native.messages import SentMessageOut
from api.native.problems import problem
from api.native.records import AppendedOut
from api.observability.metric_buffers import ProtocolMetrics
from api.observability.tracing import SEND, TraceSpan, Tracing, failure_of
from api.websocket.connection import SocketClosed
from api.websocket.frames import Publish, ServerOk
from api.websocket.session import PushSession
from storage.access.authorization import Authorizer
from storage.catalog.catalog import Catalog
from storage.concurrency.batcher import Batcher
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.names import QueueName, StreamName
from storage.domain.trace_context import context_of
from storage.queues.engine import Queues
from storage.quotas.enforcer import QuotaEnforcer
from storage.streams.engine import Streams


class PublishMetrics(msgspec.Struct, frozen=True):
    """Metrics of published messages and records."""

    queues: ProtocolMetrics
    streams: ProtocolMetrics


class Publisher(msgspec.Struct, frozen=True, kw_only=True):
    """Publisher for all sessions; publishes of one session run in the order of its frames."""

    queues: Queues
    streams: Streams
    access: Authorizer
    quotas: QuotaEnforcer
    metrics: PublishMetrics
    catalog: Catalog
    tracing: Tracing | None = None

    async def publish(self, session: PushSession, frame: Publish) -> None:
        """Queue a frame for publishing; the answer is sent when it is done."""
        if session.publishing is None:
            session.publishing = Batcher(
                partial(self._publish_all, session), backlog_max=limits.PUSH_PENDING_MAX
            )
        await session.publishing.add(frame)

    async def _publish_all(self, session: PushSession, frames: Sequence[Publish]) -> None:
        for frame in frames:
            try:
                answer = await self._publish(session, frame)
            except Exception as error:
                context = RequestContext(session.principal)
                log_failure(error, "publish", _status_of(error), frame.id.encode(), context)
                payload = session.wire.failure(error, id_=frame.id)
            else:
                payload = session.wire.encode(answer)
            with suppress(
                SocketClosed
            ):  # it is published anyway; a retry with its key adds nothing
                await session.send_bytes(payload)

    async def _publish(self, session: PushSession, frame: Publish) -> ServerOk:
        if self.tracing is None:
            return await self._do(session, frame, None)
        _, _, word = frame.to.partition(":")
        trace = self.tracing.start_span(SEND, "publish", word, b"")
        trace.set_attributes({"millstream.namespace": session.principal.namespace})
        try:
            answer = await self._do(session, frame, trace)
        except Exception as error:
            trace.end(_status_of(error), failure_of(error))
            raise
        trace.end(200)
        return answer

    async def _do(self, session: PushSession, frame: Publish, trace: TraceSpan | None) -> ServerOk:
        kind, _, word = frame.to.partition(":")
        namespace = session.principal.namespace
        if kind == "queue":
            return await self._send(session, frame, QueueName(word, namespace), trace)
        return await self._append(session, frame, StreamName(word, namespace), trace)

    async def _send(
        self, session: PushSession, frame: Publish, queue: QueueName, trace: TraceSpan | None
    ) -> ServerOk:
        self.access.authorise(session.principal, Action.QUEUE_SEND, str(queue))
        messages = [session.wire.message(item) for item in frame.items]
        if trace is not None:
            trace.add_links((context_of(message.headers) for message in messages), len(messages))
            messages = with_span_context(messages, trace)
        metrics = self.metrics.queues
        size_bytes = total_bytes([message.body for message in messages])
        await self._spend(session, f"queue/{queue.name}", len(messages), size_bytes)
        metrics.received(len(messages), size_bytes)
        sent = await self.queues.send(queue, messages, idempotency_key=frame.idempotency_key)
        metrics.confirmed(len(sent), sum([message.duplicate for message in sent]))
        return ServerOk(frame.id, [SentMessageOut.from_domain(message) for message in sent], 0)

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

    async def _spend(
        self, session: PushSession, resource: str, messages: int, size_bytes: int
    ) -> None:
        """Charge a publish to the quota as one call. Raises QuotaExceeded."""
        waiting = self.quotas.acquire(
            session.principal, resource, messages=messages, size_bytes=size_bytes
        )
        if waiting is not None:
            await waiting


def _status_of(error: Exception) -> int:
    return problem(error, instance="", request_id="").status
