"""Transforms, formats, keys and dead letters of routes over REST."""

from typing import Any

import pytest

from tests.conditions import eventually
from tests.contract.topics.test_topics import publish, put_route, receive

TRANSFORM = {
    "paths": {"order": "/body/id"},
    "template": {"order": "<order>", "lines": ["<subject>"]},
    "headers": {"set": {"kind": "<topic>"}, "remove": ["debug"]},
    "strict": True,
}


async def test_configuration_is_shown_as_it_was_put(api, topic):
    config: dict[str, Any] = {
        "transform": {"select": None, "subject": None, **TRANSFORM},
        "format": "envelope",
        "key": "/body/customer",
        "delay_seconds": 1.5,
        "ttl_seconds": 60,
        "on_failure": "dead_letter",
        "dead_letter_queue": "dead",
    }

    await put_route(api, topic, "r", **config)

    shown = (await api.get(f"{topic}/routes/r")).json()
    assert {name: shown[name] for name in config} == config


async def test_change_of_copies_begins_revision(api, topic):
    first = await put_route(api, topic, "r", transform=TRANSFORM, key={"constant": "x"})

    async def patch(**changes: Any) -> Any:
        response = await api.patch(f"{topic}/routes/r", json=changes)
        assert response.is_success, response.text
        return response.json()

    assert (await patch(dead_letter_queue="dead"))["number"] == first["number"]
    changed = await patch(transform={"select": "/id"})
    assert changed["number"] > first["number"]
    assert changed["transform"]["paths"] == {}
    assert changed["key"] == {"constant": "x"}
    assert (await patch(transform=None, key=None))["transform"] is None


@pytest.mark.parametrize(
    ("config", "pointer"),
    [
        ({"transform": {"paths": {"id": "/other"}}}, "/transform/paths/id"),
        ({"transform": {"template": {"a": "<nope>"}}}, "/transform/template/a"),
        ({"transform": {"headers": {"set": {":x": ""}}}}, "/transform/headers/set/:x"),
        ({"transform": {"other": 1}}, "/transform/other"),
        ({"format": "xml"}, "/format"),
        ({"key": "customer"}, "/key"),
        ({"key": 7}, "/key"),
        ({"key": {"constant": "x", "other": 1}}, "/key"),
        ({"target": {"stream": "s"}, "ttl_seconds": 1}, "/ttl_seconds"),
        ({"on_failure": "dead_letter"}, "/dead_letter_queue"),
    ],
)
async def test_invalid_configuration_is_refused(api, topic, config, pointer):
    body = {"target": {"queue": "q"}, **config}

    response = await api.put(f"{topic}/routes/r", json=body)

    assert response.status_code == 422
    assert [fault["pointer"] for fault in response.json()["errors"]] == [pointer]


@pytest.mark.usefixtures("router")
async def test_copy_shows_its_origin_and_dead_letter_its_reason(api, topic, name):
    await put_route(api, topic, "r", transform=TRANSFORM, dead_letter_queue=f"{name}-b")

    await publish(api, topic, "order.created", {"id": 7})
    await publish(api, topic, "order.created", {})

    [copy] = await receive(api, f"{name}-a", 1)
    assert copy["body"] == {"order": 7, "lines": ["order.created"]}
    assert copy["headers"] == {"kind": name}
    assert (copy["topic"], copy["subject"], copy["route"]) == (name, "order.created", "r")
    [letter] = await receive(api, f"{name}-b", 1)
    assert letter["body"] == {}
    assert letter["dead_letter"]["source"] == f"route:{name}/r"
    assert letter["dead_letter"]["reason"] == "transform_failed"

    async def counts() -> tuple[int, int, int]:
        stats = (await api.get(f"{topic}/routes/r/stats")).json()
        return stats["delivered"], stats["dead_lettered"], stats["dropped"]

    await eventually(counts, (1, 1, 0))
