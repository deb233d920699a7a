"""Dead-letter queues, and moves between queues."""

import asyncio

import pytest

from storage.bootstrap import Storage, open_storage
from storage.domain.clock import ManualClock
from storage.domain.errors import (
    MoveRefused,
    ValidationFailed,
)
from storage.domain.names import QueueName
from storage.domain.queues.message import ReceivedMessage, SettleAction, WhichDead
from storage.domain.queues.moves import Move, MoveState
from storage.domain.queues.queue import DeadLetterTarget, DedupScope
from storage.queues.transfer import MessageTransfer
from storage.settings import StorageSettings
from tests.queue_operations import (
    DEAD,
    LINE,
    LOST,
    WORK,
    create_queue,
    expire_deliveries,
    receive,
    send,
    settle,
)

# ── Dead-letter queues ──


async def test_message_moves_to_dead_letter_queue_after_max_receives(engines, clock):
    queues = engines.queues
    await create_queue(engines, DEAD)
    await create_queue(engines, WORK, dead_letters=DeadLetterTarget("dead", 2))
    await send(queues, WORK, b"poison", headers=(("k", "String", b"v"),))
    [last] = await expire_deliveries(queues, WORK, clock, times=2)
    waiting = (await queues.stats(DEAD)).ready  # nothing moves when the lease expires

    empty = await queues.receive(WORK)
    [dead] = await queues.receive(DEAD)

    assert (waiting, empty) == (0, [])
    assert dead.message_id == last.message_id
    assert (dead.body, dead.headers) == (b"poison", last.headers)
    assert (dead.receive_count, dead.dead_letter_source) == (3, "work")
    assert dead.sent_at_ms == last.sent_at_ms


async def test_counters_of_both_queues_agree_after_move(engines, clock):
    queues = engines.queues
    await create_queue(engines, DEAD)
    await create_queue(engines, WORK, dead_letters=DeadLetterTarget("dead", 1))
    await send(queues, WORK, b"1", b"2")
    await expire_deliveries(queues, WORK, clock, times=2)

    source, target = await queues.stats(WORK), await queues.stats(DEAD)

    assert (source.sent, source.ready, source.moving, source.moved_out) == (2, 0, 0, 2)
    assert (target.sent, target.ready, target.moved_in) == (0, 2, 2)


async def test_messages_pass_through_chain_of_queues(engines, clock):
    queues = engines.queues
    q3 = await create_queue(engines, QueueName("q3"))
    q2 = await create_queue(engines, QueueName("q2"), dead_letters=DeadLetterTarget("q3", 2))
    q1 = await create_queue(engines, QueueName("q1"), dead_letters=DeadLetterTarget("q2", 1))
    await send(queues, q1, b"far")
    await expire_deliveries(queues, q1, clock, times=2)
    await expire_deliveries(queues, q2, clock, times=2)

    [arrived] = await queues.receive(q3)

    assert (arrived.receive_count, arrived.dead_letter_source) == (3, "q2")


async def test_messages_stay_when_dead_letter_queue_is_deleted(engines, clock):
    queues = engines.queues
    await create_queue(engines, DEAD)
    await create_queue(engines, WORK, dead_letters=DeadLetterTarget("dead", 1))
    await send(queues, WORK, b"stays")
    await expire_deliveries(queues, WORK, clock, times=1)
    await engines.catalog.delete_queue(DEAD)

    assert await receive(queues, WORK) == [b"stays"]


async def test_fifo_group_continues_after_message_is_dead_lettered(engines, clock):
    queues = engines.queues
    await create_queue(engines, LOST)
    await create_queue(engines, LINE, dead_letters=DeadLetterTarget("lost.fifo", 1))
    await send(queues, LINE, b"bad", b"good", group="a")
    [bad] = await queues.receive(LINE, messages_max=1, visibility_timeout_ms=1_000)
    clock.advance(ms=1_000)

    following = await receive(queues, LINE, 1)
    [dead] = await queues.receive(LOST)

    assert following == [b"good"]
    assert (dead.body, dead.group, dead.dedup_id) == (b"bad", "a", bad.message_id)


