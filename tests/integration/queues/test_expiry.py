"""Queues that expire when they are idle: what counts as a use, and races with the deletion."""

import asyncio
import logging

import pytest
from msgspec.structs import replace

from consumers.maintenance.tasks.idle_queues import delete_idle_queues
from storage.bootstrap import open_storage
from storage.concurrency.tasks import end
from storage.domain import limits
from storage.domain.access.audit import AuditFilter
from storage.domain.errors import QueueNotFound, ValidationFailed
from storage.domain.limits import Limits
from storage.domain.names import QueueName
from storage.domain.queues.message import NewMessage, SettleAction, Settlement
from storage.domain.queues.queue import QueueSpec
from storage.settings import StorageSettings
from tests.conditions import eventually

REPLIES = QueueName("replies")
IDLE_MS = 10 * limits.MINUTE_MS
SPEC = QueueSpec(expires_after_idle_ms=IDLE_MS)
SLACK_MS = limits.SECOND_MS


@pytest.fixture
async def queue(engines):
    """A queue whose time has begun."""
    queue = (await engines.catalog.put_queue(REPLIES, SPEC)).definition
    assert await sweep(engines) == 0
    return queue


async def sweep(engines) -> int:
    """Run a round of the task."""
    return await delete_idle_queues.work(engines) or 0


async def exists(engines) -> bool:
    try:
        await engines.queues.stats(REPLIES)
    except QueueNotFound:
        return False
    return True


async def send(engines) -> None:
    await engines.queues.send(REPLIES, [NewMessage(b"a")])


async def test_unused_queue_is_deleted_after_its_time(engines, clock, queue, caplog):
    caplog.set_level(logging.INFO)
    await send(engines)
    clock.advance(ms=IDLE_MS)
    before = await sweep(engines)
    clock.advance(ms=SLACK_MS)

    assert (before, await sweep(engines)) == (0, 1)

    assert not await exists(engines)
    assert "queue_expired" in caplog.messages
    [entry] = await engines.audit_log.page(AuditFilter(resource="queues/replies"))
    assert (entry.call.operation, entry.call.principal) == ("delete_queue", "maintenance")
    assert entry.before["expires_after_idle_ms"] == IDLE_MS
    assert (entry.outcome, entry.after) == ("done", None)


async def use_by_send(engines):
    await send(engines)


async def use_by_repeated_send(engines):
    await engines.queues.send(REPLIES, [NewMessage(b"a")], idempotency_key="k")


async def use_by_empty_receive(engines):
    assert await engines.queues.receive(REPLIES) == []


async def use_by_change(engines):
    await engines.catalog.change_queue(REPLIES, lambda spec: replace(spec, delay_ms=1))


@pytest.mark.parametrize(
    "use", [use_by_send, use_by_repeated_send, use_by_empty_receive, use_by_change]
)
async def test_use_begins_the_time_again(engines, clock, queue, use):
    if use is use_by_repeated_send:
        await use(engines)
    clock.advance(ms=IDLE_MS - limits.SECOND_MS)
    await use(engines)
    clock.advance(ms=IDLE_MS - limits.SECOND_MS)
    assert await sweep(engines) == 0

    clock.advance(ms=2 * limits.SECOND_MS + SLACK_MS)

    assert await sweep(engines) == 1


async def test_queue_is_in_use_while_messages_are_in_flight(engines, clock, queue):
    await send(engines)
    [message] = await engines.queues.receive(REPLIES, visibility_timeout_ms=3 * IDLE_MS)
    clock.advance(ms=2 * IDLE_MS)
    assert await sweep(engines) == 0

    await engines.queues.settle(REPLIES, [Settlement(message.receipt_handle, SettleAction.ACK)])

    assert await sweep(engines) == 1


