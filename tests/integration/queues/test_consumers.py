"""Consumers of queues: counted by each process, shown over all of them, and known of each message."""

import asyncio
from itertools import product

import pytest

from storage.bootstrap import open_storage
from storage.domain import limits
from storage.domain.errors import StorageUnavailable
from storage.domain.queues.consumer import ConsumerProtocol, QueueConsumer, queue_consumer
from storage.domain.queues.message import NewMessage, SettleAction, WhichDead
from storage.domain.queues.policies import PoisonPolicy
from storage.settings import StorageSettings
from tests.queue_operations import HOUR_MS, LINE, WORK, create_queue, send, settle

MINUTE_MS = limits.MINUTE_MS


def consumer(name: str = "shop", address: str = "192.0.2.7") -> QueueConsumer:
    return queue_consumer(name, ConsumerProtocol.REST, address, b"test/1")


ANN, BOB = consumer("ann"), consumer("bob")


async def names(engines, queue=WORK) -> list[str]:
    return [
        one.consumer.principal for one in (await engines.queue_consumers.active(queue)).consumers
    ]


async def only(engines, queue=WORK):
    [activity] = (await engines.queue_consumers.active(queue)).consumers
    return activity


async def last_receivers(engines, queue=WORK) -> list[str]:
    """Return the names of those that received the queue's messages last, '' if unknown."""
    messages, _ = await engines.inspector.browse(queue)
    known = await engines.queue_consumers.receivers_of(queue, messages)
    return [
        known[message.consumer_key].principal if message.consumer_key else ""
        for message in messages
    ]


async def test_queue_without_receives_has_no_consumers(engines):
    await create_queue(engines, WORK)

    assert await names(engines) == []


async def test_receives_without_consumer_are_not_listed(engines):
    await create_queue(engines, WORK)
    await send(engines.queues, WORK, b"x")
    await engines.queues.receive(WORK)

    assert await names(engines) == []
    assert await last_receivers(engines) == [""]


async def test_consumer_shows_rates_over_five_minutes(engines, clock):
    await create_queue(engines, WORK)
    await send(engines.queues, WORK, *[b"x"] * 120)
    for _ in range(12):
        await engines.queues.receive(WORK, messages_max=10, consumer=ANN)
        clock.advance(ms=10_000)
    activity = await only(engines)

    assert activity.consumer == ANN
    assert activity.receives_per_second == pytest.approx(0.1, rel=0.01)
    assert activity.messages_per_second == pytest.approx(1, rel=0.01)
    assert clock.now_ms() - activity.last_received_at_ms == 10_000


async def test_messages_are_in_flight_until_settled_or_expired(engines, clock):
    await create_queue(engines, WORK)
    await send(engines.queues, WORK, *[b"x"] * 5)
    [first, _] = await engines.queues.receive(WORK, messages_max=2, consumer=ANN)
    await engines.queues.receive(WORK, messages_max=3, visibility_timeout_ms=HOUR_MS, consumer=BOB)
    listed = (await engines.queue_consumers.active(WORK)).consumers
    by_name = {one.consumer.principal: one.in_flight for one in listed}
    await settle(engines.queues, WORK, first, SettleAction.ACK)
    after_ack = {
        one.consumer.principal: one.in_flight
        for one in (await engines.queue_consumers.active(WORK)).consumers
    }
    clock.advance(ms=MINUTE_MS)
    after_expiry = {
        one.consumer.principal: one.in_flight
        for one in (await engines.queue_consumers.active(WORK)).consumers
    }

    assert by_name == {"ann": 2, "bob": 3}
    assert after_ack == {"ann": 1, "bob": 3}
    assert after_expiry == {"ann": 0, "bob": 3}


async def test_in_flight_is_extrapolated_when_many(engines, monkeypatch):
    monkeypatch.setattr(limits, "CONSUMER_IN_FLIGHT_COUNTED_MAX", 100)
    await create_queue(engines, WORK)
    await send(engines.queues, WORK, *[b"x"] * 300)
    await engines.queues.receive(WORK, messages_max=300, consumer=ANN)
    listed = await engines.queue_consumers.active(WORK)

    assert listed.is_estimate
    assert [one.in_flight for one in listed.consumers] == [300]


async def test_idle_consumer_leaves_after_five_minutes(engines, clock):
    await create_queue(engines, WORK)
    await engines.queues.receive(WORK, consumer=ANN)
    await engines.queue_consumers.report()
    clock.advance(ms=limits.CONSUMER_WINDOW_MS)
    before = await names(engines)
    clock.advance(ms=1)
    after = await names(engines)
    await engines.queue_consumers.report()

    assert (before, after) == (["ann"], [])
    assert engines.queue_consumers.tracked == 0


