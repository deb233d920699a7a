"""What SQS has beyond the plain verbs of a queue, and what natively goes further, one rule at a time."""

import asyncio

import msgspec
import pytest

from storage.domain.backoff import Backoff, BackoffKind, Jitter
from storage.domain.clock import ManualClock
from storage.domain.errors import (
    ErrorCode,
    InFlightLimitReached,
    MessageInFlight,
    MessageNotFound,
    MoveRefused,
    PurgeInProgress,
    ValidationFailed,
)
from storage.domain.messages import (
    MessageState,
    NewMessage,
    ReceivedMessage,
    SettleAction,
    Settlement,
    WhichDead,
)
from storage.domain.moves import Move, MoveState
from storage.domain.names import QueueName
from storage.domain.queues import (
    DeadLetterTarget,
    DedupScope,
    QueueSpec,
    QueueType,
)
from storage.lifespan import Storage, open_storage
from storage.queues import Queues
from storage.settings import StorageSettings

WORK, DEAD = QueueName("work"), QueueName("dead")
LINE, LOST = QueueName("line.fifo"), QueueName("lost.fifo")
HOUR_MS = 3_600_000


async def made(engines: Storage, name: QueueName, **spec: object) -> QueueName:
    kind = QueueType.FIFO if name.name.endswith(".fifo") else QueueType.STANDARD
    await engines.catalog.put_queue(name, QueueSpec(type=kind, attempts_max=None, **spec))  # type: ignore[arg-type]
    return name


async def send(
    queues: Queues, name: QueueName, *bodies: bytes, group: str = "", **more: object
) -> None:
    await queues.send(name, [NewMessage(body, group=group, **more) for body in bodies])  # type: ignore[arg-type]


async def receive(queues: Queues, name: QueueName, most: int = 10) -> list[bytes]:
    return [message.body for message in await queues.receive(name, messages_max=most)]


async def settle(
    queues: Queues,
    name: QueueName,
    message: ReceivedMessage,
    action: SettleAction,
    visibility_timeout_ms: int = 0,
) -> ErrorCode | None:
    verdict = Settlement(
        message.receipt_handle, action, visibility_timeout_ms=visibility_timeout_ms
    )
    [settled] = await queues.settle(name, [verdict], any_delivery=True)
    return settled.error


async def times_out(
    queues: Queues, name: QueueName, clock: ManualClock, times: int
) -> list[ReceivedMessage]:
    """Receive one message so often, without a verdict; the last delivery."""
    received: list[ReceivedMessage] = []
    for _ in range(times):
        received = await queues.receive(name, messages_max=10, visibility_timeout_ms=1_000)
        clock.advance(ms=1_000)
    return received


# ── Handles, as SQS takes them ──


async def test_an_old_handle_deletes_a_standard_queues_message(engines, clock):
    queues = engines.queues
    await made(engines, WORK)
    await send(queues, WORK, b"one")
    [first] = await queues.receive(WORK, visibility_timeout_ms=1_000)
    clock.advance(ms=1_000)
    await queues.receive(WORK)

    deleted = await settle(queues, WORK, first, SettleAction.ACK)
    clock.advance(ms=HOUR_MS)

    assert deleted is None
    assert await receive(queues, WORK) == []
    assert (await queues.stats(WORK)).acknowledged == 1


async def test_an_old_handle_does_nothing_to_a_fifo_queues_message(engines, clock):
    queues = engines.queues
    await made(engines, LINE)
    await send(queues, LINE, b"one", group="a")
    [first] = await queues.receive(LINE, visibility_timeout_ms=1_000)
    clock.advance(ms=1_000)
    await queues.receive(LINE)

    refused = await settle(queues, LINE, first, SettleAction.ACK)

    assert refused is ErrorCode.RECEIPT_HANDLE_EXPIRED


async def test_a_visibility_of_zero_makes_a_message_ready_at_once(engines):
    queues = engines.queues
    await made(engines, WORK)
    await send(queues, WORK, b"one")
    [message] = await queues.receive(WORK)

    await settle(queues, WORK, message, SettleAction.EXTEND, 0)
    [again] = await queues.receive(WORK)

    assert (again.receives, again.crashes, again.failures) == (2, 0, 0)


async def test_a_ready_message_is_hidden_by_a_handle_that_ran_out(engines, clock):
    queues = engines.queues
    await made(engines, WORK)
    await send(queues, WORK, b"one")
    [message] = await queues.receive(WORK, visibility_timeout_ms=1_000)
    clock.advance(ms=1_000)

    hidden = await settle(queues, WORK, message, SettleAction.EXTEND, 5_000)
    early = await receive(queues, WORK)
    clock.advance(ms=5_000)

    assert (hidden, early) == (None, [])
    assert await receive(queues, WORK) == [b"one"]


