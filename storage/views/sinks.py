"""Delivery of the outbox to the sinks of views.

    batch ──▶ outbox, in its transaction ──▶ sink ──▶ deleted from the outbox

A message has its revision and sequence, by which the target takes it once, whoever sends it again. Those of a sink are sent in order;
a sink that does not accept them holds back no other one, until VIEW_OUTBOX_MAX of them wait: then its view waits too.
"""

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial

import attrs
import msgspec

from storage.catalog.catalog import Catalog
from storage.concurrency.bounded_cache import BoundedCache
from storage.concurrency.tasks import in_batches
from storage.domain import limits
from storage.domain.errors import MillstreamError, QueueFull
from storage.domain.fault_points import fault
from storage.domain.jobs import wait_after_ms
from storage.domain.log.record_batch import CONTENT_TYPE, Record
from storage.domain.names import QueueName, ViewName
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import QueueType
from storage.domain.replays.replay import group_for
from storage.domain.streams.idempotence import SequencedBatch
from storage.domain.views.sink import SinkState, ViewSink
from storage.domain.views.view import View
from storage.postgres.repositories.view_sinks import PendingMessage, SinkBehind, ViewSinkRows
from storage.queues.engine import Queues
from storage.streams.engine import Streams

__all__ = ["OnSent", "SinkBehind", "ViewSinks"]

logger = logging.getLogger(__name__)

OnSent = Callable[[ViewName, int], object]
"""Called with the number of messages that a sink of a view has got."""

_JSON = "application/json"
_SINKS_CACHED = 10_000


class _Retry(msgspec.Struct, frozen=True):
    """Failed calls to a sink in a row, and the time of the next one."""

    failures: int
    at_s: float


