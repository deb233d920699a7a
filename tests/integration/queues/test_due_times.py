"""Order and due times of messages: time to live, delay, priority, backoff, pause."""

import msgspec
import pytest

from storage.domain.queues.backoff import Backoff, BackoffKind, Jitter
from storage.domain.queues.message import SettleAction, Settlement
from storage.domain.queues.queue import DeadLetterTarget
from tests.queue_operations import (
    DEAD,
    HOUR_MS,
    WORK,
    create_queue,
    expire_deliveries,
    receive,
    send,
    settle,
)

# ── Time to live and long delays ──


async def test_message_past_its_ttl_is_not_delivered(engines, clock):
    queues = engines.queues
    await create_queue(engines, WORK)
    await send(queues, WORK, b"short", ttl_ms=1_000)
    await send(queues, WORK, b"long")
    clock.advance(ms=1_000)

    assert await receive(queues, WORK) == [b"long"]
    assert (await queues.stats(WORK)).expired == 1


async def test_messages_past_ttl_are_counted_without_receive(engines, clock):
    queues = engines.queues
    await create_queue(engines, WORK)
    await send(queues, WORK, b"grouped", group="a", ttl_ms=1_000)
    await send(queues, WORK, b"delayed", delay_ms=500, ttl_ms=500)
    await send(queues, WORK, b"plain", ttl_ms=1_000)
    clock.advance(ms=1_000)

    stats = await queues.stats(WORK)

    assert (stats.ready, stats.delayed, stats.expired) == (0, 0, 3)


async def test_in_flight_message_expires_after_its_lease(engines, clock):
    queues = engines.queues
    await create_queue(engines, WORK)
    await send(queues, WORK, b"one", ttl_ms=1_000)
    await queues.receive(WORK, visibility_timeout_ms=2_000)
    clock.advance(ms=1_500)
    during = await queues.stats(WORK)
    clock.advance(ms=500)
    after = await queues.stats(WORK)

    assert (during.in_flight, during.expired) == (1, 0)
    assert (after.ready, after.in_flight, after.expired) == (0, 0, 1)


async def test_delay_can_last_years_and_retention_starts_at_its_end(engines, clock):
    queues = engines.queues
    year_ms = 365 * 24 * HOUR_MS
    await create_queue(engines, WORK, retention_ms=60_000)
    await send(queues, WORK, b"later", delay_ms=9 * year_ms)
    clock.advance(ms=9 * year_ms - 1)
    await queues.sweep(WORK)
    early = await receive(queues, WORK)
    clock.advance(ms=1)

    assert early == []
    assert await receive(queues, WORK) == [b"later"]


async def test_message_due_in_years_does_not_hide_expired_ones(engines, clock):
    queues = engines.queues
    await create_queue(engines, WORK, retention_ms=60_000)
    await send(queues, WORK, b"later", delay_ms=365 * 24 * HOUR_MS)
    await send(queues, WORK, b"old")
    clock.advance(ms=60_000)

    stats = await queues.stats(WORK)

    assert (stats.ready, stats.delayed, stats.expired) == (0, 1, 1)


# ── Priority ──


async def test_higher_priority_is_delivered_first_in_order(engines, clock):
    queues = engines.queues
    await create_queue(engines, WORK)
    await send(queues, WORK, b"0a", b"0b")
    await send(queues, WORK, b"1a", b"1b", priority=1)
    await send(queues, WORK, b"9", priority=9)
    [first] = await queues.receive(WORK)
    await settle(queues, WORK, first, SettleAction.RELEASE)

    assert await receive(queues, WORK) == [b"9", b"1a", b"1b", b"0a", b"0b"]


async def test_oldest_ready_message_is_reported_across_priorities(engines, clock):
    queues = engines.queues
    await create_queue(engines, WORK)
    await send(queues, WORK, b"old", priority=1)
    since = clock.now_ms()
    clock.advance(ms=1_000)
    await send(queues, WORK, b"new", priority=9)
    await send(queues, WORK, b"plain")

    assert (await queues.stats(WORK)).oldest_ready_at_ms == since


async def test_priority_is_kept_in_dead_letter_queue(engines, clock):
    queues = engines.queues
    await create_queue(engines, DEAD)
    await create_queue(engines, WORK, dead_letters=DeadLetterTarget("dead", 1))
    await send(queues, WORK, b"low")
    await send(queues, WORK, b"high", priority=5)
    await expire_deliveries(queues, WORK, clock, times=2)

    assert await receive(queues, DEAD) == [b"high", b"low"]


# ── Backoff and pause ──


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
async def test_failed_message_is_delayed_by_backoff_policy(engines, clock, policy, delays_ms):
    queues = engines.queues
    await create_queue(engines, WORK, backoff=policy)
    await send(queues, WORK, b"one")

    for delay_ms in delays_ms:
        [message] = await queues.receive(WORK)
        verdict = Settlement(message.receipt_handle, SettleAction.NACK)
        [settled] = await queues.settle(WORK, [verdict])
        assert settled.visible_at_ms == clock.now_ms() + delay_ms
        clock.advance(ms=delay_ms)


@pytest.mark.parametrize(("jitter", "least_ms"), [(Jitter.FULL, 0), (Jitter.EQUAL, 5_000)])
async def test_jitter_spreads_delays(engines, clock, jitter, least_ms):
    queues = engines.queues
    policy = Backoff(kind=BackoffKind.FIXED, initial_ms=10_000, jitter=jitter)
    await create_queue(engines, WORK, backoff=policy)
    await send(queues, WORK, *[b"one"] * 100)
    received = await queues.receive(WORK, messages_max=100)

    verdicts = [Settlement(one.receipt_handle, SettleAction.NACK) for one in received]
    settled = await queues.settle(WORK, verdicts)
    delays_ms = [(one.visible_at_ms or 0) - clock.now_ms() for one in settled]

    assert least_ms <= min(delays_ms) < least_ms + 1_000
    assert 9_000 < max(delays_ms) <= 10_000


async def test_consumer_delay_overrides_queue_backoff(engines, clock):
    queues = engines.queues
    await create_queue(engines, WORK, backoff=Backoff(jitter=Jitter.NONE))
    await send(queues, WORK, b"one")
    [message] = await queues.receive(WORK)

    verdict = Settlement(message.receipt_handle, SettleAction.NACK, delay_ms=0)
    await queues.settle(WORK, [verdict])

    assert await receive(queues, WORK) == [b"one"]


async def test_paused_queue_accepts_but_does_not_deliver(engines):
    queues = engines.queues
    await create_queue(engines, WORK, paused=True)
    await send(queues, WORK, b"one")
    paused = await queues.receive(WORK, wait_ms=10)
    await engines.catalog.change_queue(
        WORK, lambda spec: msgspec.structs.replace(spec, paused=False)
    )

    assert paused == []
    assert await receive(queues, WORK) == [b"one"]
