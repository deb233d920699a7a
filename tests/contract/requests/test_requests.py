"""Requests over REST: asking, replying, asking again, and scatter-gather through a topic."""

import asyncio
from typing import Any

import httpx
import msgspec
import pytest

from tests.contract.topics.test_topics import put_route, receive


@pytest.fixture
async def queue(api: httpx.AsyncClient, name: str) -> str:
    """Create a queue; return its path."""
    (await api.put(f"/v1/queues/{name}", json={})).raise_for_status()
    return f"/v1/queues/{name}"


async def work(api: httpx.AsyncClient, queue: str, *replies: Any, **headers: str) -> list[int]:
    """Receive one message and reply to it; return the statuses."""
    [message] = await receive(api, queue.rpartition("/")[2], 1)
    path = f"/v1/requests/{message['reply_to']}/replies"
    answers = [await api.post(path, json={"body": one}, headers=headers) for one in replies]
    return [answer.status_code for answer in answers]


async def ask(api: httpx.AsyncClient, path: str, **fields: Any) -> httpx.Response:
    """Send a request."""
    response = await api.post(f"{path}/requests", json={"body": {"n": 1}, **fields})
    assert response.is_success, response.text
    return response


def code_of(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["code"]


async def test_caller_waits_and_gets_reply(api, queue):
    asked, statuses = await asyncio.gather(ask(api, queue), work(api, queue, {"total": 250}))

    answer = asked.json()
    assert statuses == [201]
    assert (asked.status_code, answer["complete"], answer["timed_out"]) == (200, True, False)
    [reply] = answer["replies"]
    assert reply["body"] == {"total": 250}
    assert reply["content_type"] == "application/json"
    assert reply["at"].endswith("Z")


async def test_second_reply_is_told_that_request_is_answered(api, queue):
    pending = (await ask(api, queue, wait_seconds=0)).json()
    path = f"/v1/requests/{pending['request']}/replies"

    first = await api.post(path, json={"body": "a"}, headers={"Idempotency-Key": "k"})
    again = await api.post(path, json={"body": "a"}, headers={"Idempotency-Key": "k"})
    second = await api.post(path, json={"body": "b"})

    assert (first.status_code, again.status_code) == (201, 201)
    assert code_of(second) == (409, "reply_taken")


async def test_late_reply_is_refused_and_request_times_out(api, queue):
    response = await ask(api, queue, timeout_seconds=0.05)
    answer = response.json()
    assert (response.status_code, answer["replies"], answer["timed_out"]) == (200, [], True)
    late = await api.post(f"/v1/requests/{answer['request']}/replies", json={"body": "a"})
    assert code_of(late) == (409, "reply_too_late")


async def test_pending_request_is_asked_for_at_its_location(api, queue, service_url):
    response = await ask(api, queue, wait_seconds=0)
    location = response.headers["location"]

    assert response.status_code == 202
    assert response.json()["replies"] == []
    async with httpx.AsyncClient(base_url=service_url) as elsewhere:
        waits = elsewhere.get(f"{location}?wait_seconds=20", timeout=30)
        got, _ = await asyncio.gather(waits, work(api, queue, "done"))
        again = await elsewhere.get(location)
    assert got.json() == again.json()
    assert [reply["body"] for reply in got.json()["replies"]] == ["done"]


async def test_reply_survives_broken_connection_of_caller(api, queue, service_url):
    """The caller asks again with its Idempotency-Key: nothing is sent twice."""
    key = {"Idempotency-Key": "k-1"}
    async with httpx.AsyncClient(base_url=service_url) as broken:
        with pytest.raises(httpx.ReadTimeout):
            await broken.post(f"{queue}/requests", json={"body": "a"}, headers=key, timeout=0.5)
    assert await work(api, queue, "done") == [201]

    response = await api.post(f"{queue}/requests", json={"body": "a"}, headers=key)

    assert [reply["body"] for reply in response.json()["replies"]] == ["done"]
    received = await api.post(f"{queue}/receive", json={})
    assert received.json()["messages"] == []


async def settle(api: httpx.AsyncClient, queue: str, request: str | None, **ack: Any) -> Any:
    """Receive a message, and acknowledge it with a reply; return the result."""
    [message] = (await api.post(f"{queue}/receive", json={"wait_seconds": 20})).json()["messages"]
    reply = {"request": request or message["reply_to"], "body": "done"}
    item = {"receipt_handle": message["receipt_handle"], "action": "ack", "reply": reply, **ack}
    response = await api.post(f"{queue}/settle", json={"settlements": [item]})
    return response.json()["results"][0] if response.is_success else response.json()


async def messages_in(api: httpx.AsyncClient, queue: str) -> int:
    return len((await api.get(f"{queue}/messages")).json()["items"])


async def test_acknowledgement_carries_reply(api, queue):
    response, result = await asyncio.gather(ask(api, queue), settle(api, queue, None))

    assert result == {"status": "ok"}
    assert [reply["body"] for reply in response.json()["replies"]] == ["done"]
    assert await messages_in(api, queue) == 0


async def test_delivery_is_acknowledged_when_reply_is_refused(api, queue):
    request = (await ask(api, queue, wait_seconds=0)).json()["request"]
    await api.post(f"/v1/requests/{request}/replies", json={"body": "first"})

    result = await settle(api, queue, None)

    assert (result["status"], result["reply_error"]["code"]) == ("ok", "reply_taken")
    assert await messages_in(api, queue) == 0


async def test_delivery_stays_when_request_is_forged(api, queue):
    await ask(api, queue, wait_seconds=0)

    result = await settle(api, queue, "A" * 42)

    assert (result["status"], result["error"]["code"]) == ("error", "request_not_found")
    assert await messages_in(api, queue) == 1


async def test_reply_with_other_action_is_refused(api, queue):
    await ask(api, queue, wait_seconds=0)

    problem = await settle(api, queue, None, action="release")

    assert problem["errors"][0]["pointer"] == "/settlements/0/reply"


@pytest.mark.usefixtures("router")
async def test_topic_gathers_replies_of_its_routes(api, topic, name):
    await put_route(api, topic, "a")
    await put_route(api, topic, "b", target={"queue": f"{name}-b"}, format="envelope")

    response, *statuses = await asyncio.gather(
        ask(api, topic, subject="price", replies_max=2),
        work(api, f"{name}-a", "from a"),
        work(api, f"{name}-b", "from b"),
    )

    assert statuses == [[201], [201]]
    assert response.status_code == 200
    assert {one["body"] for one in response.json()["replies"]} == {"from a", "from b"}


async def test_publication_is_repeated_with_key_only_once(api, topic):
    answers = [
        await api.post(
            f"{topic}/requests",
            json={"body": "a", "wait_seconds": 0},
            headers={"Idempotency-Key": "k"},
        )
        for _ in range(2)
    ]

    stats = await api.get(f"{topic}/stats")
    assert [answer.status_code for answer in answers] == [202, 202]
    assert stats.json()["messages"] == 1


async def test_fifo_queue_takes_equal_requests_of_different_callers(api, name):
    config = {"type": "fifo", "deduplicate_by_content": True}
    (await api.put(f"/v1/queues/{name}", json=config)).raise_for_status()

    for _ in range(2):
        await ask(api, f"/v1/queues/{name}", group="g", wait_seconds=0)

    messages = await receive(api, name, 2)
    assert len({message["reply_to"] for message in messages}) == 2


async def test_msgpack_carries_bytes_both_ways(api, queue):
    packed = {"Content-Type": "application/msgpack", "Accept": "application/msgpack"}
    body = msgspec.msgpack.encode({"body": b"\xff", "wait_seconds": 0})
    response = await api.post(f"{queue}/requests", content=body, headers=packed)
    request = msgspec.msgpack.decode(response.content)["request"]

    reply = msgspec.msgpack.encode({"body": b"\xfe"})
    await api.post(f"/v1/requests/{request}/replies", content=reply, headers=packed)

    got = await api.get(f"/v1/requests/{request}/reply", headers=packed)
    assert msgspec.msgpack.decode(got.content)["replies"][0]["body"] == b"\xfe"


async def test_forged_request_is_not_found(api, queue):
    request = (await ask(api, queue, wait_seconds=0)).json()["request"]
    forged = ("B" if request[0] == "A" else "A") + request[1:]

    for name in (forged, "no-token"):
        got = await api.get(f"/v1/requests/{name}/reply")
        put = await api.post(f"/v1/requests/{name}/replies", json={"body": "x"})
        assert code_of(got) == code_of(put) == (404, "request_not_found")


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"timeout_seconds": 3601}, "/timeout_seconds"),
        ({"timeout_seconds": 0}, "/timeout_seconds"),
        ({"wait_seconds": 21}, "/wait_seconds"),
        ({"replies_max": 101}, "/replies_max"),
        ({"reply_ttl_seconds": 0}, "/reply_ttl_seconds"),
        ({"ttl_seconds": 5}, "/ttl_seconds"),
    ],
    ids=str,
)
async def test_invalid_terms_are_refused(api, queue, fields, pointer):
    response = await api.post(f"{queue}/requests", json={"body": "x", **fields})

    assert response.status_code == 422
    assert response.json()["errors"][0]["pointer"] == pointer


async def test_msgpack_acknowledgement_carries_bytes(api, queue):
    packed = {"Content-Type": "application/msgpack"}
    request = (await ask(api, queue, wait_seconds=0)).json()["request"]
    [message] = (await api.post(f"{queue}/receive", json={})).json()["messages"]
    reply = {"request": request, "body": b"\xff"}
    item = {"receipt_handle": message["receipt_handle"], "action": "ack", "reply": reply}

    body = msgspec.msgpack.encode({"settlements": [item]})
    (await api.post(f"{queue}/settle", content=body, headers=packed)).raise_for_status()

    got = await api.get(f"/v1/requests/{request}/reply")
    assert [one["body_base64"] for one in got.json()["replies"]] == ["/w=="]
