"""Charts over REST, as the dashboard draws them."""

from datetime import UTC, datetime

import pytest

from storage.domain.access.credentials import Rights
from storage.domain.access.permissions import Effect, Grant
from storage.domain.groups.group import GroupSpec
from storage.domain.names import GroupName, QueueName
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import QueueSpec
from tests.secured_service import running_secured_service

pytestmark = pytest.mark.one_store

ORDERS = QueueName("orders")
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def secured_service(redis_url, database_url):
    async with running_secured_service(redis_url, database_url) as secured_service:
        await secured_service.storage.groups.put(GroupName("readers"), GroupSpec(stream="clicks"))
        await secured_service.storage.queues.send(ORDERS, [NewMessage(b"x")] * 2)
        await secured_service.storage.time_series.sample()
        yield secured_service


async def test_queue_chart_uses_seconds(secured_service):
    answer = await secured_service.request(
        "GET", "/v1/queues/orders/series", await secured_service.key()
    )

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
    ("window", "step", "length"), [(600, 10, 60), (86_400, 900, 96), (1_209_600, 900, 1_344)]
)
async def test_window_determines_step(secured_service, path, column, window, step, length):
    answer = await secured_service.request(
        "GET", f"{path}?window_seconds={window}", await secured_service.key()
    )

    assert answer.json()["step_seconds"] == step
    assert len(answer.json()["columns"][column]) == length


@pytest.mark.parametrize("window", ["9", "1209601", "soon"])
async def test_invalid_window_is_rejected(secured_service, window):
    path = f"/v1/queues/orders/series?window_seconds={window}"
    answer = await secured_service.request("GET", path, await secured_service.key())

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
async def test_unknown_subject_has_no_chart(secured_service, path, code):
    answer = await secured_service.request("GET", path, await secured_service.key())

    assert (answer.status_code, answer.json()["code"]) == (404, code)


async def test_chart_requires_permission_on_its_subject(secured_service):
    some = Grant(Effect.ALLOW, ("queue:list", "metrics:read"), ("other",))
    key = await secured_service.key(Rights(grants=(some,)))

    answers = [
        await secured_service.request("GET", path, key)
        for path in ("/v1/queues/orders/series", "/v1/streams/clicks/series", "/v1/series")
    ]

    assert [answer.status_code for answer in answers] == [403, 403, 403]


@pytest.mark.parametrize(
    ("path", "name", "measured"),
    [
        ("/v1/queues", "orders", {"ready": 2, "in_flight": 0, "sent_per_second": None}),
        ("/v1/streams", "clicks", {"groups": 1, "lag_records": 0, "records_in_per_second": None}),
        ("/v1/groups", "readers", {"lag_records": 0, "members": 0, "last_commit_at": None}),
    ],
)
async def test_list_has_latest_measurements(secured_service, path, name, measured):
    items = (
        await secured_service.request("GET", f"{path}?measured=true", await secured_service.key())
    ).json()["items"]
    unmeasured = (await secured_service.request("GET", path, await secured_service.key())).json()

    measurement = {item["name"]: item["measurement"] for item in items}[name]
    assert measurement.items() >= measured.items()
    assert datetime.fromisoformat(measurement["measured_at"]) > BEGAN
    assert {item["measurement"] for item in unmeasured["items"]} == {None}


async def test_object_is_listed_before_it_is_measured(secured_service):
    await secured_service.storage.catalog.put_queue(QueueName("young"), QueueSpec())

    answer = await secured_service.request(
        "GET", "/v1/queues?measured=true&prefix=young", await secured_service.key()
    )

    [young] = answer.json()["items"]
    assert young["measurement"] is None


async def test_list_without_measurements_rejects_parameter(secured_service):
    answer = await secured_service.request(
        "GET", "/v1/webhooks?measured=true", await secured_service.key()
    )

    assert answer.status_code == 422