async def test_maintenance_completes_interrupted_moves_exactly_once(engines, clock, monkeypatch):
    """The process that takes messages out ends before it delivers them; two others find them."""
    queues = engines.queues
    await create_queue(engines, DEAD)
    await create_queue(engines, WORK, dead_letters=DeadLetterTarget("dead", 1))
    await send(queues, WORK, b"1", b"2", b"3")
    await expire_deliveries(queues, WORK, clock, times=1)
    with monkeypatch.context() as interrupted:
        interrupted.setattr(MessageTransfer, "complete", _does_nothing)
        await queues.receive(WORK)
        on_the_way = await queues.stats(WORK)

    await asyncio.gather(*(queues.sweep(WORK) for _ in range(4)))

    assert (on_the_way.moving, on_the_way.ready) == (3, 0)
    assert await receive(queues, DEAD) == [b"1", b"2", b"3"]
    assert (await queues.stats(WORK)).moved_out == 3


async def _does_nothing(_: MessageTransfer, __: QueueName) -> None:
    """Replace the transfer by nothing."""


# ── Moves ──


async def until_over(engines: Storage, move: Move) -> Move:
    for _ in range(500):
        move = await engines.moves.get(move.move_id)
        if move.state not in (MoveState.RUNNING, MoveState.CANCELLING):
            return move
        await asyncio.sleep(0.01)
    raise AssertionError(f"the move does not end: {move}")


async def until_moving(engines: Storage, move: Move) -> None:
    for _ in range(500):
        if (await engines.moves.get(move.move_id)).moved:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"nothing moves: {move}")


async def dead_letters(engines: Storage, clock: ManualClock, count: int) -> None:
    """Dead-letter so many messages of WORK into DEAD."""
    await create_queue(engines, DEAD)
    await create_queue(engines, WORK, dead_letters=DeadLetterTarget("dead", 1))
    await send(engines.queues, WORK, *[b"%d" % number for number in range(count)])
    while (await engines.queues.stats(DEAD)).ready < count:
        await engines.queues.receive(WORK, messages_max=1_000, visibility_timeout_ms=1)
        clock.advance(ms=1)


async def test_move_returns_messages_to_their_source_queue(engines, clock):
    await dead_letters(engines, clock, 250)

    move = await engines.moves.start(DEAD)
    ended = await until_over(engines, move)
    source, target = await engines.queues.stats(DEAD), await engines.queues.stats(WORK)
    [first, *_] = await engines.queues.receive(WORK)

    assert (move.state, move.to_move) == (MoveState.RUNNING, 250)
    assert (ended.state, ended.moved, ended.failure) == (MoveState.COMPLETED, 250, "")
    assert (source.ready, target.ready) == (0, 250)
    assert (first.body, first.receive_count, first.dead_letter_source) == (b"0", 1, "")


async def test_move_accepts_another_destination(engines, clock):
    other = await create_queue(engines, QueueName("other"))
    await dead_letters(engines, clock, 3)

    await until_over(engines, await engines.moves.start(DEAD, other))

    assert await receive(engines.queues, other) == [b"0", b"1", b"2"]


async def test_move_requires_dead_letter_queue_and_runs_alone(engines, clock):
    await dead_letters(engines, clock, 3)
    with pytest.raises(MoveRefused) as refused:
        await engines.moves.start(WORK)
    running = await engines.moves.start(DEAD, per_second=1)
    with pytest.raises(MoveRefused) as refused_again:
        await engines.moves.start(DEAD)
    await engines.moves.cancel(running.move_id)
    ended = await until_over(engines, running)

    assert refused.value.facts["reason"] == "not_a_dead_letter_queue"
    assert refused_again.value.facts["reason"] == "already_running"
    assert ended.state is MoveState.CANCELLED
    assert ended.moved + (await engines.queues.stats(DEAD)).ready == 3