async def test_waiting_receiver_keeps_queue(redis_url, database_url, clock):
    """A waiting receive looks again now and then, which is a use."""
    settings = StorageSettings(redis_url=redis_url, database_url=database_url)
    known = Limits(waiter_recheck_ms=20)
    async with open_storage(settings, clock=clock, limits=known) as storage:
        queue = (await storage.catalog.put_queue(REPLIES, SPEC)).definition
        await sweep(storage)
        receiving = asyncio.create_task(storage.queues.receive(REPLIES, forever=True))
        for _ in range(3):
            clock.advance(ms=IDLE_MS + SLACK_MS)
            await eventually(lambda: storage.queue_expiry.is_expired(queue), False)

        await end(receiving)
        clock.advance(ms=IDLE_MS + SLACK_MS)

        assert await sweep(storage) == 1


async def test_paused_queue_does_not_expire(engines, clock, queue):
    await engines.catalog.pause_queue(REPLIES, paused=True)
    clock.advance(ms=2 * IDLE_MS)
    assert await sweep(engines) == 0

    await engines.catalog.pause_queue(REPLIES, paused=False)

    assert await sweep(engines) == 0
    clock.advance(ms=IDLE_MS + SLACK_MS)
    assert await sweep(engines) == 1


async def test_queue_without_the_setting_does_not_expire(engines, clock, queue):
    await engines.catalog.put_queue(REPLIES, QueueSpec())
    clock.advance(ms=2 * IDLE_MS)

    assert await sweep(engines) == 0
    assert await exists(engines)


async def test_use_between_look_and_deletion_keeps_queue(engines, clock, queue):
    clock.advance(ms=IDLE_MS + SLACK_MS)
    assert await engines.queue_expiry.is_expired(queue)

    await send(engines)

    assert not await engines.queue_expiry.delete_expired(queue)
    assert (await engines.queues.stats(REPLIES)).ready == 1


async def test_recreated_queue_is_not_deleted_for_its_former_idleness(engines, clock, queue):
    clock.advance(ms=IDLE_MS + SLACK_MS)
    assert await engines.queue_expiry.is_expired(queue)
    await engines.catalog.delete_queue(REPLIES)
    await engines.catalog.put_queue(REPLIES, SPEC)

    assert not await engines.queue_expiry.delete_expired(queue)
    assert await exists(engines)


async def test_interrupted_deletion_is_finished(engines, clock, queue, monkeypatch):
    """The log was deleted and the process died before the definition was."""
    clock.advance(ms=IDLE_MS + SLACK_MS)
    assert await engines.queue_expiry._delete_log(queue)
    with pytest.raises(QueueNotFound):
        await send(engines)

    assert await sweep(engines) == 1

    await engines.catalog.put_queue(REPLIES, SPEC)
    await send(engines)


@pytest.mark.parametrize("seed", range(20))
async def test_answered_send_never_loses_its_queue(engines, clock, queue, seed):
    """Either the send is answered and the queue stays, or the queue is gone and the send is refused."""
    clock.advance(ms=IDLE_MS + SLACK_MS)

    async def later_send() -> bool:
        for _ in range(seed):
            await asyncio.sleep(0)
        try:
            await send(engines)
        except QueueNotFound:
            return False
        return True

    deleted, sent = await asyncio.gather(sweep(engines), later_send())

    assert sent is not bool(deleted)
    assert await exists(engines) is sent


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        (QueueSpec(expires_after_idle_ms=limits.QUEUE_IDLE_MS_MIN - 1), "out_of_range"),
        (QueueSpec(expires_after_idle_ms=limits.QUEUE_IDLE_MS_MAX + 1), "out_of_range"),
        (QueueSpec(expires_after_idle_ms=IDLE_MS, partitions=2), "not_supported"),
    ],
)
def test_invalid_setting_is_refused(spec, code):
    with pytest.raises(ValidationFailed) as refusal:
        spec.check()

    [fault] = refusal.value.faults
    assert (fault.pointer, fault.code) == ("/expires_after_idle_seconds", code)
