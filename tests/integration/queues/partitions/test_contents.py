"""Contents of a queue with partitions: lists, dead letters, moves, views."""

import pytest

from storage.domain import limits
from storage.domain.errors import (
    MessageNotFound,
    PurgeInProgress,
    QueueNotFound,
)
from storage.domain.names import StreamName
from storage.domain.queues.message import (
    BrowsedMessage,
    NewMessage,
    SettleAction,
    WhichDead,
)
from storage.domain.queues.queue import DeadLetterTarget
from storage.domain.streams.stream import ReadFrom
from tests.conditions import eventually
from tests.integration.queues.partitions.operations import BODIES, create, receive_all
from tests.queue_operations import DEAD, LINE, WORK, receive, send, settle


async def test_messages_are_found_changed_and_deleted_by_reference(engines):
    await create(engines, history=True)
    sent = [(await engines.queues.send(WORK, [NewMessage(body)]))[0] for body in BODIES[:8]]

    for nth, one in enumerate(sent):
        for reference in (one.message_id, str(one.offset)):
            shown = await engines.inspector.show(WORK, reference)
            assert (shown.offset, shown.body) == (one.offset, BODIES[nth])
        changed = await engines.inspector.change(WORK, one.message_id, delay_ms=60_000)
        assert changed.offset == one.offset
        await engines.inspector.replace(WORK, str(one.offset), b"new")
        assert (await engines.inspector.show(WORK, one.message_id)).body == b"new"
        history = await engines.inspector.history(WORK, one.message_id)
        assert history.offset == one.offset
        assert [event.type for event in history.events] == ["sent", "changed", "changed"]
        await engines.inspector.drop(WORK, one.message_id)
        with pytest.raises(MessageNotFound):
            await engines.inspector.show(WORK, one.message_id)
    for reference in (str(limits.PARTITION_OFFSETS * 63), "9" * 16, "nonsense"):
        with pytest.raises(MessageNotFound):
            await engines.inspector.show(WORK, reference)


@pytest.mark.parametrize("page", [1, 7, 100])
async def test_browsing_by_pages_shows_each_message_once(engines, page):
    await create(engines)
    for body in BODIES:
        await send(engines.queues, WORK, body)

    shown: list[BrowsedMessage] = []
    after: int | None = -1
    while after is not None:
        messages, after = await engines.inspector.browse(
            WORK, after_offset=after, messages_max=page
        )
        assert len(messages) <= page
        shown += messages

    assert sorted(message.body for message in shown) == sorted(BODIES)
    assert [message.offset for message in shown] == sorted(message.offset for message in shown)


async def test_dead_letters_of_all_partitions_are_one_list(engines):
    await create(engines)
    for body in BODIES[:20]:
        await send(engines.queues, WORK, body)
    for message in [one for _ in range(20) for one in await engines.queues.receive(WORK)]:
        await settle(engines.queues, WORK, message, SettleAction.REJECT, reason="bad")

    letters, last = await engines.dead_letters.browse(WORK, messages_max=100)
    [reason] = await engines.dead_letters.reasons(WORK)
    chosen = [letters[3].message_id, str(letters[17].offset)]
    by_reference = await engines.dead_letters.redrive(WORK, WhichDead(references=tuple(chosen)))
    some = await engines.dead_letters.redrive(WORK, messages_max=7)
    rest = await engines.dead_letters.redrive(WORK)

    assert (len(letters), last, reason.count) == (20, None, 20)
    assert (by_reference, some, rest) == (2, 7, 11)
    assert (await engines.queues.stats(WORK)).ready == 20


@pytest.mark.parametrize("target_partitions", [1, 3])
async def test_messages_received_in_vain_move_to_dead_letter_queue(
    engines, clock, target_partitions
):
    await create(engines, DEAD, partitions=target_partitions)
    await create(engines, dead_letters=DeadLetterTarget("dead", 1))
    for body in BODIES:
        await send(engines.queues, WORK, body)
    for _ in range(2):
        while await engines.queues.receive(WORK, messages_max=100, visibility_timeout_ms=1_000):
            pass
        clock.advance(ms=1_000)
    for _ in range(3):
        await engines.queues.sweep(WORK)

    dead = await receive_all(engines.queues, DEAD)
    stats = await engines.queues.stats(WORK)

    assert sorted(message.body for message in dead) == sorted(BODIES)
    assert (stats.moved_out, stats.moving, stats.ready) == (60, 0, 0)


