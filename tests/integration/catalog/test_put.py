"""Puts and changes of queues and streams are atomic, and concurrent ones are not lost."""

import asyncio

import pytest
from msgspec.structs import replace

from storage.domain.errors import PreconditionFailed, QueueNotFound, ValidationFailed
from storage.domain.limits import HOUR_MS
from storage.domain.names import QueueName, StreamName
from storage.domain.queues.queue import (
    DeadLetterTarget,
    QueueSpec,
    QueueType,
    RedriveAllow,
    RedrivePermission,
)
from storage.domain.quotas import NO_QUOTAS, Quotas
from storage.domain.streams.stream import RING_SIZE, StreamSpec
from tests.integration.catalog.definitions import CLICKS, ORDERS
from tests.integration.reservations import open_log

FIFO = QueueSpec(type=QueueType.FIFO)


async def test_queue_is_created_and_found(catalog, clock):
    created, is_new, _ = await catalog.put_queue(ORDERS, FIFO)

    assert is_new
    assert created.version == 1
    assert created.created_at_ms == created.changed_at_ms == clock.now_ms()
    assert await catalog.queue(ORDERS) == created


async def test_unknown_queue_is_not_found(catalog):
    with pytest.raises(QueueNotFound, match="orders"):
        await catalog.queue(ORDERS)


async def test_put_of_equal_spec_changes_nothing(catalog, clock):
    created, *_ = await catalog.put_queue(ORDERS, FIFO)

    clock.advance(ms=1_000)
    again, is_new, _ = await catalog.put_queue(ORDERS, FIFO)

    assert not is_new
    assert again == created


async def test_put_of_other_spec_increments_version(catalog, clock):
    created, *_ = await catalog.put_queue(ORDERS, QueueSpec())

    clock.advance(ms=1_000)
    changed, is_new, _ = await catalog.put_queue(ORDERS, QueueSpec(delay_ms=500))

    assert not is_new
    assert changed.log_id == created.log_id
    assert changed.version == 2
    assert changed.changed_at_ms == created.created_at_ms + 1_000
    assert await catalog.queue(ORDERS) == changed


async def test_queue_type_cannot_change(catalog):
    await catalog.put_queue(ORDERS, QueueSpec())

    with pytest.raises(ValidationFailed) as refused:
        await catalog.put_queue(ORDERS, FIFO)

    assert [fault.pointer for fault in refused.value.faults] == ["/type"]


async def test_shard_count_cannot_change_by_put(catalog):
    await catalog.put_stream(CLICKS, StreamSpec(shards=2))

    with pytest.raises(ValidationFailed) as refused:
        await catalog.put_stream(CLICKS, StreamSpec(shards=3))

    assert [fault.pointer for fault in refused.value.faults] == ["/shards"]


async def test_invalid_spec_is_not_stored(catalog):
    with pytest.raises(ValidationFailed):
        await catalog.put_queue(ORDERS, QueueSpec(delay_ms=-1))

    with pytest.raises(QueueNotFound):
        await catalog.fresh_queue(ORDERS)


async def test_create_only_put_rejects_existing_queue(catalog):
    await catalog.put_queue(ORDERS, QueueSpec(), create_only=True)

    with pytest.raises(PreconditionFailed, match="exists"):
        await catalog.put_queue(ORDERS, QueueSpec(), create_only=True)


async def test_put_with_if_match_requires_that_version(catalog):
    await catalog.put_queue(ORDERS, QueueSpec())
    await catalog.put_queue(ORDERS, QueueSpec(delay_ms=1), if_match=1)

    with pytest.raises(PreconditionFailed, match="version is 2, not 1"):
        await catalog.put_queue(ORDERS, QueueSpec(delay_ms=2), if_match=1)


async def test_put_with_if_match_creates_nothing(catalog):
    with pytest.raises(PreconditionFailed):
        await catalog.put_queue(ORDERS, QueueSpec(), if_match=1)


async def test_concurrent_creations_have_one_winner(catalog, other):
    puts = await asyncio.gather(
        *(each.put_queue(ORDERS, QueueSpec()) for each in (catalog, other) * 5)
    )

    assert sorted(put.created for put in puts) == [False] * 9 + [True]
    assert len({put.definition.log_id for put in puts}) == 1


async def test_queue_and_stream_may_share_name(catalog):
    await catalog.put_queue(QueueName("both"), QueueSpec())
    await catalog.put_stream(StreamName("both"), StreamSpec())

    assert (await catalog.queue(QueueName("both"))).version == 1
    assert (await catalog.stream(StreamName("both"))).version == 1