async def test_consumer_with_messages_in_flight_stays_listed(engines, clock):
    await create_queue(engines, WORK)
    await send(engines.queues, WORK, b"x")
    await engines.queues.receive(WORK, visibility_timeout_ms=HOUR_MS, consumer=ANN)
    await engines.queue_consumers.report()
    clock.advance(ms=2 * limits.CONSUMER_WINDOW_MS)
    activity = await only(engines)

    assert (activity.in_flight, activity.messages_per_second) == (1, 0)


async def test_waiting_consumer_stays_listed(engines, clock):
    await create_queue(engines, WORK)
    waiting = asyncio.create_task(engines.queues.receive(WORK, wait_ms=20_000, consumer=ANN))
    await asyncio.sleep(0.05)
    for _ in range(10):
        await engines.queue_consumers.report()
        clock.advance(ms=limits.CONSUMER_REFRESH_MS)
    activity = await only(engines)
    await send(engines.queues, WORK, b"x")
    await waiting
    served = await only(engines)

    assert (activity.waiting, activity.receives_per_second) == (1, 0)
    assert (served.waiting, served.in_flight) == (0, 1)


async def test_cancelled_receive_waits_no_longer(engines):
    await create_queue(engines, WORK)
    waiting = asyncio.create_task(engines.queues.receive(WORK, wait_ms=20_000, consumer=ANN))
    await asyncio.sleep(0.05)
    before = (await only(engines)).waiting
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)

    assert (before, (await only(engines)).waiting) == (1, 0)


async def test_activity_of_several_processes_is_added_up(engines, clock, redis_url, database_url):
    await create_queue(engines, WORK)
    await send(engines.queues, WORK, *[b"x"] * 60)
    settings = StorageSettings(redis_url=redis_url, database_url=database_url)
    async with open_storage(settings, clock=clock) as other:
        await engines.queues.receive(WORK, messages_max=40, consumer=ANN)
        await other.queues.receive(WORK, messages_max=10, consumer=ANN)
        await other.queues.receive(WORK, messages_max=10, consumer=BOB)
        clock.advance(ms=10_000)
        await other.queue_consumers.report()
        listed = (await engines.queue_consumers.active(WORK)).consumers

    assert [
        (one.consumer.principal, one.in_flight, round(one.messages_per_second)) for one in listed
    ] == [("ann", 50, 5), ("bob", 10, 1)]


async def test_report_after_outage_has_what_was_counted(engines, monkeypatch):
    await create_queue(engines, WORK)
    await engines.queues.receive(WORK, consumer=ANN)
    hot = engines.queue_consumers._hot
    report, calls = hot.report, []

    async def fail(*arguments):
        calls.append(arguments)
        raise StorageUnavailable("down")

    monkeypatch.setattr(hot, "report", fail)
    await engines.queue_consumers.report()
    monkeypatch.setattr(hot, "report", report)
    await engines.queue_consumers.report()
    snapshot = await names(engines)

    assert len(calls) == 1
    assert snapshot == ["ann"]


async def test_failing_report_of_one_queue_delays_no_other(engines, monkeypatch):
    await create_queue(engines, WORK)
    await create_queue(engines, LINE)
    for queue in (WORK, LINE):
        await engines.queues.receive(queue, consumer=ANN)
    broken = (await engines.catalog.queue(WORK)).log_id
    hot = engines.queue_consumers._hot
    report, reported = hot.report, []

    async def fail_one(address, *arguments):
        if address.log_id == broken:
            raise StorageUnavailable("down")
        reported.append(address.log_id)
        await report(address, *arguments)

    monkeypatch.setattr(hot, "report", fail_one)
    await engines.queue_consumers.report()

    assert reported == [(await engines.catalog.queue(LINE)).log_id]


async def test_tracked_consumers_are_bounded(engines, monkeypatch):
    monkeypatch.setattr(limits, "QUEUE_CONSUMERS_MAX", 3)
    monkeypatch.setattr(limits, "CONSUMERS_TRACKED_MAX", 5)
    await create_queue(engines, WORK)
    await create_queue(engines, LINE)
    for queue, number in product((WORK, LINE), range(10)):
        await engines.queues.receive(queue, consumer=consumer(address=f"192.0.2.{number}"))

    assert engines.queue_consumers.tracked == 5
    assert (len(await names(engines)), len(await names(engines, LINE))) == (3, 2)


async def test_reports_of_many_processes_are_bounded(engines, clock, monkeypatch):
    monkeypatch.setattr(limits, "QUEUE_CONSUMERS_MAX", 4)
    await create_queue(engines, WORK)
    for number in range(20):
        await engines.queues.receive(WORK, consumer=consumer(address=f"192.0.2.{number}"))
        await engines.queue_consumers.report()
        clock.advance(ms=limits.CONSUMER_WINDOW_MS + 1)
        await engines.queue_consumers.report()
    queue = await engines.catalog.queue(WORK)
    snapshot = await engines.queue_consumers._hot.snapshot(
        queue, clock.script_time(), counted_max=0
    )

    assert len(snapshot.reports) <= 4
    assert "192.0.2.19" in {report.consumer.address for report in snapshot.reports}


