"""Deletion of definitions with their logs; maintenance retries failed tombstones."""

import pytest

from storage.domain.errors import PreconditionFailed, QueueNotFound, StreamNotFound
from storage.domain.names import DEFAULT_NAMESPACE, QueueName
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.stream import StreamSpec
from tests.integration.catalog.definitions import CLICKS, ORDERS
from tests.integration.reservations import open_log


async def test_deleted_queue_is_gone_and_its_log_is_tombstoned(catalog, tombstones):
    queue, *_ = await catalog.put_queue(ORDERS, QueueSpec())

    deleted = await catalog.delete_queue(ORDERS)

    assert deleted == queue
    assert tombstones.buried == [(DEFAULT_NAMESPACE, queue.log_id)]
    with pytest.raises(QueueNotFound):
        await catalog.queue(ORDERS)


async def test_deleted_stream_is_gone_and_its_logs_are_tombstoned(catalog, tombstones):
    stream, *_ = await catalog.put_stream(CLICKS, StreamSpec(shards=2))

    await catalog.delete_stream(CLICKS)

    assert tombstones.buried == [(DEFAULT_NAMESPACE, shard.log_id) for shard in stream.shards]
    with pytest.raises(StreamNotFound):
        await catalog.stream(CLICKS)


async def test_log_of_deleted_queue_cannot_be_opened(catalog, reservations):
    """A process that still caches the definition must not create the log again."""
    queue, *_ = await catalog.put_queue(ORDERS, QueueSpec())
    await open_log(reservations, queue.log_id, 1, None, 100)
    await open_log(reservations, queue.log_id, 2, 10, 100)

    await catalog.delete_queue(ORDERS)

    assert await open_log(reservations, queue.log_id, 2, None, 100) is None
    assert await reservations.holes(queue.log_id) == []


async def test_recreated_queue_has_its_own_log(catalog):
    first, *_ = await catalog.put_queue(ORDERS, QueueSpec())
    await catalog.delete_queue(ORDERS)

    second, is_new, _ = await catalog.put_queue(ORDERS, QueueSpec())

    assert is_new
    assert second.version == 1
    assert second.log_id != first.log_id


async def test_deleting_unknown_queue_is_rejected(catalog):
    with pytest.raises(QueueNotFound):
        await catalog.delete_queue(ORDERS)


async def test_delete_with_wrong_version_is_rejected(catalog):
    await catalog.put_queue(ORDERS, QueueSpec())

    with pytest.raises(PreconditionFailed):
        await catalog.delete_queue(ORDERS, if_match=2)

    assert (await catalog.fresh_queue(ORDERS)).version == 1


async def test_log_that_cannot_be_tombstoned_is_left_for_maintenance(catalog, tombstones):
    queue, *_ = await catalog.put_queue(ORDERS, QueueSpec())
    tombstones.out_of_order = True

    await catalog.delete_queue(ORDERS)

    assert await catalog.deleted_logs(0) == [(DEFAULT_NAMESPACE, queue.log_id)]


async def test_deleted_logs_are_listed_by_age_in_pages(catalog, clock):
    queue, *_ = await catalog.put_queue(ORDERS, QueueSpec())
    stream, *_ = await catalog.put_stream(CLICKS, StreamSpec(shards=2))
    await catalog.delete_queue(ORDERS)
    clock.advance(ms=1_000)
    await catalog.delete_stream(CLICKS)

    shards = [shard.log_id for shard in stream.shards]
    everything = sorted([queue.log_id, *shards])

    assert [log_id for _, log_id in await catalog.deleted_logs(1_000)] == [queue.log_id]
    assert [log_id for _, log_id in await catalog.deleted_logs(0)] == everything
    assert await catalog.deleted_logs(0, after=everything[0], limit=1) == [
        (DEFAULT_NAMESPACE, everything[1])
    ]


async def test_forgotten_logs_are_not_listed_and_live_ones_stay(catalog):
    queue, *_ = await catalog.put_queue(ORDERS, QueueSpec())
    stream, *_ = await catalog.put_stream(CLICKS, StreamSpec(shards=2))
    living, *_ = await catalog.put_queue(QueueName("living"), QueueSpec())
    await catalog.delete_queue(ORDERS)
    await catalog.delete_stream(CLICKS)

    await catalog.delete_tombstoned([queue.log_id, living.log_id, stream.shards[0].log_id])

    assert await catalog.deleted_logs(0) == [(DEFAULT_NAMESPACE, stream.shards[1].log_id)]
    assert await catalog.fresh_queue(living.name) == living
