"""FIFO queues: deduplication and delay."""

from storage.domain.queues.queue import DedupScope, QueueSpec
from tests.queue_operations import LINE, create_queue, receive, send


async def test_content_deduplication_uses_body_digest(engines):
    queues = engines.queues
    await create_queue(engines, LINE, deduplicate_by_content=True)
    await send(queues, LINE, b"same", group="a")
    await send(queues, LINE, b"same", group="b")
    await send(queues, LINE, b"same", group="a", dedup_id="own")

    assert await receive(queues, LINE) == [b"same", b"same"]


async def test_deduplication_scope_can_be_group(engines):
    queues = engines.queues
    await create_queue(engines, LINE, dedup_scope=DedupScope.GROUP)
    for group in ("a", "b", "a"):
        await send(queues, LINE, group.encode(), group=group, dedup_id="1")

    assert await receive(queues, LINE) == [b"a", b"b"]


async def test_fifo_queue_delay_keeps_order(engines, clock):
    queues = engines.queues
    await create_queue(engines, LINE, delay_ms=5_000)
    await send(queues, LINE, b"1", group="a")
    await engines.catalog.change_queue(
        LINE, lambda spec: QueueSpec(type=spec.type, attempts_max=None)
    )
    await send(queues, LINE, b"2", group="a")  # not before the one that is still delayed
    early = await receive(queues, LINE)
    clock.advance(ms=5_000)

    assert early == []
    assert await receive(queues, LINE) == [b"1", b"2"]


async def test_delayed_message_does_not_lock_its_group(engines, clock):
    queues = engines.queues
    await create_queue(engines, LINE, delay_ms=1_000)
    await send(queues, LINE, b"1", group="a")
    clock.advance(ms=600)
    await send(queues, LINE, b"2", group="a")
    clock.advance(ms=400)

    assert await receive(queues, LINE) == [b"1"]
