"""Spreads over REST: definitions, refusals, reports, and RabbitMQ's consistent-hash exchange."""

from collections import defaultdict
from typing import Any

import pytest

from tests.conditions import eventually
from tests.contract.topics.test_topics import put_route, receive


def spread_of(name: str, **fields: Any) -> dict[str, Any]:
    """Return a target that spreads over both queues of a topic."""
    members = [{"queue": f"{name}-a", "weight": 2}, {"queue": f"{name}-b", "weight": 1}]
    return {"spread": members, **fields}


async def test_spread_is_shown_as_it_was_put(api, topic, name):
    stored = await put_route(api, topic, "r", target=spread_of(name))
    shown = (await api.get(f"{topic}/routes/r")).json()

    nothing = {"queue": None, "stream": None, "topic": None, "url": None}
    assert stored["target"] == {**nothing, **spread_of(name), "by": "key"}
    assert shown["target"] == stored["target"]
    again = await put_route(api, topic, "r", target=shown["target"])
    assert (again["number"], again["changes"]) == (stored["number"], [])


async def test_creation_with_the_same_spread_has_no_changes(api, topic):
    """A member without its weight differed from the stored one."""
    target = {"spread": [{"queue": "a"}, {"queue": "b", "weight": 2}]}
    await put_route(api, topic, "r", target=target)

    again = await api.put(
        f"{topic}/routes/r", json={"target": target}, headers={"if-none-match": "*"}
    )

    assert (again.status_code, again.json()["changes"]) == (412, [])


async def test_change_of_spread_begins_revision(api, topic, name):
    first = await put_route(api, topic, "r", target=spread_of(name))

    async def patch(**changes: Any) -> Any:
        response = await api.patch(f"{topic}/routes/r", json=changes)
        assert response.is_success, response.text
        return response.json()

    assert (await patch(delay_seconds=1))["number"] == first["number"]
    by_subject = await patch(target=spread_of(name, by="subject"))
    assert by_subject["number"] > first["number"]
    one = await patch(target={"queue": f"{name}-a"})
    assert one["target"] == {"queue": f"{name}-a", "stream": None, "topic": None, "url": None}


QUEUE, OTHER = {"queue": "a"}, {"queue": "b"}


@pytest.mark.parametrize(
    ("target", "pointer", "detail"),
    [
        ({"spread": []}, "/target/spread", "A spread has 2 to 32 members"),
        ({"spread": [QUEUE]}, "/target/spread", "A spread has 2 to 32 members"),
        ({"spread": [QUEUE, QUEUE]}, "/target/spread/1", "The target is a member already"),
        (
            {"spread": [QUEUE, {"url": "https://crm.example/"}]},
            "/target/spread/1/url",
            "A URL cannot be a member; let a queue be one, and a webhook post its messages",
        ),
        ({"spread": [QUEUE, {**OTHER, "weight": 0}]}, "/target/spread/1/weight", None),
        ({"spread": [QUEUE, {**OTHER, "colour": "red"}]}, "/target/spread/1/colour", None),
        ({"spread": [QUEUE, OTHER], "by": "offset"}, "/target/by", None),
        ({"spread": [QUEUE, OTHER], "rate": 5}, "/target/rate", "Only a URL has it"),
        ({**QUEUE, "by": "key"}, "/target/by", "Only a spread has it"),
        ({**QUEUE, "spread": [QUEUE, OTHER]}, "/target", None),
    ],
)
async def test_invalid_spread_is_refused_with_a_pointer(api, topic, target, pointer, detail):
    response = await api.put(f"{topic}/routes/r", json={"target": target})

    assert (response.status_code, response.json()["code"]) == (422, "validation_failed")
    [error] = response.json()["errors"]
    assert error["pointer"] == pointer
    assert detail in (None, error["detail"])


async def test_spread_back_to_its_topic_is_refused(api, topic, name):
    target = {"spread": [{"queue": f"{name}-a"}, {"topic": name}]}

    response = await api.put(f"{topic}/routes/r", json={"target": target})

    assert (response.status_code, response.json()["code"]) == (422, "route_cycle")


@pytest.mark.usefixtures("router")
async def test_consistent_hash_exchange_is_expressed_by_a_spread(api, topic, name):
    """RabbitMQ hashes the routing key: messages with one subject are in one queue."""
    await put_route(api, topic, "workers", target=spread_of(name, by="subject"))
    subjects = [f"customer.{number % 20}" for number in range(60)]
    messages = [{"subject": one, "body": str(nth)} for nth, one in enumerate(subjects)]
    await api.post(f"{topic}/messages", json={"messages": messages})

    async def delivered() -> int:
        return int((await api.get(f"{topic}/routes/workers/stats")).json()["delivered"])

    await eventually(delivered, len(messages))
    queues: dict[str, set[str]] = defaultdict(set)
    for queue in ("a", "b"):
        stats = (await api.get(f"/v1/queues/{name}-{queue}/stats")).json()
        for message in await receive(api, f"{name}-{queue}", stats["ready"]):
            queues[message["subject"]].add(queue)
    assert queues.keys() == set(subjects)
    assert all(len(one) == 1 for one in queues.values())


@pytest.mark.usefixtures("router")
async def test_reports_name_the_member(api, topic, name):
    await put_route(api, topic, "r", target=spread_of(name, by="key"))
    message = {"subject": "a", "key": "customer-7", "body": "x"}
    published = (await api.post(f"{topic}/messages", json=message)).json()
    path = f"{topic}/messages/{published['id']}/routes"

    async def state() -> Any:
        [route] = (await api.get(path)).json()["routes"]
        return route["state"]

    await eventually(state, "finished")
    [route] = (await api.get(path)).json()["routes"]
    member = route["member"]
    assert member in spread_of(name)["spread"]
    [received] = await receive(api, member["queue"], 1)
    assert received["body"] == "x"

    async def explained(**message: Any) -> Any:
        body = {"message": {"subject": "a", "body": "x", **message}}
        [row] = (await api.post(f"{topic}/explain", json=body)).json()["routes"]
        return row.get("member")

    assert await explained(key="customer-7") == member
    assert await explained() is None
    by_id = await api.post(f"{topic}/explain", json={"id": published["id"]})
    assert by_id.json()["routes"][0]["member"] == member
    stats = (await api.get(f"{topic}/routes/r/stats")).json()
    assert [one["member"] for one in stats["members"]] == spread_of(name)["spread"]
    assert {one["lag_messages"] for one in stats["members"]} == {0}
