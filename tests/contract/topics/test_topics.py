"""Topics and routes over REST: definitions, publishing, explanations, and refusals."""

import asyncio
from typing import Any

import httpx
import msgspec
import pytest

from tests.conditions import PATIENCE_S, eventually


async def put_route(api: httpx.AsyncClient, topic: str, route: str, **config: Any) -> Any:
    """Create a route to the topic's queue `a`, or as its configuration says; return it."""
    target = {"queue": f"{topic.rpartition('/')[2]}-a"}
    response = await api.put(f"{topic}/routes/{route}", json={"target": target, **config})
    assert response.is_success, response.text
    return response.json()


async def publish(api: httpx.AsyncClient, topic: str, subject: str = "", body: Any = "x") -> Any:
    """Publish a message; return the response."""
    response = await api.post(f"{topic}/messages", json={"subject": subject, "body": body})
    assert response.status_code == 201, response.text
    return response.json()


async def receive(api: httpx.AsyncClient, queue: str, count: int) -> list[Any]:
    """Receive and acknowledge `count` messages."""
    messages: list[Any] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(messages) < count:
            response = await api.post(
                f"/v1/queues/{queue}/receive", json={"messages_max": 10, "wait_seconds": 1}
            )
            received = response.json()["messages"]
            acks = [{"receipt_handle": one["receipt_handle"], "action": "ack"} for one in received]
            if acks:
                await api.post(f"/v1/queues/{queue}/settle", json={"settlements": acks})
            messages += received
    return messages


# ── Delivery ──


@pytest.mark.usefixtures("router")
@pytest.mark.parametrize(
    ("routes", "messages"),
    [
        pytest.param(
            {"a": {"subject": "email"}, "b": {"subject": "sms"}},
            [({"subject": "email"}, "a"), ({"subject": "sms"}, "b"), ({"subject": "fax"}, "")],
            id="direct",
        ),
        pytest.param({"a": None, "b": None}, [({"subject": "news"}, "ab")], id="fanout"),
        pytest.param(
            {"a": {"subject": "order.*"}, "b": "unmatched"},
            [({"subject": "order.created"}, "a"), ({"subject": "fax"}, "b")],
            id="alternate",
        ),
        pytest.param(
            {"a": {"subject": "order.*"}, "b": {"subject": "#.error"}},
            [
                ({"subject": "order.created"}, "a"),
                ({"subject": "order.error"}, "ab"),
                ({"subject": "app.db.error"}, "b"),
            ],
            id="topic",
        ),
        pytest.param(
            {
                "a": {"filter": {"headers": {"format": ["pdf"], "type": ["report"]}}},
                "b": {
                    "filter": {
                        "$or": [
                            {"headers": {"format": ["pdf"]}},
                            {"headers": {"type": ["report"]}},
                        ]
                    }
                },
            },
            [
                ({"headers": {"format": "pdf", "type": "report"}}, "ab"),
                ({"headers": {"format": "pdf", "type": "log"}}, "b"),
                ({"headers": {"format": "zip"}}, ""),
            ],
            id="headers",
        ),
    ],
)
async def test_exchange_of_rabbitmq_is_expressed_by_routes(api, topic, name, routes, messages):
    for queue, match in routes.items():
        await put_route(api, topic, queue, match=match, target={"queue": f"{name}-{queue}"})

    for number, (message, queues) in enumerate(messages):
        response = await api.post(f"{topic}/messages", json={"body": str(number), **message})
        assert response.json()["routes"] == len(queues)

    for queue in "ab":
        expected = [str(nth) for nth, (_, queues) in enumerate(messages) if queue in queues]
        received = await receive(api, f"{name}-{queue}", len(expected))
        assert [one["body"] for one in received] == expected


