"""Charts over REST, as the dashboard draws them."""

import pytest

from storage.domain.access.credentials import Rights
from storage.domain.access.permissions import Effect, Grant
from storage.domain.groups.group import GroupSpec
from storage.domain.names import GroupName, QueueName
from storage.domain.queues.message import NewMessage
from tests.guarded import guarding

pytestmark = pytest.mark.one_store

ORDERS = QueueName("orders")


@pytest.fixture
async def guarded(redis_url, database_url):
    async with guarding(redis_url, database_url) as guarded:
        await guarded.storage.groups.put(GroupName("readers"), GroupSpec(stream="clicks"))
        await guarded.storage.queues.send(ORDERS, [NewMessage(b"x")] * 2)
        await guarded.storage.time_series.sample()
        yield guarded


async def test_queue_chart_uses_seconds(guarded):
    answer = await guarded.ask("GET", "/v1/queues/orders/series", await guarded.key())

    chart = answer.json()
    assert answer.status_code == 200
    assert chart["step_seconds"] == 10
    assert chart["start_at"].endswith("0.000Z")
    assert len(chart["columns"]["ready"]) == 360
    assert 2 in chart["columns"]["ready"]
    assert "oldest_age_seconds" in chart["columns"]
    assert not any(name.endswith("_ms") for name in chart["columns"])


@pytest.mark.parametrize(
    ("path", "column"),
    [
        ("/v1/streams/clicks/series", "records"),
        ("/v1/groups/readers/series", "lag_records"),
        ("/v1/series", "messages_in_per_second"),
    ],
)
@pytest.mark.parametrize(
    ("window", "step", "length"), [(600, 10, 60), (86_400, 60, 1_440), (1_209_600, 900, 1_344)]
)
async def test_window_determines_step(guarded, path, column, window, step, length):
    answer = await guarded.ask("GET", f"{path}?window_seconds={window}", await guarded.key())

    assert answer.json()["step_seconds"] == step
    assert len(answer.json()["columns"][column]) == length


@pytest.mark.parametrize("window", ["9", "1209601", "soon"])
async def test_invalid_window_is_rejected(guarded, window):
    path = f"/v1/queues/orders/series?window_seconds={window}"
    answer = await guarded.ask("GET", path, await guarded.key())

    assert answer.status_code == 422
    assert answer.json()["code"] == "validation_failed"


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/v1/queues/none/series", "queue_not_found"),
        ("/v1/streams/none/series", "stream_not_found"),
        ("/v1/groups/none/series", "group_not_found"),
    ],
)
async def test_unknown_subject_has_no_chart(guarded, path, code):
    answer = await guarded.ask("GET", path, await guarded.key())

    assert (answer.status_code, answer.json()["code"]) == (404, code)


async def test_chart_requires_permission_on_its_subject(guarded):
    some = Grant(Effect.ALLOW, ("queue:list", "metrics:read"), ("other",))
    key = await guarded.key(Rights(grants=(some,)))

    answers = [
        await guarded.ask("GET", path, key)
        for path in ("/v1/queues/orders/series", "/v1/streams/clicks/series", "/v1/series")
    ]

    assert [answer.status_code for answer in answers] == [403, 403, 403]
