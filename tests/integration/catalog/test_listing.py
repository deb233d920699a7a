"""Definitions are listed by name in pages, for callers and for maintenance."""

from functools import partial

import pytest

from storage.domain.errors import InvalidCursor
from storage.domain.limits import DEFINITION_NEW_MS
from storage.domain.names import DEFAULT_NAMESPACE, QueueName, StreamName
from storage.domain.queues.queue import QueueSpec
from storage.domain.quotas import NO_QUOTAS
from storage.domain.streams.stream import StreamSpec
from tests.conditions import eventually
from tests.integration.catalog.definitions import CLICKS, ORDERS


async def test_queues_are_listed_by_name_in_pages(catalog):
    for name in ("b", "a", "C", "a.b", "a-b"):
        await catalog.put_queue(QueueName(name), QueueSpec())

    page = await catalog.list_queues(DEFAULT_NAMESPACE, limit=3)
    rest = await catalog.list_queues(DEFAULT_NAMESPACE, after=page[-1].name.name)

    assert [queue.name.name for queue in page + rest] == ["C", "a", "a-b", "a.b", "b"]


async def test_queues_are_listed_by_prefix(catalog):
    for name in ("order", "orders", "orders.late", "other"):
        await catalog.put_queue(QueueName(name), QueueSpec())

    queues = await catalog.list_queues(DEFAULT_NAMESPACE, prefix="orders")

    assert [queue.name.name for queue in queues] == ["orders", "orders.late"]


@pytest.mark.parametrize("prefix", ["%", "_", "\x00", "é", "\ud800"])
async def test_unmatched_prefix_returns_nothing(catalog, prefix):
    await catalog.put_queue(ORDERS, QueueSpec())

    assert await catalog.list_queues(DEFAULT_NAMESPACE, prefix=prefix) == []


async def test_page_after_invalid_name_is_rejected(catalog):
    with pytest.raises(InvalidCursor):
        await catalog.list_queues(DEFAULT_NAMESPACE, after="\x00")


async def test_deleted_and_foreign_streams_are_not_listed(catalog):
    await catalog.namespaces.put("acme", NO_QUOTAS)
    await catalog.put_stream(CLICKS, StreamSpec(shards=2))
    await catalog.put_stream(StreamName("gone"), StreamSpec())
    await catalog.put_stream(StreamName("theirs", "acme"), StreamSpec())
    await catalog.delete_stream(StreamName("gone"))

    streams = await catalog.list_streams(DEFAULT_NAMESPACE)

    assert [(str(stream.name), len(stream.shards)) for stream in streams] == [("default/clicks", 2)]


async def test_maintenance_sees_every_queue_of_every_namespace_once(catalog, monkeypatch):
    monkeypatch.setattr("storage.domain.limits.PAGE_ITEMS_MAX", 2)
    await catalog.namespaces.put("acme", NO_QUOTAS)
    names = [QueueName(f"q{n}", "acme" if n % 2 else DEFAULT_NAMESPACE) for n in range(7)]
    for name in names:
        await catalog.put_queue(name, QueueSpec())

    seen = [queue.name async for queue in catalog.iter_queues()]

    assert sorted(map(str, seen)) == sorted(map(str, names))


async def test_maintenance_sees_every_stream(catalog):
    created, *_ = await catalog.put_stream(CLICKS, StreamSpec(shards=2))

    assert [stream async for stream in catalog.iter_streams()] == [created]


async def test_each_queue_has_its_turn_while_others_are_deleted(catalog, clock):
    """Shares were positions in a list, which deletions of earlier queues shift."""
    names = [QueueName(f"queue-{number:02}") for number in range(30)]
    for name in names:
        await catalog.put_queue(name, QueueSpec())
    clock.advance(ms=2 * DEFINITION_NEW_MS)
    visited: set[QueueName] = set()
    for turn in range(6):
        for name in names[2 * turn : 2 * turn + 2]:
            await catalog.delete_queue(name)
            await eventually(partial(_is_listed, catalog, name), False)
        visited |= set(await catalog.queues_in_turn(turn, 6))

    assert set(names[12:]) <= visited


async def _is_listed(catalog, name: QueueName) -> bool:
    return name in await catalog.all_queues()