async def test_a_delivery_lasts_twelve_hours_at_most(engines, clock):
    queues = engines.queues
    await made(engines, WORK)
    await send(queues, WORK, b"one")
    [message] = await queues.receive(WORK, visibility_timeout_ms=12 * HOUR_MS)
    clock.advance(ms=HOUR_MS)

    refused = await settle(queues, WORK, message, SettleAction.EXTEND, 12 * HOUR_MS)
    taken = await settle(queues, WORK, message, SettleAction.EXTEND, 11 * HOUR_MS)

    assert (refused, taken) == (ErrorCode.VALIDATION_FAILED, None)


# ── Limits ──


async def test_a_standard_queue_says_that_too_many_are_in_flight(engines):
    queues = engines.queues
    await made(engines, WORK, in_flight_max=2)
    await send(queues, WORK, b"1", b"2", b"3")

    received = await queues.receive(WORK, messages_max=10)
    with pytest.raises(InFlightLimitReached):
        await queues.receive(WORK)
    await settle(queues, WORK, received[0], SettleAction.ACK)

    assert [message.body for message in received] == [b"1", b"2"]
    assert await receive(queues, WORK) == [b"3"]


async def test_a_fifo_queue_with_too_many_in_flight_gives_nothing(engines):
    queues = engines.queues
    await made(engines, LINE, in_flight_max=1)
    await send(queues, LINE, b"1", group="a")
    await send(queues, LINE, b"2", group="b")

    assert await receive(queues, LINE) == [b"1"]
    assert await receive(queues, LINE) == []


async def test_purges_may_be_kept_apart(engines, clock):
    queues = engines.queues
    await made(engines, WORK)
    await queues.purge(WORK, at_most_every_ms=60_000)
    clock.advance(ms=59_999)
    with pytest.raises(PurgeInProgress):
        await queues.purge(WORK, at_most_every_ms=60_000)
    clock.advance(ms=1)

    assert await queues.purge(WORK, at_most_every_ms=60_000) == 0


# ── Deduplication and delay of fifo queues ──


async def test_content_is_told_by_its_digest(engines):
    queues = engines.queues
    await made(engines, LINE, deduplicate_by_content=True)
    await send(queues, LINE, b"same", group="a")
    await send(queues, LINE, b"same", group="b")
    await send(queues, LINE, b"same", group="a", dedup_id="own")

    assert await receive(queues, LINE) == [b"same", b"same"]


async def test_the_scope_of_a_deduplication_id_may_be_its_group(engines):
    queues = engines.queues
    await made(engines, LINE, dedup_scope=DedupScope.GROUP)
    for group in ("a", "b", "a"):
        await send(queues, LINE, group.encode(), group=group, dedup_id="1")

    assert await receive(queues, LINE) == [b"a", b"b"]


async def test_a_fifo_queue_delays_all_alike_and_keeps_the_order(engines, clock):
    queues = engines.queues
    await made(engines, LINE, delay_ms=5_000)
    await send(queues, LINE, b"1", group="a")
    await engines.catalog.change_queue(
        LINE, lambda spec: QueueSpec(type=spec.type, attempts_max=None)
    )
    await send(queues, LINE, b"2", group="a")  # not before the one that is still delayed
    early = await receive(queues, LINE)
    clock.advance(ms=5_000)

    assert early == []
    assert await receive(queues, LINE) == [b"1", b"2"]


async def test_a_delayed_message_does_not_lock_its_group(engines, clock):
    queues = engines.queues
    await made(engines, LINE, delay_ms=1_000)
    await send(queues, LINE, b"1", group="a")
    clock.advance(ms=600)
    await send(queues, LINE, b"2", group="a")
    clock.advance(ms=400)

    assert await receive(queues, LINE) == [b"1"]


# ── Receive attempts ──


async def test_an_attempt_that_is_repeated_gets_the_same_deliveries(engines, clock):
    queues = engines.queues
    await made(engines, LINE)
    await send(queues, LINE, b"1", b"2", group="a")
    first = await queues.receive(LINE, messages_max=10, attempt_id="t", visibility_timeout_ms=9_000)
    clock.advance(ms=8_000)

    again = await queues.receive(LINE, messages_max=10, attempt_id="t", visibility_timeout_ms=9_000)
    clock.advance(ms=8_000)

    assert [one.receipt_handle for one in again] == [one.receipt_handle for one in first]
    assert [one.receives for one in again] == [1, 1]
    assert await receive(queues, LINE) == []  # hidden anew by the repeat