async def test_message_shows_who_received_it_last(engines, clock):
    await create_queue(engines, WORK)
    await send(engines.queues, WORK, b"a", b"b", b"c", b"d")
    await engines.queues.receive(WORK, messages_max=2, consumer=ANN)
    [third] = await engines.queues.receive(WORK, consumer=BOB)
    await settle(engines.queues, WORK, third, SettleAction.NACK, delay_ms=HOUR_MS)
    once = await last_receivers(engines)
    clock.advance(ms=MINUTE_MS)
    await engines.queues.receive(WORK, consumer=BOB)
    await engines.queues.receive(WORK)
    twice = await last_receivers(engines)

    assert once == ["ann", "ann", "bob", ""]
    assert twice == ["bob", "", "bob", ""]


async def test_message_shows_who_received_it_at_another_process(
    engines, clock, redis_url, database_url, monkeypatch
):
    """Only names are read: counting what is in flight would read as many records on every page."""
    await create_queue(engines, WORK)
    await send(engines.queues, WORK, b"a")
    settings = StorageSettings(redis_url=redis_url, database_url=database_url)
    async with open_storage(settings, clock=clock) as other:
        await other.queues.receive(WORK, consumer=ANN)
        await other.queue_consumers.report()
    hot = engines.queue_consumers._hot
    snapshot, counted = hot.snapshot, []

    async def spy(queue, now, *, counted_max):
        counted.append(counted_max)
        return await snapshot(queue, now, counted_max=counted_max)

    monkeypatch.setattr(hot, "snapshot", spy)

    assert await last_receivers(engines) == ["ann"]
    assert counted == [0]


async def test_dead_letter_shows_who_received_it_last(engines):
    await create_queue(engines, WORK)
    await send(engines.queues, WORK, b"x")
    [message] = await engines.queues.receive(WORK, consumer=ANN)
    await settle(engines.queues, WORK, message, SettleAction.REJECT, reason="no")
    [letter], _ = await engines.dead_letters.browse(WORK)
    known = await engines.queue_consumers.receivers_of(WORK, [letter])
    await engines.dead_letters.redrive(WORK, WhichDead(), messages_max=10)

    assert known[letter.consumer_key] == ANN
    assert letter.last_failure_reason == "no"
    assert await last_receivers(engines) == [""]


async def test_resumed_group_keeps_who_received_it_last(engines):
    await create_queue(engines, LINE, on_poison=PoisonPolicy.PARK_GROUP)
    await send(engines.queues, LINE, b"x", group="g")
    [message] = await engines.queues.receive(LINE, consumer=ANN)
    await settle(engines.queues, LINE, message, SettleAction.REJECT, reason="no")
    await engines.parked_groups.resume(LINE, "g")
    receivers = await last_receivers(engines, LINE)
    [again] = await engines.queues.receive(LINE, consumer=BOB)

    assert receivers == ["ann"]
    assert (again.receive_count, again.failures) == (2, 0)
    assert await last_receivers(engines, LINE) == ["bob"]


STATES = [
    (ttl_ms, priority, group, reason)
    for ttl_ms, priority, group, reason in product((0, HOUR_MS), (0, 5), ("", "g"), ("", "failed"))
    if not (group and priority)
]


@pytest.mark.parametrize("turns", [(ANN, BOB), (None, ANN), (ANN, None), (None, None)])
async def test_known_consumer_changes_nothing_else(engines, turns):
    """A message has the same counts, verdicts and reasons whether or not its consumers are known."""
    queues = engines.queues
    await create_queue(engines, WORK)
    for ttl_ms, priority, group, reason in STATES:
        message = NewMessage(b"x", ttl_ms=ttl_ms, group=group, priority=priority)
        await queues.send(WORK, [message])
        options = {"reason": reason} if reason else {}
        counts = []
        for turn in turns:
            [received] = await queues.receive(WORK, consumer=turn)
            counts.append((received.receive_count, received.failures, received.crash_count))
            error = await settle(queues, WORK, received, SettleAction.NACK, **options)
            assert error is None
        [received] = await queues.receive(WORK, consumer=turns[0])
        assert await settle(queues, WORK, received, SettleAction.REJECT, reason="bad") is None
        [letter], _ = await engines.dead_letters.browse(WORK)
        await engines.dead_letters.redrive(WORK, WhichDead(), messages_max=10)
        [received] = await queues.receive(WORK, consumer=turns[1])

        assert counts == [(1, 0, 0), (2, 1, 0)]
        assert (letter.receive_count, letter.failures, letter.reason) == (3, 3, "bad")
        assert await settle(queues, WORK, received, SettleAction.ACK) is None
    assert (await queues.stats(WORK)).acknowledged == len(STATES)