@pytest.mark.parametrize("partitions", [1, 3])
async def test_any_queue_can_be_moved_to_another(engines, partitions):
    """A FIFO queue gets more partitions by a move: its groups keep their order."""
    line = QueueName("wide.fifo")
    await create_queue(engines, LINE)
    await create_queue(engines, line, partitions=partitions, dedup_scope=DedupScope.GROUP)
    for nth in range(30):
        await send(engines.queues, LINE, b"%d" % nth, group=f"g{nth % 4}", dedup_id=f"{nth}")

    ended = await until_over(engines, await engines.moves.start(LINE, line))

    moved: dict[str, list[int]] = {}
    while messages := await engines.queues.receive(line, messages_max=10):
        for message in messages:
            moved.setdefault(message.group, []).append(int(message.body))
            await settle(engines.queues, line, message, SettleAction.ACK)
    assert (ended.state, ended.moved) == (MoveState.COMPLETED, 30)
    assert moved == {f"g{group}": list(range(group, 30, 4)) for group in range(4)}


@pytest.mark.parametrize(("destination", "code"), [(WORK, "same_queue"), (LINE, "type_mismatch")])
async def test_unsuitable_destination_is_refused(engines, destination, code):
    await create_queue(engines, LINE)
    await create_queue(engines, WORK)

    with pytest.raises(ValidationFailed) as refused:
        await engines.moves.start(WORK, destination)

    [fault] = refused.value.faults
    assert (fault.pointer, fault.code) == ("/destination", code)


async def test_move_fails_without_loss_when_destination_is_deleted(engines, clock):
    await dead_letters(engines, clock, 5)
    await engines.catalog.delete_queue(WORK)
    await create_queue(engines, QueueName("source"), dead_letters=DeadLetterTarget("dead", 1))

    ended = await until_over(engines, await engines.moves.start(DEAD))

    assert (ended.state, ended.failure) == (MoveState.FAILED, "queue_not_found")
    assert (await engines.queues.stats(DEAD)).ready == 5


async def test_move_fails_without_loss_when_message_has_no_source(engines, clock):
    await dead_letters(engines, clock, 1)
    await send(engines.queues, DEAD, b"direct")

    ended = await until_over(engines, await engines.moves.start(DEAD))

    assert (ended.state, ended.failure) == (MoveState.FAILED, "message_source_unknown")
    assert ended.moved + (await engines.queues.stats(DEAD)).ready == 2
    elsewhere = await until_over(engines, await engines.moves.start(DEAD, WORK))
    assert elsewhere.state is MoveState.COMPLETED


async def test_abandoned_move_is_resumed(engines, clock):
    await dead_letters(engines, clock, 5)
    move = await engines.moves.start(DEAD, per_second=1)
    await engines.moves.close()
    stopped = await engines.moves.get(move.move_id)

    await engines.moves.resume()
    await engines.moves.cancel(move.move_id)
    ended = await until_over(engines, move)

    assert stopped.state is MoveState.RUNNING
    assert ended.state is MoveState.CANCELLED


async def test_moves_are_listed_newest_first(engines, clock):
    await dead_letters(engines, clock, 1)
    first = await until_over(engines, await engines.moves.start(DEAD))
    clock.advance(ms=1)
    second = await until_over(engines, await engines.moves.start(DEAD))

    assert [one.move_id for one in await engines.moves.list(DEAD)] == [
        second.move_id,
        first.move_id,
    ]


# ── Two processes at once ──


async def test_concurrent_moves_neither_lose_nor_duplicate_messages(
    engines, redis_url, database_url, clock
):
    """Two processes dead-letter messages and move them back while maintenance transfers."""
    settings = StorageSettings(redis_url=redis_url, database_url=database_url)
    async with open_storage(settings, clock=clock) as other:
        await create_queue(engines, DEAD)
        await create_queue(engines, WORK, dead_letters=DeadLetterTarget("dead", 1))
        bodies = [b"%d" % number for number in range(400)]
        await send(engines.queues, WORK, *bodies)
        for _ in range(4):
            for process in (engines, other):
                await process.queues.receive(WORK, messages_max=200, visibility_timeout_ms=1)
            clock.advance(ms=1)
            await asyncio.gather(
                *(process.queues.receive(WORK, messages_max=1) for process in (engines, other)),
                *(process.queues._transfer.complete(WORK) for process in (engines, other)),
                *(process.queues.sweep(WORK) for process in (engines, other)),
            )
            started = await asyncio.gather(
                *(process.moves.start(DEAD, per_second=100) for process in (engines, other)),
                return_exceptions=True,
            )
            for move in started:
                if isinstance(move, Move):
                    await until_moving(engines, move)
                    await engines.moves.cancel(move.move_id)
                    await until_over(engines, move)
        clock.advance(ms=60_000)

        actual_bodies: list[bytes] = []
        for name in (WORK, DEAD):
            page, _ = await engines.inspector.browse(name, messages_max=1_000)
            actual_bodies += [message.body for message in page]
        work, dead = await engines.queues.stats(WORK), await engines.queues.stats(DEAD)

    assert sorted(actual_bodies) == sorted(bodies)
    assert work.moved_out + dead.moved_out > 400  # they did move back and forth
    assert (work.moved_out, dead.moved_out) == (dead.moved_in, work.moved_in)