async def test_an_attempt_is_a_new_one_when_a_message_was_settled(engines):
    queues = engines.queues
    await made(engines, LINE)
    await send(queues, LINE, b"1", b"2", group="a")
    first = await queues.receive(LINE, messages_max=10, attempt_id="t")
    await settle(queues, LINE, first[0], SettleAction.ACK)

    assert await queues.receive(LINE, messages_max=10, attempt_id="t") == []


# ── Time to live, long delays ──


async def test_a_message_that_outlives_its_time_is_not_delivered(engines, clock):
    queues = engines.queues
    await made(engines, WORK)
    await send(queues, WORK, b"short", ttl_ms=1_000)
    await send(queues, WORK, b"long")
    clock.advance(ms=1_000)

    assert await receive(queues, WORK) == [b"long"]
    assert (await queues.stats(WORK)).expired == 1


async def test_what_outlived_its_time_is_counted_without_a_receive(engines, clock):
    queues = engines.queues
    await made(engines, WORK)
    await send(queues, WORK, b"grouped", group="a", ttl_ms=1_000)
    await send(queues, WORK, b"delayed", delay_ms=500, ttl_ms=500)
    await send(queues, WORK, b"plain", ttl_ms=1_000)
    clock.advance(ms=1_000)

    stats = await queues.stats(WORK)

    assert (stats.ready, stats.delayed, stats.expired) == (0, 0, 3)


async def test_a_message_in_flight_outlives_its_time_only_there(engines, clock):
    queues = engines.queues
    await made(engines, WORK)
    await send(queues, WORK, b"one", ttl_ms=1_000)
    await queues.receive(WORK, visibility_timeout_ms=2_000)
    clock.advance(ms=1_500)
    during = await queues.stats(WORK)
    clock.advance(ms=500)
    after = await queues.stats(WORK)

    assert (during.in_flight, during.expired) == (1, 0)
    assert (after.ready, after.in_flight, after.expired) == (0, 0, 1)


async def test_a_delay_may_last_for_years_and_retention_counts_from_its_end(engines, clock):
    queues = engines.queues
    year_ms = 365 * 24 * HOUR_MS
    await made(engines, WORK, retention_ms=60_000)
    await send(queues, WORK, b"later", delay_ms=9 * year_ms)
    clock.advance(ms=9 * year_ms - 1)
    await queues.tidy(WORK)
    early = await receive(queues, WORK)
    clock.advance(ms=1)

    assert early == []
    assert await receive(queues, WORK) == [b"later"]


async def test_what_is_due_in_years_does_not_hide_what_has_expired(engines, clock):
    queues = engines.queues
    await made(engines, WORK, retention_ms=60_000)
    await send(queues, WORK, b"later", delay_ms=365 * 24 * HOUR_MS)
    await send(queues, WORK, b"old")
    clock.advance(ms=60_000)

    stats = await queues.stats(WORK)

    assert (stats.ready, stats.delayed, stats.expired) == (0, 1, 1)


# ── Priority ──


async def test_higher_priorities_are_delivered_first_and_keep_their_order(engines, clock):
    queues = engines.queues
    await made(engines, WORK)
    await send(queues, WORK, b"0a", b"0b")
    await send(queues, WORK, b"1a", b"1b", priority=1)
    await send(queues, WORK, b"9", priority=9)
    [first] = await queues.receive(WORK)
    await settle(queues, WORK, first, SettleAction.RELEASE)

    assert await receive(queues, WORK) == [b"9", b"1a", b"1b", b"0a", b"0b"]


async def test_the_oldest_ready_message_is_told_whatever_its_priority(engines, clock):
    queues = engines.queues
    await made(engines, WORK)
    await send(queues, WORK, b"old", priority=1)
    since = clock.now_ms()
    clock.advance(ms=1_000)
    await send(queues, WORK, b"new", priority=9)
    await send(queues, WORK, b"plain")

    assert (await queues.stats(WORK)).oldest_ready_at_ms == since


async def test_a_priority_goes_with_a_message_to_its_dead_letter_queue(engines, clock):
    queues = engines.queues
    await made(engines, DEAD)
    await made(engines, WORK, dead_letters=DeadLetterTarget("dead", 1))
    await send(queues, WORK, b"low")
    await send(queues, WORK, b"high", priority=5)
    await times_out(queues, WORK, clock, times=2)

    assert await receive(queues, DEAD) == [b"high", b"low"]


# ── Fairness ──


async def test_groups_of_a_standard_queue_take_turns(engines):
    queues = engines.queues
    await made(engines, WORK)
    await send(queues, WORK, *[b"a%d" % number for number in range(6)], group="a")
    await send(queues, WORK, b"b0", b"b1", group="b")

    received = [(await receive(queues, WORK, 1))[0] for _ in range(8)]

    assert received == [b"a0", b"b0", b"a1", b"b1", b"a2", b"a3", b"a4", b"a5"]