@pytest.mark.usefixtures("router")
async def test_message_keeps_its_body_headers_and_type(api, topic, name):
    await put_route(api, topic, "all")
    headers = {"millstream-subject": "order.created", "millstream-header-tenant": "t7"}

    published = await api.post(
        f"{topic}/messages", content=b"\xff\x00", headers=headers | {"content-type": "image/png"}
    )
    [message] = await receive(api, f"{name}-a", 1)
    shown = (await api.get(f"{topic}/messages/{published.json()['id']}")).json()

    assert published.status_code == 201, published.text
    assert (message["body_base64"], message["content_type"]) == ("/wA=", "image/png")
    assert message["headers"]["tenant"] == "t7"
    assert (shown["body"], shown["body_base64"], shown["subject"]) == (
        None,
        "/wA=",
        "order.created",
    )


@pytest.mark.usefixtures("router")
async def test_message_report_names_routes_until_target_has_it(api, topic, name):
    await put_route(api, topic, "held", target={"queue": f"{name}-b"})
    (await api.put(f"{topic}/routes/held/pause")).raise_for_status()
    await put_route(api, topic, "first")  # a message for it lets the router read all changes
    published = await publish(api, topic)
    await receive(api, f"{name}-a", 1)

    async def states() -> dict[str, str]:
        report = (await api.get(f"{topic}/messages/{published['id']}/routes")).json()
        return {route["route"]: route["state"] for route in report["routes"]}

    await eventually(states, {"first": "finished", "held": "waiting"})
    stats = (await api.get(f"{topic}/routes/held/stats")).json()
    assert (stats["state"], stats["lag_messages"]) == ("paused", 1)
    assert stats["lag_seconds"] > 0
    (await api.delete(f"{topic}/routes/held/pause")).raise_for_status()
    await receive(api, f"{name}-b", 1)


# ── Publishing ──


async def test_batch_has_a_result_for_each_message(api, topic):
    await put_route(api, topic, "orders", match={"subject": "order.*"})
    batch = {"messages": [{"subject": "order.a", "body": {"n": 1}}, {"subject": "b", "body": "x"}]}

    response = await api.post(f"{topic}/messages", json=batch)

    results = response.json()["messages"]
    assert response.status_code == 200
    assert [one["routes"] for one in results] == [1, 0]
    assert [one["offset"] for one in results] == [0, 1]


async def test_packed_message_has_bytes_as_its_body(api, topic):
    packed = msgspec.msgpack.encode({"subject": "a", "body": b"\xff"})
    headers = {"content-type": "application/msgpack"}

    published = (await api.post(f"{topic}/messages", content=packed, headers=headers)).json()

    shown = (await api.get(f"{topic}/messages/{published['id']}")).json()
    assert shown["body_base64"] == "/w=="


async def test_repeat_with_idempotency_key_adds_nothing(api, topic):
    headers = {"idempotency-key": "once"}
    message = {"subject": "a", "body": "x"}

    first = await api.post(f"{topic}/messages", json=message, headers=headers)
    again = await api.post(f"{topic}/messages", json=message, headers=headers)

    assert first.json()["id"] == again.json()["id"]
    assert (again.json()["duplicate"], again.json()["routes"]) == (True, None)


async def test_unroutable_message_is_refused_if_the_topic_says_so(api, topic):
    (await api.patch(topic, json={"unmatched": "refuse"})).raise_for_status()
    await put_route(api, topic, "orders", match={"subject": "order.*"})

    refused = await api.post(f"{topic}/messages", json={"subject": "fax", "body": "x"})

    assert (refused.status_code, refused.json()["code"]) == (422, "unroutable")
    assert (await api.get(f"{topic}/stats")).json()["messages"] == 0


@pytest.mark.parametrize(
    ("message", "pointer"),
    [
        ({"subject": "order.*", "body": "x"}, "/subject"),
        ({"subject": "a..b", "body": "x"}, "/subject"),
        ({"subject": "a b", "body": "x"}, "/subject"),
        ({"subject": "a" * 256, "body": "x"}, "/subject"),
        ({"body": "x", "group": "a"}, "/group"),
        ({"body": ""}, "/body"),
        ({"messages": [{"body": "x"}, {"body": "x", "subject": "#"}]}, "/messages/1/subject"),
        ({"subject": "a"}, "/body"),
        ({"body": "x", "headers": {":routes": "x"}}, "/headers/:routes"),
    ],
)
async def test_invalid_message_is_refused_with_a_pointer(api, topic, message, pointer):
    response = await api.post(f"{topic}/messages", json=message)

    assert response.status_code == 422, response.text
    assert [error["pointer"] for error in response.json()["errors"]] == [pointer]


