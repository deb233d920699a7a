"""Time series: what is measured of queues, streams and groups, and how it is read again."""

import pytest

from storage.domain import limits
from storage.domain.messages import NewMessage
from storage.domain.names import QueueName
from storage.domain.queues import QueueSpec

ORDERS = QueueName("orders")
STEP_MS = limits.SERIES_STEP_MS


@pytest.fixture
async def storage(engines):
    await engines.catalog.put_queue(ORDERS, QueueSpec())
    return engines


async def test_a_queue_s_depth_and_rates_become_a_chart(storage, clock):
    await storage.series.sample()
    for count in (3, 0, 5):
        clock.advance(ms=STEP_MS)
        if count:
            await storage.queues.send(ORDERS, [NewMessage(b"x")] * count)
        await storage.series.sample()

    chart = await storage.series.of_queue(ORDERS, limits.HOUR_MS)

    assert chart.step_ms == STEP_MS
    assert len(chart.columns["ready"]) == 360
    assert chart.columns["ready"][-5:] == (None, 0, 3, 3, 8)
    assert chart.columns["sent_per_second"][-5:] == (None, None, 0.3, 0, 0.5)