async def test_groups_and_messages_without_one_share_the_deliveries(engines):
    queues = engines.queues
    await made(engines, WORK)
    await send(queues, WORK, *[b"a%d" % number for number in range(6)], group="a")
    await send(queues, WORK, b"1", b"2", b"3")

    received = [(await receive(queues, WORK, 1))[0] for _ in range(9)]

    assert {b"1", b"2", b"3"} <= set(received[:6])


async def test_no_group_of_a_standard_queue_is_locked(engines, clock):
    queues = engines.queues
    await made(engines, WORK)
    await send(queues, WORK, b"1", b"2", group="a")
    [first] = await queues.receive(WORK)
    [second] = await queues.receive(WORK)
    await settle(queues, WORK, first, SettleAction.ACK)
    clock.advance(ms=30_000)
    [again] = await queues.receive(WORK)

    assert (first.body, second.body, again.body) == (b"1", b"2", b"2")
    assert await receive(queues, WORK) == []


async def test_a_noisy_tenant_does_not_delay_a_quiet_one(engines, clock):
    """A has 20 000 waiting and sends more; B sends one a second; four consumers take 100 ms a message."""
    queues = engines.queues
    await made(engines, WORK)
    for _ in range(20):
        await send(queues, WORK, *[b"a"] * 1_000, group="a")
    waits: list[int] = []
    for tick in range(200):  # of 100 ms
        if tick % 10 == 0:
            await send(queues, WORK, b"b", group="b")
        taken = [await queues.receive(WORK) for _ in range(4)]
        for [message] in taken:
            if message.body == b"b":
                waits.append(clock.now_ms() - message.sent_at_ms)
            await settle(queues, WORK, message, SettleAction.ACK)
        clock.advance(ms=100)

    assert len(waits) == 20
    assert sorted(waits)[18] < 1_000


# ── Dead-letter queues ──


async def test_a_message_moves_at_the_receive_that_would_be_one_too_many(engines, clock):
    queues = engines.queues
    await made(engines, DEAD)
    await made(engines, WORK, dead_letters=DeadLetterTarget("dead", 2))
    await send(queues, WORK, b"poison", headers=(("k", "String", b"v"),))
    [last] = await times_out(queues, WORK, clock, times=2)
    waiting = (await queues.stats(DEAD)).ready  # nothing moves when the lease runs out

    empty = await queues.receive(WORK)
    [dead] = await queues.receive(DEAD)

    assert (waiting, empty) == (0, [])
    assert dead.message_id == last.message_id
    assert (dead.body, dead.headers) == (b"poison", last.headers)
    assert (dead.receives, dead.dead_letter_source) == (3, "work")
    assert dead.sent_at_ms == last.sent_at_ms


async def test_counts_of_both_queues_add_up_after_a_move(engines, clock):
    queues = engines.queues
    await made(engines, DEAD)
    await made(engines, WORK, dead_letters=DeadLetterTarget("dead", 1))
    await send(queues, WORK, b"1", b"2")
    await times_out(queues, WORK, clock, times=2)

    source, target = await queues.stats(WORK), await queues.stats(DEAD)

    assert (source.sent, source.ready, source.moving, source.moved_out) == (2, 0, 0, 2)
    assert (target.sent, target.ready, target.moved_in) == (0, 2, 2)


async def test_messages_pass_through_a_chain_of_queues(engines, clock):
    queues = engines.queues
    q3 = await made(engines, QueueName("q3"))
    q2 = await made(engines, QueueName("q2"), dead_letters=DeadLetterTarget("q3", 2))
    q1 = await made(engines, QueueName("q1"), dead_letters=DeadLetterTarget("q2", 1))
    await send(queues, q1, b"far")
    await times_out(queues, q1, clock, times=2)
    await times_out(queues, q2, clock, times=2)

    [arrived] = await queues.receive(q3)

    assert (arrived.receives, arrived.dead_letter_source) == (3, "q2")


async def test_a_dead_letter_queue_that_is_gone_leaves_messages_where_they_are(engines, clock):
    queues = engines.queues
    await made(engines, DEAD)
    await made(engines, WORK, dead_letters=DeadLetterTarget("dead", 1))
    await send(queues, WORK, b"stays")
    await times_out(queues, WORK, clock, times=1)
    await engines.catalog.delete_queue(DEAD)

    assert await receive(queues, WORK) == [b"stays"]