# ── Routes ──


@pytest.mark.parametrize(
    ("config", "code", "pointer"),
    [
        ({"target": {}}, "validation_failed", "/target"),
        ({"target": {"queue": "a", "stream": "b"}}, "validation_failed", "/target"),
        ({"target": {"stream": "topic:a"}}, "validation_failed", "/target/stream"),
        ({"match": {"subject": "a.>.b"}}, "match_invalid", "/match/subject"),
        ({"match": {"subjects": "a"}}, "match_invalid", "/match/subjects"),
        ({"match": [{"subject": "a"}, {"where": "a ="}]}, "match_invalid", "/match/1/where"),
        (
            {"match": {"filter": {"body": {"total": [{"numeric": [">", 5, "<", 1]}]}}}},
            "match_invalid",
            "/match/filter/body/total/0",
        ),
        ({"colour": "red"}, "validation_failed", "/colour"),
    ],
)
async def test_invalid_route_is_refused_with_a_pointer(api, topic, config, code, pointer):
    response = await api.put(f"{topic}/routes/r", json={"target": {"queue": "a"}, **config})

    assert (response.status_code, response.json()["code"]) == (422, code), response.text
    assert response.json()["errors"][0]["pointer"].startswith(pointer)
    assert (await api.get(f"{topic}/routes/r")).status_code == 404


async def test_changed_match_begins_another_revision(api, topic):
    first = await put_route(api, topic, "r", match={"subject": "a"})

    tagged = (await api.patch(f"{topic}/routes/r", json={"tags": {"team": "shop"}})).json()
    changed = (await api.patch(f"{topic}/routes/r", json={"match": {"subject": "b"}})).json()
    removed = (await api.patch(f"{topic}/routes/r", json={"match": None})).json()

    assert tagged["number"] == first["number"] < changed["number"] < removed["number"]
    assert (changed["match"], changed["tags"]) == ({"subject": "b"}, {"team": "shop"})
    assert removed["match"] is None


async def test_routes_are_listed_in_pages_by_name(api, topic):
    for number in range(5):
        await put_route(api, topic, f"r{number}")
    await put_route(api, topic, "other")

    first = (await api.get(f"{topic}/routes?prefix=r&limit=3")).json()
    rest = (await api.get(f"{topic}/routes?prefix=r&limit=3&cursor={first['next_cursor']}")).json()

    assert [one["name"] for one in first["items"] + rest["items"]] == [f"r{n}" for n in range(5)]
    assert rest["next_cursor"] is None


async def test_cursor_of_another_topic_is_refused(api, topic, name):
    for number in range(2):
        await put_route(api, topic, f"r{number}")
    (await api.put(f"/v1/topics/{name}-other", json={})).raise_for_status()
    cursor = (await api.get(f"{topic}/routes?limit=1")).json()["next_cursor"]

    response = await api.get(f"{topic}-other/routes?limit=1&cursor={cursor}")

    assert response.json()["code"] == "invalid_cursor"


async def test_paused_route_stays_paused_when_it_is_replaced(api, topic):
    await put_route(api, topic, "r")
    paused = (await api.put(f"{topic}/routes/r/pause")).json()

    replaced = await put_route(api, topic, "r", match={"subject": "a"})

    assert (paused["paused"], replaced["paused"]) == (True, True)


# ── Explanations ──


async def test_explanation_names_the_conditions_that_fail(api, topic):
    over = {"filter": {"body": {"total": [{"numeric": [">", 100]}]}}}
    await put_route(api, topic, "audit")
    await put_route(api, topic, "billing", match={"subject": "order.*", **over})
    await put_route(api, topic, "vip", match=[{"where": "body.vip"}, over])
    message = {"subject": "order.created", "body": {"total": 50, "vip": True}}

    explained = (await api.post(f"{topic}/explain", json={"message": message})).json()

    assert explained["matches"] == ["audit", "vip"]
    failed = {one["route"]: one["failed"] for one in explained["routes"]}
    assert failed == {
        "audit": [],
        "vip": [],
        "billing": [
            {
                "match": 0,
                "path": "body.total",
                "expected": [{"numeric": [">", 100]}],
                "actual": [50],
            }
        ],
    }


