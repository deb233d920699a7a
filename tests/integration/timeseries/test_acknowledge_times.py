"""Time from send to acknowledgement, and failed deliveries, of each queue."""

import pytest

from storage.domain import limits
from storage.domain.errors import StorageUnavailable
from storage.domain.names import QueueName
from storage.domain.queues.message import SettleAction, Settlement
from tests.queue_operations import WORK, create_queue, expire_deliveries, send, settle

STEP_MS = limits.SERIES_STEP_MS
OTHER = QueueName("other")


@pytest.fixture
async def times(engines):
    await create_queue(engines, WORK)
    await engines.time_series.sample()
    return engines.queues._acknowledge_times


async def acknowledge(engines, clock, *ages_ms: int, queue=WORK) -> None:
    """Acknowledge a message of each age."""
    for age_ms in ages_ms:
        await send(engines.queues, queue, b"x")
        [message] = await engines.queues.receive(queue)
        clock.advance(ms=age_ms)
        assert await settle(engines.queues, queue, message, SettleAction.ACK) is None


async def sample(engines, clock, queue=WORK):
    await engines.queues._acknowledge_times.report()
    clock.advance(ms=STEP_MS)
    await engines.time_series.sample()
    return (await engines.time_series.latest_queues("default"))[queue.name]


async def test_sample_has_percentiles_of_acknowledgements(engines, clock, times):
    await acknowledge(engines, clock, *[5] * 90, *[100] * 8, *[6_000] * 2)

    measured = await sample(engines, clock)

    assert measured.acknowledge_p50_ms == 5
    assert 100 <= measured.acknowledge_p95_ms <= 112
    assert 6_000 <= measured.acknowledge_p99_ms <= 6_750
    assert (measured.failed_per_second, measured.failure_ratio) == (0, 0)


async def test_sample_without_acknowledgements_has_none(engines, clock, times):
    await acknowledge(engines, clock, 5)
    await sample(engines, clock)

    measured = await sample(engines, clock)
    chart = await engines.time_series.of_queue(WORK, limits.HOUR_MS)

    assert measured.acknowledge_p50_ms is None
    assert chart.columns["acknowledge_p50_ms"][-2:] == (5, None)


async def test_percentiles_cover_one_step_only(engines, clock, times):
    await acknowledge(engines, clock, *[2_000] * 50)
    await sample(engines, clock)
    await acknowledge(engines, clock, 3, 3)

    assert (await sample(engines, clock)).acknowledge_p99_ms == 3


async def test_expired_histogram_begins_again(engines, clock, times, monkeypatch):
    await acknowledge(engines, clock, *[2_000] * 50)
    await sample(engines, clock)
    monkeypatch.setattr(limits, "ACKNOWLEDGE_TIMES_RETENTION_MS", 0)
    await acknowledge(engines, clock, 2_000)
    await times.report()
    monkeypatch.undo()
    await acknowledge(engines, clock, 3)

    assert (await sample(engines, clock)).acknowledge_p99_ms == 3


async def test_recreated_queue_begins_again(engines, clock, times):
    await acknowledge(engines, clock, 2_000)
    await sample(engines, clock)
    await engines.catalog.delete_queue(WORK)
    await create_queue(engines, WORK)
    await acknowledge(engines, clock, 3)

    assert (await sample(engines, clock)).acknowledge_p99_ms == 3


async def test_only_accepted_acknowledgements_count(engines, clock, times):
    await send(engines.queues, WORK, *[b"x"] * 3)
    [late] = await engines.queues.receive(WORK, visibility_timeout_ms=1_000)
    others = await engines.queues.receive(WORK, messages_max=2)
    clock.advance(ms=1_000)
    await engines.queues.receive(WORK)
    await engines.queues.settle(WORK, [Settlement(late.receipt_handle, SettleAction.ACK)])
    await settle(engines.queues, WORK, others[0], SettleAction.NACK)
    await settle(engines.queues, WORK, others[1], SettleAction.EXTEND, visibility_timeout_ms=5_000)

    measured = await sample(engines, clock)

    assert measured.acknowledge_p50_ms is None


async def test_failed_deliveries_are_counted(engines, clock, times):
    await send(engines.queues, WORK, *[b"x"] * 3)
    nacked, rejected, released = await engines.queues.receive(WORK, messages_max=3)
    await settle(engines.queues, WORK, nacked, SettleAction.NACK, delay_ms=limits.HOUR_MS)
    await settle(engines.queues, WORK, rejected, SettleAction.REJECT)
    await settle(engines.queues, WORK, released, SettleAction.RELEASE)
    await expire_deliveries(engines.queues, WORK, clock, 1)
    [last] = await engines.queues.receive(WORK)
    await settle(engines.queues, WORK, last, SettleAction.ACK)

    measured = await sample(engines, clock)
    chart = await engines.time_series.of_queue(WORK, limits.HOUR_MS)

    assert (measured.failed, measured.acknowledged) == (3, 1)
    assert measured.failure_ratio == pytest.approx(0.75)
    assert chart.columns["failure_ratio"][-1] == pytest.approx(0.75)


async def test_long_chart_has_the_highest_of_a_quarter(engines, clock, times):
    for age_ms in (3, 2_000, 5):
        await acknowledge(engines, clock, age_ms)
        await sample(engines, clock)

    chart = await engines.time_series.of_queue(WORK, 2 * limits.HOUR_MS)

    assert 2_000 <= chart.columns["acknowledge_p50_ms"][-1] <= 2_250


async def test_failed_report_is_repeated_without_delaying_others(
    engines, clock, times, monkeypatch
):
    await create_queue(engines, OTHER)
    await acknowledge(engines, clock, 3)
    await acknowledge(engines, clock, 4, queue=OTHER)
    broken, add = (await engines.catalog.queue(WORK)).log_id, times._hot.add_acknowledge_times

    async def fail_one(address, counts):
        if address.log_id == broken:
            raise StorageUnavailable("down")
        await add(address, counts)

    monkeypatch.setattr(times._hot, "add_acknowledge_times", fail_one)
    other = await sample(engines, clock, OTHER)
    monkeypatch.undo()

    assert other.acknowledge_p50_ms == 4
    assert (await sample(engines, clock)).acknowledge_p50_ms == 3


async def test_counted_queues_are_bounded(engines, clock, times, monkeypatch):
    monkeypatch.setattr(limits, "ACKNOWLEDGE_TIMES_QUEUES_MAX", 1)
    await create_queue(engines, OTHER)
    await acknowledge(engines, clock, 3)
    await acknowledge(engines, clock, 4, queue=OTHER)

    assert await times.report() == 1