async def test_a_fifo_groups_later_messages_go_on_after_one_has_died(engines, clock):
    queues = engines.queues
    await made(engines, LOST)
    await made(engines, LINE, dead_letters=DeadLetterTarget("lost.fifo", 1))
    await send(queues, LINE, b"bad", b"good", group="a")
    [bad] = await queues.receive(LINE, messages_max=1, visibility_timeout_ms=1_000)
    clock.advance(ms=1_000)

    following = await receive(queues, LINE, 1)
    [dead] = await queues.receive(LOST)

    assert following == [b"good"]
    assert (dead.body, dead.group, dead.dedup_id) == (b"bad", "a", bad.message_id)


async def test_what_was_left_on_its_way_is_brought_by_a_sweep_and_only_once(engines, clock):
    """The process that let messages depart ends before it brings them; two others find them."""
    queues, carrier = engines.queues, engines.queues._carrier
    await made(engines, DEAD)
    await made(engines, WORK, dead_letters=DeadLetterTarget("dead", 1))
    await send(queues, WORK, b"1", b"2", b"3")
    await times_out(queues, WORK, clock, times=1)
    bring, carrier.carry = carrier.carry, _does_nothing
    await queues.receive(WORK)
    on_the_way = await queues.stats(WORK)
    carrier.carry = bring

    await asyncio.gather(*(queues.tidy(WORK) for _ in range(4)))

    assert (on_the_way.moving, on_the_way.ready) == (3, 0)
    assert await receive(queues, DEAD) == [b"1", b"2", b"3"]
    assert (await queues.stats(WORK)).moved_out == 3


async def _does_nothing(_: QueueName) -> None:
    """In place of carrying."""


# ── Moves ──


async def until_over(engines: Storage, move: Move) -> Move:
    for _ in range(500):
        move = await engines.moves.get(move.move_id)
        if move.state not in (MoveState.RUNNING, MoveState.CANCELLING):
            return move
        await asyncio.sleep(0.01)
    raise AssertionError(f"the move does not end: {move}")


async def dead_letters(engines: Storage, clock: ManualClock, count: int) -> None:
    """So many messages in DEAD, which died in WORK."""
    await made(engines, DEAD)
    await made(engines, WORK, dead_letters=DeadLetterTarget("dead", 1))
    await send(engines.queues, WORK, *[b"%d" % number for number in range(count)])
    while (await engines.queues.stats(DEAD)).ready < count:
        await engines.queues.receive(WORK, messages_max=1_000, visibility_timeout_ms=1)
        clock.advance(ms=1)


async def test_a_move_takes_messages_back_to_where_they_died(engines, clock):
    await dead_letters(engines, clock, 250)

    move = await engines.moves.start(DEAD)
    ended = await until_over(engines, move)
    source, target = await engines.queues.stats(DEAD), await engines.queues.stats(WORK)
    [first, *_] = await engines.queues.receive(WORK)

    assert (move.state, move.to_move) == (MoveState.RUNNING, 250)
    assert (ended.state, ended.moved, ended.failure) == (MoveState.COMPLETED, 250, "")
    assert (source.ready, target.ready) == (0, 250)
    assert (first.body, first.receives, first.dead_letter_source) == (b"0", 1, "")


async def test_a_move_may_have_another_destination(engines, clock):
    other = await made(engines, QueueName("other"))
    await dead_letters(engines, clock, 3)

    await until_over(engines, await engines.moves.start(DEAD, other))

    assert await receive(engines.queues, other) == [b"0", b"1", b"2"]


async def test_only_a_dead_letter_queue_can_be_moved_from_once_at_a_time(engines, clock):
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


async def test_a_move_fails_when_its_destination_goes_and_loses_nothing(engines, clock):
    await dead_letters(engines, clock, 5)
    await engines.catalog.delete_queue(WORK)
    await made(engines, QueueName("source"), dead_letters=DeadLetterTarget("dead", 1))

    ended = await until_over(engines, await engines.moves.start(DEAD))

    assert (ended.state, ended.failure) == (MoveState.FAILED, "queue_not_found")
    assert (await engines.queues.stats(DEAD)).ready == 5


async def test_a_move_that_nobody_works_on_is_taken_up_again(engines, clock):
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


# ── Back-off, pause ──


