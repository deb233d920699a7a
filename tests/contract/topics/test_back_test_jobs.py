"""Back-tests that run as jobs, over REST."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from storage.settings import StorageSettings
from tests.back_test_worker import back_test_worker
from tests.conditions import eventually
from tests.contract.topics.test_topics import publish, put_route

PAID = {"match": {"filter": {"body": {"total": [{"numeric": [">", 10]}]}}}}


@pytest.fixture
async def worker(service: tuple[str, StorageSettings]) -> AsyncIterator[None]:
    """Run back-tests of the service, without Spark."""
    async with back_test_worker(service[1]):
        yield


async def start(api: httpx.AsyncClient, topic: str, config: Any) -> Any:
    response = await api.post(f"{topic}/backtests/jobs", json=config)
    assert response.status_code == 202, response.text
    assert response.headers["location"] == f"{topic}/backtests/jobs/{response.json()['id']}"
    return response.json()


@pytest.mark.usefixtures("worker")
async def test_job_has_the_result_of_a_waiting_call(api, topic):
    await put_route(api, topic, "large", match={"subject": "order.*"})
    for total in (5, 15, 25):
        await publish(api, topic, "order.created", {"total": total})
    await publish(api, topic, "refund", {"total": 25})
    config = {**PAID, "compare_with": "large", "start_time": "2020-01-31T12:00:00Z"}

    started = await start(api, topic, config)

    async def state() -> str:
        response = await api.get(f"{topic}/backtests/jobs/{started['id']}")
        return str(response.json()["state"])

    await eventually(state, "done")
    job = (await api.get(f"{topic}/backtests/jobs/{started['id']}")).json()
    waited = (await api.post(f"{topic}/backtests", json=config)).json()
    assert job["result"] == waited
    assert (waited["evaluated"], waited["gained"], waited["lost"]) == (4, 1, 1)
    assert (job["messages"], job["failure"], job["match"]) == (4, "", PAID["match"])
    assert (job["start_time"], job["end_time"]) == ("2020-01-31T12:00:00.000Z", None)
    listed = (await api.get(f"/v1/jobs/{started['id']}")).json()
    assert (listed["kind"], listed["progress"]["evaluated"]) == ("backtest", 4)


async def test_topic_has_one_job_at_a_time(api, topic):
    await publish(api, topic, "order.created", {"total": 5})

    first, repeated = await start(api, topic, PAID), await start(api, topic, PAID)
    refused = await api.post(f"{topic}/backtests/jobs", json={"match": None})
    cancelled = await api.post(f"/v1/jobs/{first['id']}/cancel")
    after = await start(api, topic, {"match": None})
    await api.post(f"/v1/jobs/{after['id']}/cancel")

    assert (first["state"], first["waiting_for"], first["messages"]) == ("queued", "worker", 1)
    assert (first["result"]["evaluated"], first["result"]["complete"]) == (0, False)
    assert repeated["id"] == first["id"] != after["id"]
    assert (refused.status_code, refused.json()["code"]) == (409, "job_refused")
    assert refused.json()["job_id"] == first["id"]
    assert cancelled.json()["state"] == "cancelled"


async def test_job_is_shown_by_its_topic_alone(api, topic):
    started = await start(api, topic, PAID)
    await api.post(f"/v1/jobs/{started['id']}/cancel")

    other = await api.get(f"/v1/topics/other/backtests/jobs/{started['id']}")
    missing = await api.get(f"{topic}/backtests/jobs/missing")

    assert [one.json()["code"] for one in (other, missing)] == ["job_not_found"] * 2


@pytest.mark.parametrize(
    ("config", "code"),
    [
        ({"match": {"subjects": "a"}}, "match_invalid"),
        ({"compare_with": "missing"}, "route_not_found"),
        ({"messages_max": 5}, "validation_failed"),
        ({"samples_max": 101}, "validation_failed"),
    ],
    ids=str,
)
async def test_job_is_refused(api, topic, config, code):
    assert (await api.post(f"{topic}/backtests/jobs", json=config)).json()["code"] == code