async def test_queue_names_are_isolated_per_namespace(catalog):
    await catalog.namespaces.put("acme", NO_QUOTAS)
    await catalog.put_queue(ORDERS, QueueSpec())

    with pytest.raises(QueueNotFound):
        await catalog.queue(QueueName("orders", "acme"))


async def test_namespace_keeps_its_account_id(catalog):
    first, *_ = await catalog.namespaces.put("acme", NO_QUOTAS)

    again, *_ = await catalog.namespaces.put("acme", Quotas(queues_max=1))

    assert again.account_id == first.account_id
    assert len(first.account_id) == 12


async def test_shards_partition_hash_ring(catalog):
    stream, *_ = await catalog.put_stream(CLICKS, StreamSpec(shards=3))

    fresh_stream = await catalog.fresh_stream(CLICKS)

    assert fresh_stream == stream
    assert [shard.index for shard in fresh_stream.shards] == [0, 1, 2]
    assert fresh_stream.shards[0].first_hash_key == 0
    assert fresh_stream.shards[-1].last_hash_key == RING_SIZE - 1
    assert len({shard.log_id for shard in fresh_stream.shards}) == 3


async def test_logs_of_stream_can_be_opened(catalog, reservations):
    stream, *_ = await catalog.put_stream(CLICKS, StreamSpec(shards=2))

    for shard in stream.shards:
        assert await open_log(reservations, shard.log_id, 1, None, 100) is not None


async def test_changed_stream_keeps_its_shards(catalog):
    stream, *_ = await catalog.put_stream(CLICKS, StreamSpec(shards=2))

    changed = await catalog.change_stream(CLICKS, lambda spec: replace(spec, retention_ms=HOUR_MS))

    assert changed.shards == stream.shards
    assert changed.spec.retention_ms == HOUR_MS
    assert await catalog.stream(CLICKS) == changed


async def test_concurrent_changes_are_all_applied(catalog, other):
    await catalog.put_queue(ORDERS, QueueSpec(delay_ms=0))

    await asyncio.gather(
        *(each.change_queue(ORDERS, one_more_delay) for each in (catalog, other) * 5)
    )

    queue = await catalog.fresh_queue(ORDERS)
    assert queue.spec.delay_ms == 10
    assert queue.version == 11


async def test_change_of_unknown_queue_is_rejected(catalog):
    with pytest.raises(QueueNotFound):
        await catalog.change_queue(ORDERS, one_more_delay)


async def test_invalid_change_leaves_queue_unchanged(catalog):
    created, *_ = await catalog.put_queue(ORDERS, QueueSpec())

    with pytest.raises(ValidationFailed):
        await catalog.change_queue(ORDERS, lambda spec: replace(spec, delay_ms=-1))

    assert await catalog.fresh_queue(ORDERS) == created


async def test_change_with_wrong_version_is_rejected(catalog):
    await catalog.put_queue(ORDERS, QueueSpec())

    with pytest.raises(PreconditionFailed):
        await catalog.change_queue(ORDERS, one_more_delay, if_match=7)


def one_more_delay(spec: QueueSpec) -> QueueSpec:
    return replace(spec, delay_ms=spec.delay_ms + 1)


@pytest.mark.parametrize(
    ("target", "spec"),
    [
        ("orders", None),
        ("missing", None),
        ("other", QueueSpec(type=QueueType.FIFO)),
        ("other", QueueSpec(redrive_allow=RedriveAllow(RedrivePermission.DENY_ALL))),
        ("other", QueueSpec(redrive_allow=RedriveAllow(RedrivePermission.BY_QUEUE, ("x",)))),
    ],
)
async def test_unsuitable_dead_letter_queue_is_rejected(catalog, target, spec):
    if spec is not None:
        await catalog.put_queue(QueueName(target), spec)
    dying = QueueSpec(dead_letters=DeadLetterTarget(target, 3))

    with pytest.raises(ValidationFailed) as refused:
        await catalog.put_queue(ORDERS, dying)

    assert [fault.pointer for fault in refused.value.faults] == ["/dead_letters/queue"]


async def test_sources_of_dead_letter_queue_are_found(catalog):
    allowing = RedriveAllow(RedrivePermission.BY_QUEUE, ("a", "b"))
    await catalog.put_queue(QueueName("dead"), QueueSpec(redrive_allow=allowing))
    for name in ("b", "a"):
        await catalog.put_queue(
            QueueName(name), QueueSpec(dead_letters=DeadLetterTarget("dead", 3))
        )

    every = await catalog.dead_letter_sources(QueueName("dead"))
    later = await catalog.dead_letter_sources(QueueName("dead"), after="a")

    assert [queue.name.name for queue in every] == ["a", "b"]
    assert [queue.name.name for queue in later] == ["b"]
