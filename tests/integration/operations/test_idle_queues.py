"""Maintenance of ten thousand idle queues is cheap: its calls grow with work only."""

import pytest
import redis

from consumers.maintenance.tasks.queues import ActiveQueueTracker
from storage.domain import limits
from storage.domain.names import QueueName
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import QueueSpec

SHARES = 6
QUEUES = [QueueName(f"queue-{number}") for number in range(40)]


@pytest.fixture
async def storage(engines, clock):
    """Queues that were created some time ago."""
    for name in QUEUES:
        await engines.catalog.put_queue(name, QueueSpec(retention_ms=limits.HOUR_MS))
    clock.advance(ms=limits.DEFINITION_NEW_MS + 1)
    return engines


@pytest.fixture
def visited(storage, monkeypatch):
    """The names of the visited queues, in order."""
    names = []
    sweep = storage.queues.sweep

    async def noted(name, known=None):
        names.append(name)
        return await sweep(name, known)

    monkeypatch.setattr(storage.queues, "sweep", noted)
    return names


async def test_idle_queue_is_visited_once_in_six_rounds(storage, visited):
    visit = ActiveQueueTracker()
    await visit(storage)
    in_one = len(visited)
    for _ in range(SHARES - 1):
        await visit(storage)

    assert 0 < in_one < len(QUEUES) / 2
    assert len(visited) == len(QUEUES)
    assert set(visited) == set(QUEUES)


async def test_queue_with_work_is_visited_in_next_round(storage, visited, clock):
    [busy] = QUEUES[:1]
    await storage.queues.send(busy, [NewMessage(b"old")])
    clock.advance(ms=limits.HOUR_MS)
    visit = ActiveQueueTracker()
    while busy not in visited:
        await visit(storage)
    in_its_turn = visited.count(busy)
    await visit(storage)
    await visit(storage)

    assert in_its_turn == 2  # a visit continues while it finds work
    assert visited.count(busy) == in_its_turn + 1


async def test_changed_queue_is_visited_in_every_round(storage, visited):
    [changed] = QUEUES[:1]
    await storage.catalog.put_queue(changed, QueueSpec(stream_view=True))
    visit = ActiveQueueTracker()
    await visit(storage)
    await visit(storage)

    assert visited.count(changed) == 2


async def test_visit_creates_no_log_for_unused_queue(storage, redis_url):
    """Each would cost a Postgres transaction and a key, for queues that nobody uses."""
    done = await storage.queues.sweep(QUEUES[0])
    log_id = (await storage.catalog.queue(QUEUES[0])).log_id

    assert done == 0
    with redis.Redis.from_url(redis_url) as client:
        assert list(client.scan_iter(f"*{log_id}*")) == []


async def test_archive_plan_reads_only_archived_queues(storage):
    [shown] = QUEUES[3:4]
    await storage.catalog.put_queue(shown, QueueSpec(stream_view=True, archive=True))

    archived = [queue.name async for queue in storage.catalog.archived_queues()]

    assert archived == [shown]