async def test_published_message_is_explained_by_its_id(api, topic):
    await put_route(api, topic, "billing", match={"filter": {"body": {"vip": [True]}}})
    published = await publish(api, topic, "order.created", {"vip": False})

    request = {"id": published["id"], "route": "billing"}
    explained = (await api.post(f"{topic}/explain", json=request)).json()

    assert [one["failed"][0]["actual"] for one in explained["routes"]] == [[False]]
    assert explained["subject"] == "order.created"


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("messages/nonsense", 422, "validation_failed"),
        ("messages/0c5ad1f7d2b94e63-0-0", 404, "message_not_found"),
        ("messages/0c5ad1f7d2b94e63-0-0/routes", 404, "message_not_found"),
        ("routes/missing", 404, "route_not_found"),
        ("routes/missing/stats", 404, "route_not_found"),
    ],
)
async def test_missing_object_is_a_problem(api, topic, path, status, code):
    response = await api.get(f"{topic}/{path}")

    assert (response.status_code, response.json()["code"]) == (status, code)


@pytest.mark.parametrize("path", ["", "/stats", "/routes", "/routes/r", "/routes/r/stats"])
async def test_missing_topic_is_a_problem(api, name, path):
    response = await api.get(f"/v1/topics/{name}{path}")

    assert (response.status_code, response.json()["code"]) == (404, "topic_not_found")


async def test_match_is_tried_without_a_topic(api):
    match = {"subject": "order.*", "filter": {"headers": {"tenant": ["t7"]}}}
    message = {"subject": "order.created", "headers": {"tenant": "t8"}}

    tested = (await api.post("/v1/filters/test", json={"match": match, "message": message})).json()

    assert (tested["matches"], tested["cost"]) == (False, "indexed")
    assert tested["failed"][0]["actual"] == ["t8"]


@pytest.mark.parametrize(
    ("system", "condition", "match"),
    [
        ("pubsub", 'attributes.a = "1"', {"filter": {"headers": {"a": ["1"]}}}),
        ("service_bus", "quantity > 100", {"where": "quantity > 100"}),
        ("jms", "JMSType = 'car'", {"where": "JMSType = 'car'"}),
        (
            "rabbitmq",
            {"exchange_type": "topic", "routing_key": "order.*"},
            {"subject": "order.*"},
        ),
    ],
)
async def test_condition_of_another_system_is_translated(api, system, condition, match):
    request = {"system": system, "condition": condition}

    translated = await api.post("/v1/filters/translate", json=request)

    assert translated.json()["match"] == match, translated.text


# ── The topic as a stream ──


async def test_topic_is_read_as_a_stream_and_not_listed(api, topic, name):
    await publish(api, topic, "order.created", {"n": 1})

    read = (await api.get(f"/v1/streams/topic:{name}/records")).json()
    streams = (await api.get(f"/v1/streams?prefix={name}")).json()
    topics = (await api.get(f"/v1/topics?prefix={name}")).json()

    assert [record["data"] for record in read["records"]] == [{"n": 1}]
    assert streams["items"] == []
    assert [one["name"] for one in topics["items"]] == [name]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/records", {"data": "x"}),
        ("POST", "/shards/0/records", {"records": [{"data": "x"}]}),
        ("PUT", "/shards/0/fence", {"token": "mine"}),
        ("POST", "/shards/0/truncate", {"before": 1}),
        ("PATCH", "", {"retention_seconds": 3600}),
        ("PUT", "", {}),
        ("DELETE", "", None),
    ],
)
async def test_stream_of_a_topic_is_not_changed_as_a_stream(api, topic, name, method, path, body):
    """A change as a stream would have lost the topic's settings, or its messages."""
    await publish(api, topic, "a")

    response = await api.request(method, f"/v1/streams/topic:{name}{path}", json=body)

    assert response.status_code in (409, 422), response.text
    assert (await api.get(f"{topic}/stats")).json()["messages"] == 1