@pytest.mark.parametrize(
    ("policy", "delays_ms"),
    [
        (Backoff(kind=BackoffKind.FIXED, initial_ms=700, jitter=Jitter.NONE), [700, 700, 700]),
        (Backoff(kind=BackoffKind.LINEAR, initial_ms=700, jitter=Jitter.NONE), [700, 1400, 2100]),
        (
            Backoff(initial_ms=1_000, multiplier=3, max_ms=5_000, jitter=Jitter.NONE),
            [1_000, 3_000, 5_000],
        ),
        (Backoff(kind=BackoffKind.LIST, delays_ms=(10, 20), jitter=Jitter.NONE), [10, 20, 20]),
    ],
)
async def test_a_failure_waits_as_the_queue_says(engines, clock, policy, delays_ms):
    queues = engines.queues
    await made(engines, WORK, backoff=policy)
    await send(queues, WORK, b"one")

    for delay_ms in delays_ms:
        [message] = await queues.receive(WORK)
        verdict = Settlement(message.receipt_handle, SettleAction.NACK)
        [settled] = await queues.settle(WORK, [verdict])
        assert settled.visible_at_ms == clock.now_ms() + delay_ms
        clock.advance(ms=delay_ms)


@pytest.mark.parametrize(("jitter", "least_ms"), [(Jitter.FULL, 0), (Jitter.EQUAL, 5_000)])
async def test_jitter_spreads_the_delays(engines, clock, jitter, least_ms):
    queues = engines.queues
    policy = Backoff(kind=BackoffKind.FIXED, initial_ms=10_000, jitter=jitter)
    await made(engines, WORK, backoff=policy)
    await send(queues, WORK, *[b"one"] * 100)
    received = await queues.receive(WORK, messages_max=100)

    verdicts = [Settlement(one.receipt_handle, SettleAction.NACK) for one in received]
    settled = await queues.settle(WORK, verdicts)
    delays_ms = [(one.visible_at_ms or 0) - clock.now_ms() for one in settled]

    assert least_ms <= min(delays_ms) < least_ms + 1_000
    assert 9_000 < max(delays_ms) <= 10_000


async def test_a_consumers_own_delay_comes_before_the_queues(engines, clock):
    queues = engines.queues
    await made(engines, WORK, backoff=Backoff(jitter=Jitter.NONE))
    await send(queues, WORK, b"one")
    [message] = await queues.receive(WORK)

    verdict = Settlement(message.receipt_handle, SettleAction.NACK, delay_ms=0)
    await queues.settle(WORK, [verdict])

    assert await receive(queues, WORK) == [b"one"]


async def test_a_paused_queue_takes_messages_and_hands_out_none(engines):
    queues = engines.queues
    await made(engines, WORK, paused=True)
    await send(queues, WORK, b"one")
    paused = await queues.receive(WORK, wait_ms=10)
    await engines.catalog.change_queue(
        WORK, lambda spec: msgspec.structs.replace(spec, paused=False)
    )

    assert paused == []
    assert await receive(queues, WORK) == [b"one"]


# ── Looking at messages, and dropping one ──


async def test_browsing_goes_on_where_it_ended(engines):
    queues = engines.queues
    await made(engines, WORK)
    await send(queues, WORK, *[b"%d" % number for number in range(25)])
    seen: list[bytes] = []
    after: int | None = -1
    while after is not None:
        page, after = await queues.browse(WORK, after_offset=after, messages_max=10)
        seen += [message.body for message in page]

    assert seen == [b"%d" % number for number in range(25)]
    assert (await queues.stats(WORK)).ready == 25


async def test_a_call_of_browsing_looks_at_a_bounded_number_of_messages(engines):
    queues = engines.queues
    await made(engines, WORK)
    await send(queues, WORK, *[b"x"] * 999)
    await send(queues, WORK, b"ready", b"delayed", delay_ms=1_000)
    first, after = await queues.browse(WORK, state=MessageState.DELAYED)
    second, end = await queues.browse(WORK, state=MessageState.DELAYED, after_offset=after or 0)

    assert [message.body for message in [*first, *second]] == [b"ready", b"delayed"]
    assert (after, end) == (999, None)


async def test_stragglers_that_left_the_log_are_shown_in_their_place(engines):
    queues = engines.queues
    await made(engines, WORK)
    await send(queues, WORK, b"first", delay_ms=HOUR_MS)
    for _ in range(2):
        await send(queues, WORK, *[b"x"] * 1_000)
        received = await queues.receive(WORK, messages_max=1_000)
        verdicts = [Settlement(one.receipt_handle, SettleAction.ACK) for one in received]
        await queues.settle(WORK, verdicts)
    await queues.tidy(WORK)
    await send(queues, WORK, b"last")

    found, _ = await queues.browse(WORK)

    assert [message.body for message in found] == [b"first", b"last"]


async def test_a_message_is_found_by_its_id_and_by_its_offset(engines):
    queues = engines.queues
    await made(engines, WORK)
    [first, second] = await queues.send(WORK, [NewMessage(b"1"), NewMessage(b"2")])

    by_id = await queues.message(WORK, second.message_id)
    by_offset = await queues.message(WORK, "0")

    assert (by_id.body, by_offset.message_id) == (b"2", first.message_id)
    for wrong in ("2", "-1", "x", "9" * 30, first.message_id[:-1] + "9", "0" * 32):
        with pytest.raises(MessageNotFound):
            await queues.message(WORK, wrong)


