"""Routes of a stream over REST: one task for each record, and what a stream's topic refuses."""

from typing import Any

import httpx
import pytest

from tests.contract.topics.test_topics import receive


@pytest.fixture
async def stream(api: httpx.AsyncClient, name: str) -> str:
    """Create a stream and the queue `<stream>-a`; return the path of its routes."""
    for path in (f"streams/{name}", f"queues/{name}-a"):
        (await api.put(f"/v1/{path}", json={})).raise_for_status()
    return f"/v1/topics/stream:{name}"


async def put_route(api: httpx.AsyncClient, topic: str, **config: Any) -> httpx.Response:
    target = {"queue": f"{topic.rpartition(':')[2]}-a"}
    return await api.put(f"{topic}/routes/tasks", json={"target": target, **config})


async def append(api: httpx.AsyncClient, stream: str, *bodies: Any) -> None:
    records = [{"data": body, "key": "k"} for body in bodies]
    path = f"/v1/streams/{stream.rpartition(':')[2]}/records"
    (await api.post(path, json={"records": records})).raise_for_status()


@pytest.mark.usefixtures("router")
async def test_one_put_makes_task_of_each_record(api: httpx.AsyncClient, stream: str) -> None:
    created = await put_route(api, stream, match={"filter": {"body": {"vip": [True]}}})
    assert (created.status_code, created.json()["topic"]) == (201, stream.rpartition("/")[2])

    await append(api, stream, {"vip": True, "n": 1}, {"vip": False}, {"vip": True, "n": 2})

    name = stream.rpartition(":")[2]
    messages = await receive(api, f"{name}-a", 2)
    assert [message["body"]["n"] for message in messages] == [1, 2]
    [first, _] = messages
    assert (first["route"], first["headers"][":source_stream"]) == ("tasks", name)


@pytest.mark.usefixtures("router")
async def test_record_is_explained_as_message(api: httpx.AsyncClient, stream: str) -> None:
    await put_route(api, stream, match={"filter": {"body": {"vip": [True]}}})
    await append(api, stream, {"vip": False})
    explained = await api.post(f"{stream}/explain", json={"message": {"body": {"vip": False}}})
    tested = await api.post(
        f"{stream}/backtests", json={"match": {"filter": {"body": {"vip": [False]}}}}
    )

    assert explained.json()["matches"] == []
    assert explained.json()["routes"][0]["failed"][0]["path"] == "body.vip"
    assert (tested.json()["evaluated"], tested.json()["matched"]) == (1, 1)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "", {}),
        ("PATCH", "", {"retention_seconds": 60}),
        ("DELETE", "", None),
        ("POST", "/messages", {"body": "x"}),
    ],
)
async def test_topic_of_stream_is_read_only(
    api: httpx.AsyncClient, stream: str, method: str, path: str, body: Any
) -> None:
    refused = await api.request(method, stream + path, json=body)

    assert (refused.status_code, refused.json()["code"]) == (409, "topic_read_only")


async def test_route_of_missing_stream_is_refused(api: httpx.AsyncClient, name: str) -> None:
    refused = await put_route(api, f"/v1/topics/stream:{name}")

    assert (refused.status_code, refused.json()["code"]) == (404, "topic_not_found")
    assert refused.json()["detail"] == f"Stream '{name}' does not exist."


async def test_cycle_through_stream_is_refused(api: httpx.AsyncClient, stream: str) -> None:
    name = stream.rpartition(":")[2]
    refused = await put_route(api, stream, target={"stream": name})

    assert (refused.status_code, refused.json()["code"]) == (422, "route_cycle")


async def test_stream_is_named_as_stream_in_targets(api: httpx.AsyncClient, stream: str) -> None:
    refused = await put_route(api, stream, target={"topic": "stream:other"})

    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/target/topic")
