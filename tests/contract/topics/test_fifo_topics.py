"""FIFO topics and options of messages over REST."""

from typing import Any

import msgspec
import pytest

from tests.contract.topics.test_topics import put_route, receive

FIFO = {"type": "fifo"}
MSGPACK = {"content-type": "application/msgpack", "accept": "application/msgpack"}


@pytest.fixture
async def fifo(api, name) -> str:
    """Create a FIFO topic and a FIFO queue `<topic>-a`; return the topic's path."""
    for path in (f"topics/{name}", f"queues/{name}-a"):
        (await api.put(f"/v1/{path}", json=FIFO)).raise_for_status()
    return f"/v1/topics/{name}"


def message(dedup_id: str, **fields: Any) -> dict[str, Any]:
    return {"body": dedup_id, "key": "c7", "dedup_id": dedup_id, **fields}


async def test_repeated_dedup_id_is_a_duplicate(api, fifo):
    responses = [await api.post(f"{fifo}/messages", json=message("d")) for _ in range(2)]

    first, again = (response.json() for response in responses)
    assert [response.status_code for response in responses] == [201, 201]
    assert again == first | {"duplicate": True, "routes": None}


async def test_duplicates_of_a_batch_name_the_first_message(api, fifo):
    batch = {"messages": [message("a"), message("b"), message("a")]}

    answer = (await api.post(f"{fifo}/messages", json=batch)).json()

    first, _, again = answer["messages"]
    assert (answer["failed"], again) == (0, first | {"duplicate": True, "routes": None})


async def test_every_form_of_a_message_has_a_dedup_id(api, fifo):
    packed = msgspec.msgpack.encode({**message("d"), "body": b"packed"})
    headers = {"millstream-key": "c7", "millstream-dedup-id": "d", "content-type": "text/plain"}

    answers = [
        (await api.post(f"{fifo}/messages", json=message("d"))).json(),
        msgspec.msgpack.decode(
            (await api.post(f"{fifo}/messages", content=packed, headers=MSGPACK)).content
        ),
        (await api.post(f"{fifo}/messages", content=b"raw", headers=headers)).json(),
        (await api.post(f"{fifo}/messages/raw", content=b"raw", headers=headers)).json(),
    ]

    assert [one["duplicate"] for one in answers] == [False, True, True, True]
    assert len({one["id"] for one in answers}) == 1


@pytest.mark.parametrize(
    ("config", "fields", "pointer", "code"),
    [
        (FIFO, {"key": "c7"}, "/dedup_id", "required"),
        (FIFO, {"dedup_id": "d"}, "/key", "required"),
        (FIFO, message("d", delay_seconds=1), "/delay_seconds", "not_supported"),
        (FIFO, message("d", priority=1), "/priority", "not_supported"),
        ({}, {"dedup_id": "d"}, "/dedup_id", "not_supported"),
    ],
)
async def test_message_is_refused_with_a_pointer(api, name, config, fields, pointer, code):
    await api.put(f"/v1/topics/{name}", json=config)

    response = await api.post(f"/v1/topics/{name}/messages", json={"body": "x", **fields})

    assert response.status_code == 422
    [fault] = response.json()["errors"]
    assert (fault["pointer"], fault["code"]) == (pointer, code)


@pytest.mark.parametrize(
    ("config", "pointer"),
    [
        ({"type": "fifo", "shards": 2}, "/dedup_scope"),
        ({"deduplicate_by_content": True}, "/dedup_scope"),
        ({"dedup_scope": "key"}, "/dedup_scope"),
    ],
)
async def test_configuration_is_refused_with_a_pointer(api, name, config, pointer):
    response = await api.put(f"/v1/topics/{name}", json=config)

    assert response.status_code == 422
    assert [fault["pointer"] for fault in response.json()["errors"]] == [pointer]


async def test_type_and_scope_of_topic_are_immutable(api, fifo):
    shown = (await api.get(fifo)).json()
    assert (shown["type"], shown["dedup_scope"]) == ("fifo", "topic")

    for config in ({}, FIFO | {"dedup_scope": "key"}):
        refused = (await api.put(fifo, json=config)).json()
        assert refused["errors"][0]["code"] == "immutable"

    patched = await api.patch(fifo, json={"deduplicate_by_content": True})
    assert patched.json()["deduplicate_by_content"]
    assert (await api.post(f"{fifo}/messages", json={"body": "x", "key": "a"})).is_success


async def test_topic_with_one_scope_refuses_a_reshard(api, fifo, name):
    response = await api.post(f"/v1/streams/topic:{name}/reshard", json={"shards": 2})

    assert response.status_code == 422
    assert response.json()["errors"][0]["pointer"] == "/shards"


async def test_message_shows_its_options(api, name):
    options = {"delay_seconds": 1.5, "ttl_seconds": 60, "priority": 3}
    await api.put(f"/v1/topics/{name}-standard", json={})
    headers = {
        "millstream-delay-seconds": "1.5",
        "millstream-ttl-seconds": "60",
        "millstream-priority": "3",
        "content-type": "text/plain",
    }
    path = f"/v1/topics/{name}-standard/messages"

    for response in (
        await api.post(path, json={"body": "x", **options}),
        await api.post(path, content=b"x", headers=headers),
    ):
        shown = (await api.get(f"{path}/{response.json()['id']}")).json()
        assert {field: shown[field] for field in options} == options
        assert (shown["dedup_id"], shown["headers"]) == ("", {})


@pytest.mark.usefixtures("router")
async def test_fifo_queue_gets_each_id_once_in_order(api, fifo, name):
    await put_route(api, fifo, "all")
    for number in (1, 1, 2, 3, 2, 4):
        await api.post(f"{fifo}/messages", json=message(f"{number}"))

    received = await receive(api, f"{name}-a", 4)

    assert [(one["body"], one["group"]) for one in received] == [
        (f"{number}", "c7") for number in range(1, 5)
    ]


@pytest.mark.usefixtures("router")
async def test_request_needs_no_dedup_id(api, fifo, name):
    """Requests have ids of their own, and a repeat with the same id publishes nothing."""
    await put_route(api, fifo, "all")
    request = {"body": "x", "key": "c7", "wait_seconds": 0}

    for fields in ({}, {}, {"dedup_id": "d"}, {"dedup_id": "d"}):
        response = await api.post(f"{fifo}/requests", json=request | fields)
        assert response.status_code == 202, response.text

    assert len(await receive(api, f"{name}-a", 3)) == 3
    assert (await api.get(f"/v1/streams/topic:{name}/records")).json()["records"][3:] == []