async def test_dropping_a_message_in_flight_frees_its_group(engines):
    queues = engines.queues
    await made(engines, LINE)
    await send(queues, LINE, b"1", b"2", group="a")
    [first] = await queues.receive(LINE)

    await queues.drop(LINE, first.message_id)

    assert await receive(queues, LINE) == [b"2"]
    assert await settle(queues, LINE, first, SettleAction.ACK) is None  # it is gone: fine
    assert (await queues.stats(LINE)).purged == 1


async def test_a_dead_letter_can_be_dropped(engines):
    queues = engines.queues
    await engines.catalog.put_queue(WORK, QueueSpec(attempts_max=1))
    await send(queues, WORK, b"1")
    [message] = await queues.receive(WORK)
    await settle(queues, WORK, message, SettleAction.REJECT)

    await queues.drop(WORK, message.message_id)

    assert await queues.dead_letters(WORK) == []
    with pytest.raises(MessageNotFound):
        await queues.drop(WORK, message.message_id)


# ── Dead letters by reason ──


async def died(queues: Queues, *deaths: tuple[bytes, str, str]) -> dict[bytes, str]:
    """Messages (body, group, reason) that were rejected in WORK; their ids."""
    ids = {}
    for body, group, reason in deaths:
        await send(queues, WORK, body, group=group)
        [message] = await queues.receive(WORK)
        verdict = Settlement(message.receipt_handle, SettleAction.REJECT, reason=reason)
        await queues.settle(WORK, [verdict])
        ids[body] = message.message_id
    return ids


async def test_dead_letters_are_counted_by_reason(engines, clock):
    queues = engines.queues
    await engines.catalog.put_queue(WORK, QueueSpec())
    since = clock.now_ms()
    await died(queues, (b"1", "", "typo"), (b"2", "", "gone"))
    clock.advance(ms=1_000)
    await died(queues, (b"3", "", "gone"))

    gone, typo = await queues.death_reasons(WORK)

    assert (gone.reason, gone.count, typo.reason, typo.count) == ("gone", 2, "typo", 1)
    assert (gone.first_died_at_ms, gone.last_died_at_ms) == (since, since + 1_000)


@pytest.mark.parametrize(
    ("which", "redriven"),
    [
        (WhichDead(), [b"1", b"2", b"3", b"4"]),
        (WhichDead(reason="gone"), [b"2", b"4"]),
        (WhichDead(group="a"), [b"1", b"2"]),
        (WhichDead(reason="gone", group="a"), [b"2"]),
        (WhichDead(words=("0", "3", "99", "x")), [b"1", b"4"]),
        (WhichDead(words=("x",)), []),
        (WhichDead(reason="other"), []),
    ],
)
async def test_only_the_dead_letters_that_are_meant_are_redriven(engines, which, redriven):
    queues = engines.queues
    await engines.catalog.put_queue(WORK, QueueSpec())
    deaths = (b"1", "a", "typo"), (b"2", "a", "gone"), (b"3", "", "typo"), (b"4", "", "gone")
    await died(queues, *deaths)

    count = await queues.redrive(WORK, which)

    assert count == len(redriven)
    assert sorted(await receive(queues, WORK)) == redriven
    assert (await queues.stats(WORK)).dead_lettered == 4 - count


async def test_a_redrive_may_be_bounded_and_goes_from_the_oldest(engines):
    queues = engines.queues
    await engines.catalog.put_queue(WORK, QueueSpec())
    ids = await died(queues, (b"1", "", "x"), (b"2", "", "y"), (b"3", "", "x"))

    first = await queues.redrive(WORK, WhichDead(reason="x"), messages_max=1)
    second = await queues.redrive(WORK, WhichDead(words=(ids[b"2"],)))

    assert (first, second) == (1, 1)
    assert await receive(queues, WORK) == [b"1", b"2"]


async def test_many_dead_letters_are_counted_and_redriven_in_rounds(engines):
    queues = engines.queues
    await engines.catalog.put_queue(WORK, QueueSpec())
    for _ in range(3):
        await send(queues, WORK, *[b"x"] * 900)
        received = await queues.receive(WORK, messages_max=1_000)
        verdicts = [
            Settlement(one.receipt_handle, SettleAction.REJECT, reason="bad") for one in received
        ]
        await queues.settle(WORK, verdicts)

    [bad] = await queues.death_reasons(WORK)
    redriven = await queues.redrive(WORK, messages_max=2_500)

    assert (bad.count, redriven) == (2_700, 2_500)
    assert (await queues.stats(WORK)).dead_lettered == 200