@attrs.define(eq=False, slots=False, kw_only=True)
class ViewSinks:
    """Sender to the sinks of views; the worker of a scan uses it."""

    _rows: ViewSinkRows
    _catalog: Catalog
    _queues: Queues
    _streams: Streams
    _retries: BoundedCache[tuple[str, str], _Retry] = attrs.field(
        factory=lambda: BoundedCache(_SINKS_CACHED), init=False
    )
    _revisions: BoundedCache[tuple[str, str], int] = attrs.field(
        factory=lambda: BoundedCache(_SINKS_CACHED), init=False
    )

    async def states(self, views: Sequence[View]) -> dict[str, list[SinkState]]:
        """Return the states of the sinks of views, in their order, by view."""
        stored = await self._states(views)
        return {view.view_id: _states_of(view, stored.get(view.view_id, ())) for view in views}

    async def behind(self, namespace: str) -> Sequence[SinkBehind]:
        """Return sinks that fail or are far behind, of views that are not paused.

        At most VIEW_SINKS_BEHIND_MAX, failing ones first.
        """
        pending, limit = limits.VIEW_SINK_ALERT_PENDING, limits.VIEW_SINKS_BEHIND_MAX
        return await self._rows.behind(namespace, pending, limit)

    async def deliver(
        self, views: Sequence[View], on_sent: OnSent = lambda *_: None
    ) -> Collection[str]:
        """Send pending messages; return the ids of views whose sinks are too far behind."""
        with_sinks = [view for view in views if view.spec.into]
        states = await self._states(with_sinks)
        waiting = [
            (view, sink, state)
            for view in with_sinks
            for sink in view.spec.into
            for state in states.get(view.view_id, ())
            if state.sink == sink.label and state.pending
        ]
        send = partial(self._deliver, on_sent)
        left = await in_batches(waiting, send, limits.VIEW_TRANSACTIONS_AT_ONCE)
        return {
            view.view_id
            for (view, _, _), pending in zip(waiting, left, strict=True)
            if pending >= limits.VIEW_OUTBOX_MAX
        }

    async def _states(self, views: Sequence[View]) -> Mapping[str, Sequence[SinkState]]:
        return await self._rows.states([view.view_id for view in views])

    async def _deliver(self, on_sent: OnSent, waiting: tuple[View, ViewSink, SinkState]) -> int:
        """Send the pending messages of a sink until it refuses; return how many are left."""
        view, sink, state = waiting
        place, pending = (view.view_id, sink.label), state.pending
        retry = self._retries.get(place)
        if retry is not None and time.monotonic() < retry.at_s:
            return pending
        most = limits.VIEW_SINK_MESSAGES
        try:
            while messages := await self._rows.pending(*place, most, limits.VIEW_SINK_BYTES):
                try:
                    await self._send(view, sink, messages)
                except QueueFull:
                    if len(messages) == 1:
                        raise
                    most = len(messages) // 2  # all may be more than the queue ever takes
                    continue
                fault("view.sent")
                await self._rows.settle(*place, messages)
                await self._retire_former(view, sink, messages[-1].revision)
                on_sent(view.name, len(messages))
                pending -= len(messages)
        except Exception as error:  # the other sinks and views go on
            await self._note_failure(view, sink, error, retry)
            return pending
        self._retries.pop(place, None)
        return 0

    async def _note_failure(
        self, view: View, sink: ViewSink, error: Exception, retry: _Retry | None
    ) -> None:
        bug: Exception | None = error
        failure = "Internal error; the log has it."
        if isinstance(error, MillstreamError):
            failure, bug = error.detail, None
        failures = 1 if retry is None else retry.failures + 1
        at_s = time.monotonic() + wait_after_ms(failures, limits.JOB_BACKOFF_MS_MIN) / 1_000
        self._retries[view.view_id, sink.label] = _Retry(failures, at_s)
        facts = {"view": str(view.name), "sink": sink.label, "reason": failure}
        logger.warning("view_sink_failed", extra=facts, exc_info=bug)
        await self._rows.fail(view.view_id, sink.label, failure)

    async def _send(self, view: View, sink: ViewSink, messages: Sequence[PendingMessage]) -> None:
        """Add the messages that the target does not have. Raises what its append does."""
        batch = SequencedBatch(
            [_producer_id(view, message.revision) for message in messages],
            [message.sequence for message in messages],
        )
        target = sink.name_in(view.name.namespace)
        bodies = [_body(view, message) for message in messages]
        if isinstance(target, QueueName):
            is_fifo = (await self._catalog.queue(target)).spec.type is QueueType.FIFO
            sent = [
                NewMessage(body, content_type=_JSON, group=group_for(message.key, 0, fifo=is_fifo))
                for body, message in zip(bodies, messages, strict=True)
            ]
            await self._queues.send_idempotent_batch(target, batch, sent)
        else:
            headers = ((CONTENT_TYPE, "", _JSON.encode()),)
            records = [
                Record(body, group_for(message.key, 0, fifo=False), headers)
                for body, message in zip(bodies, messages, strict=True)
            ]
            await self._streams.append_idempotent_batch(target, batch, records)

    async def retire(self, view: View, revisions: int) -> None:
        """Let the targets of a deleted view forget its producers; it had so many revisions."""
        for sink in view.spec.into:
            await self._retire(view, sink, revisions)

    async def _retire_former(self, view: View, sink: ViewSink, revision: int) -> None:
        """Retire the producers before a revision, if it is the first time that it sends something."""
        place = (view.view_id, sink.label)
        if self._revisions.get(place, 1) < revision:
            await self._retire(view, sink, revision - 1)
        self._revisions[place] = revision

    async def _retire(self, view: View, sink: ViewSink, last: int) -> None:
        """Let a target forget the producers of revisions up to the last one that has ended.

        Does nothing if the target does not answer, or does not exist.
        """
        first = max(1, last - limits.VIEW_PRODUCERS_RETIRED + 1)
        producer_ids = [_producer_id(view, number) for number in range(first, last + 1)]
        target = sink.name_in(view.name.namespace)
        with suppress(MillstreamError):
            if isinstance(target, QueueName):
                await self._queues.retire_writers(target, producer_ids)
            else:
                await self._streams.retire_writers(target, producer_ids)


def _states_of(view: View, stored: Sequence[SinkState]) -> list[SinkState]:
    states = {one.sink: one for one in stored}
    return [states.get(sink.label) or SinkState(sink=sink.label) for sink in view.spec.into]


def _producer_id(view: View, revision: int) -> str:
    return f"view {view.view_id} {revision}"


def _body(view: View, message: PendingMessage) -> bytes:
    """Return the JSON of a message; the rows are JSON already."""
    return (
        f'{{"change":"{message.change}","row":{message.row or "null"},"before":{message.before or "null"},'
        f'"view":"{view.name.name}","revision":{message.revision},"batch":{message.batch}}}'
    ).encode()
