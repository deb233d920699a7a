"""Definitions of groups, and their start positions."""

import pytest

from storage.domain.errors import (
    GroupNotFound,
    OffsetOutOfRange,
    PreconditionFailed,
    StaleGeneration,
    StreamNotFound,
    ValidationFailed,
)
from storage.domain.groups.group import Commit, GroupKind, GroupSpec
from storage.domain.log.record_batch import Record
from storage.domain.names import GroupName, QueueName, StreamName
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.start_at import StartAt
from storage.domain.streams.stream import StreamSpec
from tests.integration.groups.group_reads import CLICKS, READERS, commits, data, fill

pytestmark = pytest.mark.one_store


async def test_group_is_created_once_and_timeouts_can_change(groups):
    spec = GroupSpec(stream="clicks", session_timeout_ms=10_000)

    changed, created, _ = await groups.put(READERS, spec)
    again, *_ = await groups.put(READERS, spec)

    assert not created
    assert (changed.version, again) == (2, changed)
    assert (await groups.get(READERS)).spec.session_timeout_ms == 10_000


async def test_group_stream_and_kind_cannot_change(storage, groups):
    await storage.catalog.put_stream(StreamName("other"), StreamSpec())

    for spec in (
        GroupSpec(stream="other"),
        GroupSpec(stream="clicks", kind=GroupKind.SIMPLE),
        GroupSpec(stream="clicks", start=StartAt.LATEST),
    ):
        with pytest.raises(ValidationFailed):
            await groups.put(READERS, spec)


async def test_stale_version_is_rejected(groups):
    with pytest.raises(PreconditionFailed):
        await groups.put(READERS, GroupSpec(stream="clicks"), if_match=7)
    with pytest.raises(PreconditionFailed):
        await groups.put(READERS, GroupSpec(stream="clicks"), create_only=True)
    with pytest.raises(PreconditionFailed):
        await groups.delete(READERS, if_match=7)


async def test_stream_view_of_queue_has_no_groups(storage, groups):
    await storage.catalog.put_queue(QueueName("orders"), QueueSpec(stream_view=True))

    with pytest.raises(ValidationFailed):
        await groups.put(GroupName("others"), GroupSpec(stream="orders"))


async def test_group_requires_its_stream_and_is_deleted_with_it(storage, groups):
    with pytest.raises(StreamNotFound):
        await groups.put(GroupName("others"), GroupSpec(stream="nowhere"))
    await fill(storage)
    await groups.commit(READERS, commits(await groups.fetcher.fetch(READERS, "a")))

    await storage.catalog.delete_stream(CLICKS)

    with pytest.raises(GroupNotFound):
        await groups.fetcher.fetch(READERS, "a")
    with pytest.raises(GroupNotFound):
        await groups.commit(READERS, [Commit(0, 1, "a", 1)])
    assert await groups.list_groups("default") == []


async def test_new_group_reads_recreated_stream_from_its_start(storage, groups):
    await fill(storage, 5)
    old = await groups.fetcher.fetch(READERS, "a")
    await groups.commit(READERS, commits(old))
    await storage.catalog.delete_stream(CLICKS)
    await storage.catalog.put_stream(CLICKS, StreamSpec(shards=4))
    await groups.put(READERS, GroupSpec(stream="clicks"))
    await fill(storage, 1)

    results = await groups.commit(READERS, commits(old))
    new = await groups.fetcher.fetch(READERS, "a")

    assert all(isinstance(result, OffsetOutOfRange) for result in results)
    assert len(data(new)) == 4


async def test_deleted_group_leaves_no_state(storage, groups):
    await fill(storage)
    await groups.commit(READERS, commits(await groups.fetcher.fetch(READERS, "a")))

    await groups.delete(READERS)
    with pytest.raises(GroupNotFound):
        await groups.get(READERS)

    await groups.put(READERS, GroupSpec(stream="clicks"))
    assert len(data(await groups.fetcher.fetch(READERS, "a"))) == 12


async def test_positions_of_deleted_group_are_stale_in_new_one(storage, groups, clock):
    await fill(storage)
    old = await groups.fetcher.fetch(READERS, "a")
    await groups.delete(READERS)
    clock.advance(ms=1_000)
    await groups.put(READERS, GroupSpec(stream="clicks"))
    await groups.fetcher.fetch(READERS, "a")

    results = await groups.commit(READERS, commits(old))

    assert all(isinstance(result, StaleGeneration) for result in results)


async def test_groups_are_listed_by_name(groups):
    for name in ("b", "a", "ab"):
        await groups.put(GroupName(name), GroupSpec(stream="clicks"))

    assert [group.name.name for group in await groups.list_groups("default")] == [
        "a",
        "ab",
        "b",
        "readers",
    ]
    assert [
        group.name.name for group in await groups.list_groups("default", prefix="a", after="a")
    ] == ["ab"]


async def test_group_at_latest_reads_later_records_only(storage, groups):
    late = GroupName("late")
    await fill(storage)
    await groups.put(late, GroupSpec(stream="clicks", start=StartAt.LATEST))
    await storage.streams.append_to_shard(CLICKS, 2, [Record(b"new")])

    assert data(await groups.fetcher.fetch(late, "a")) == [b"new"]


async def test_group_at_time_reads_records_since_then(storage, groups, clock):
    since = GroupName("since")
    await fill(storage)
    clock.advance(ms=1_000)
    spec = GroupSpec(stream="clicks", start=StartAt.TIME, start_time_ms=clock.now_ms())
    await groups.put(since, spec)

    assert data(await groups.fetcher.fetch(since, "a")) == []

    await storage.streams.append_to_shard(CLICKS, 1, [Record(b"new")])
    assert data(await groups.fetcher.fetch(since, "a")) == [b"new"]