# ── Changing a message ──


async def test_a_waiting_message_can_be_put_off_and_called_back(engines, clock):
    queues = engines.queues
    await made(engines, WORK)
    await send(queues, WORK, b"1", b"2")

    put_off = await queues.change(WORK, "0", delay_ms=5_000)
    meanwhile = await receive(queues, WORK)
    clock.advance(ms=5_000)
    due = await receive(queues, WORK)

    assert (put_off.state, put_off.due_at_ms) == (MessageState.DELAYED, clock.now_ms())
    assert (meanwhile, due) == ([b"2"], [b"1"])


async def test_a_delay_and_a_priority_change_each_for_itself(engines, clock):
    queues = engines.queues
    await made(engines, WORK)
    await send(queues, WORK, b"plain")
    await send(queues, WORK, b"delayed", delay_ms=5_000)
    await queues.change(WORK, "1", priority=9)
    still = await queues.message(WORK, "1")
    clock.advance(ms=5_000)

    assert still.state is MessageState.DELAYED
    assert await receive(queues, WORK) == [b"delayed", b"plain"]


async def test_a_changed_message_of_a_group_keeps_its_group(engines, clock):
    queues = engines.queues
    await made(engines, WORK)
    await send(queues, WORK, b"1", b"2", group="a")

    await queues.change(WORK, "0", delay_ms=1_000)
    first = await receive(queues, WORK)
    clock.advance(ms=1_000)

    assert (first, await receive(queues, WORK)) == ([b"2"], [b"1"])


async def test_what_cannot_be_changed_says_so(engines):
    queues = engines.queues
    await made(engines, WORK)
    await made(engines, LINE)
    await send(queues, WORK, b"out")
    await send(queues, WORK, b"grouped", group="a")
    await send(queues, LINE, b"in line", group="a")
    await queues.receive(WORK, messages_max=1)
    in_flight = [one.offset for one in (await queues.browse(WORK))[0] if one.receives]

    with pytest.raises(MessageInFlight):
        await queues.change(WORK, str(in_flight[0]), delay_ms=0)
    with pytest.raises(MessageNotFound):
        await queues.change(WORK, "7", delay_ms=0)
    with pytest.raises(ValidationFailed):
        await queues.change(WORK, "1", priority=3)
    with pytest.raises(ValidationFailed):
        await queues.change(LINE, "0", delay_ms=0)


async def test_a_changed_message_still_expires_in_its_time(engines, clock):
    queues = engines.queues
    await made(engines, WORK, retention_ms=60_000)
    await send(queues, WORK, b"1")
    await queues.change(WORK, "0", priority=1)
    clock.advance(ms=60_000)

    stats = await queues.stats(WORK)

    assert (stats.ready, stats.expired) == (0, 1)


# ── Two processes at once ──


async def test_carrying_by_many_at_once_loses_and_doubles_nothing(
    engines, redis_url, database_url, clock
):
    """Two processes let messages die and move them back, and a sweep carries, all at the same time."""
    settings = StorageSettings(redis_url=redis_url, database_url=database_url)
    async with open_storage(settings, clock=clock) as other:
        await made(engines, DEAD)
        await made(engines, WORK, dead_letters=DeadLetterTarget("dead", 1))
        bodies = [b"%d" % number for number in range(400)]
        await send(engines.queues, WORK, *bodies)
        for _ in range(6):
            for process in (engines, other):
                await process.queues.receive(WORK, messages_max=200, visibility_timeout_ms=1)
            clock.advance(ms=1)
            await asyncio.gather(
                *(process.queues.receive(WORK, messages_max=1) for process in (engines, other)),
                *(process.queues._carrier.carry(WORK) for process in (engines, other)),
                *(process.queues.tidy(WORK) for process in (engines, other)),
            )
            started = await asyncio.gather(
                *(process.moves.start(DEAD, per_second=100) for process in (engines, other)),
                return_exceptions=True,
            )
            for move in started:
                if isinstance(move, Move):
                    await engines.moves.cancel(move.move_id)
                    await until_over(engines, move)
        clock.advance(ms=60_000)

        found: list[bytes] = []
        for name in (WORK, DEAD):
            page, _ = await engines.queues.browse(name, messages_max=1_000)
            found += [message.body for message in page]
        work, dead = await engines.queues.stats(WORK), await engines.queues.stats(DEAD)

    assert sorted(found) == sorted(bodies)
    assert work.moved_out + dead.moved_out > 400  # they did go to and fro
    assert (work.moved_out, dead.moved_out) == (dead.moved_in, work.moved_in)