# ── Rate-limited redrives ──


async def test_background_redrive_keeps_group_order(engines, clock):
    queues = engines.queues
    await create_queue(engines, LINE)
    for number in range(6):
        await send(queues, LINE, b"%d" % number, group="ab"[number % 2])
        [message] = await queues.receive(LINE)
        await settle(queues, LINE, message, SettleAction.REJECT, reason="boom")

    move = await engines.moves.redrive(LINE, WhichDead(group="a"), per_second=500)
    over = await until_over(engines, move)

    assert (over.state, over.moved) == (MoveState.COMPLETED, 3)
    assert await receive(queues, LINE) == [b"0", b"2", b"4"]
    assert (await queues.stats(LINE)).dead_lettered == 3


async def test_redrive_by_reason_reports_its_total(engines, clock):
    """Its total was the number of all dead letters, which its progress never reached."""
    await create_queue(engines, WORK)
    await send(engines.queues, WORK, b"1", b"2", b"3")
    for message, reason in zip(
        await engines.queues.receive(WORK, messages_max=3), ("late", "late", "odd"), strict=True
    ):
        await settle(engines.queues, WORK, message, SettleAction.REJECT, reason=reason)

    move = await engines.moves.redrive(WORK, WhichDead(reason="late"), per_second=500)
    over = await until_over(engines, move)

    assert (move.to_move, over.moved) == (2, 2)


async def test_resumed_redrive_continues_at_its_position(engines, clock):
    """A redriven message that is dead-lettered again is not redriven a second time."""
    queues = engines.queues
    await create_queue(engines, WORK)
    await send(queues, WORK, b"1", b"2", b"3")
    for message in await queues.receive(WORK, messages_max=3):
        await settle(queues, WORK, message, SettleAction.REJECT)
    move = await engines.moves.redrive(WORK, WhichDead(), per_second=1)
    [first] = await received_in_time(engines, WORK)
    await until_moving(engines, move)
    await engines.moves.close()  # as if its process had stopped
    await settle(queues, WORK, first, SettleAction.REJECT)

    await engines.moves.resume()
    [second] = await received_in_time(engines, WORK)
    await engines.moves.cancel(move.move_id)
    over = await until_over(engines, move)

    assert (first.body, second.body) == (b"1", b"2")
    assert (over.state, over.moved) == (MoveState.CANCELLED, 2)


async def received_in_time(engines: Storage, name: QueueName) -> list[ReceivedMessage]:
    for _ in range(500):
        if received := await engines.queues.receive(name):
            return list(received)
        await asyncio.sleep(0.01)
    raise AssertionError("nothing came")


async def test_redrive_of_deleted_queue_fails(engines, clock):
    queues = engines.queues
    await create_queue(engines, WORK)
    await send(queues, WORK, b"1", b"2")
    for message in await queues.receive(WORK, messages_max=2):
        await settle(queues, WORK, message, SettleAction.REJECT)
    move = await engines.moves.redrive(WORK, WhichDead(), per_second=1)
    await received_in_time(engines, WORK)

    await engines.catalog.delete_queue(WORK)
    over = await until_over(engines, move)

    assert (over.state, over.failure) == (MoveState.FAILED, "queue_not_found")