async def test_move_drains_every_partition(engines):
    await create(engines, DEAD, partitions=3)
    await create(engines, dead_letters=DeadLetterTarget("dead", 3))
    for body in BODIES:
        await send(engines.queues, DEAD, body)

    move = await engines.moves.start(DEAD, WORK)

    async def outcome():
        now = await engines.moves.get(move.move_id)
        return now.state, now.moved

    await eventually(outcome, ("completed", 60))
    assert sorted(one.body for one in await receive_all(engines.queues, WORK)) == sorted(BODIES)


async def test_purge_empties_every_partition(engines):
    await create(engines)
    for body in BODIES:
        await send(engines.queues, WORK, body)

    assert await engines.queues.purge(WORK, at_most_every_ms=60_000) == 60
    with pytest.raises(PurgeInProgress):
        await engines.queues.purge(WORK, at_most_every_ms=60_000)

    assert await receive(engines.queues, WORK) == []


async def test_parked_groups_of_all_partitions_are_one_list(engines):
    await create(engines, LINE)
    groups = sorted(f"g{nth}" for nth in range(9))
    for group in groups:
        await send(engines.queues, LINE, b"1", group=group)
        await engines.parked_groups.park(LINE, group, "why")

    first = await engines.parked_groups.browse(LINE, groups_max=4)
    rest = await engines.parked_groups.browse(LINE, after=first[-1].group, groups_max=100)

    assert [one.group for one in (*first, *rest)] == groups
    assert await receive(engines.queues, LINE) == []
    assert [await engines.parked_groups.resume(LINE, group) for group in groups] == [1] * 9
    assert len(await receive_all(engines.queues, LINE)) == 9


async def test_stream_view_has_a_shard_for_each_partition(engines):
    await create(engines, stream_view=True)
    sent = [(await engines.queues.send(WORK, [NewMessage(body)]))[0] for body in BODIES]
    stream = await engines.catalog.stream(StreamName("work"))

    shown = {}
    for shard in stream.shards:
        read = await engines.record_reader.read_shard(stream.name, shard.index, ReadFrom(offset=0))
        for record in read.records:
            shown[shard.index * limits.PARTITION_OFFSETS + record.offset] = record.record.data

    assert [shard.index for shard in stream.shards] == [0, 1, 2, 3]
    assert stream.spec.shards == 4
    assert shown == {one.offset: body for one, body in zip(sent, BODIES, strict=True)}


async def test_view_of_every_partition_is_trimmed(engines, clock):
    await create(engines, stream_view=True, retention_ms=60_000)
    for body in BODIES[:20]:
        await send(engines.queues, WORK, body)
    clock.advance(ms=60_001)

    for _ in range(4):
        await engines.queues.sweep(WORK)

    view = await engines.catalog.stream(StreamName("work"))
    for shard in view.shards:
        read = await engines.record_reader.read_shard(view.name, shard.index, ReadFrom(time_ms=0))
        assert (read.start, read.tip, read.records) == (5, 5, [])


async def test_deleted_queue_leaves_no_key_of_any_partition(engines, redis_url):
    queue = await create(engines)
    for body in BODIES[:8]:
        await send(engines.queues, WORK, body)
    logs = [partition.log_id for partition in queue.partitions]

    await engines.catalog.delete_queue(WORK)

    with pytest.raises(QueueNotFound):
        await engines.queues.send(WORK, [NewMessage(b"late")])
    deleted = await engines.catalog.deleted_logs(0)
    assert sorted(log_id for _, log_id in deleted) == sorted(logs)
    await engines.catalog.delete_tombstoned(logs[:1])
    assert len(await engines.catalog.deleted_logs(0)) == 4
    await engines.catalog.delete_tombstoned(logs)
    await engines.catalog.delete_tombstoned(logs[:1])
    assert await engines.catalog.deleted_logs(0) == []
