"""Every operation of the OpenAPI document rejects qualifiers that it does not know."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

DOCUMENT = json.loads((Path(__file__).parents[3] / "openapi" / "openapi.json").read_text())


def operations() -> Iterator[Any]:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            if path.startswith("/v1/"):
                yield pytest.param(method, path, operation, id=operation["operationId"])


def bodiless() -> Iterator[Any]:
    for method, path, operation in (one.values for one in operations()):
        if "requestBody" not in operation:
            yield pytest.param(method, path, id=operation["operationId"])


def address(path: str) -> str:
    """Return a path of things that do not exist: nothing may happen to anything."""
    return re.sub(r"\{(shard|offset)\}", "0", re.sub(r"\{(?!shard|offset)\w+\}", "nothing", path))


def rejected(answer: httpx.Response, pointer: str) -> bool:
    problem = answer.json()
    faults = [fault["pointer"] for fault in problem.get("errors", [])]
    return (answer.status_code, problem.get("code")) == (422, "validation_failed") and faults == [
        pointer
    ]


@pytest.mark.parametrize(("method", "path", "operation"), [*operations()])
def test_unknown_query_parameter_is_rejected(client, method, path, operation):
    """`DELETE /v1/queues/orders?if_empty=true` deleted a full queue."""
    answer = client.request(method, address(path), params={"if_emptyy": "true"})

    assert rejected(answer, "/if_emptyy"), answer.text


@pytest.mark.parametrize(("method", "path", "operation"), [*operations()])
def test_unknown_millstream_header_is_rejected(client, method, path, operation):
    body: dict[str, Any] = {"json": {}} if "requestBody" in operation else {}
    answer = client.request(method, address(path), headers={"Millstream-Namespce": "acme"}, **body)

    assert rejected(answer, "/millstream-namespce"), answer.text


@pytest.mark.parametrize(("method", "path"), [*bodiless()])
def test_body_is_rejected_where_none_is_taken(client, method, path):
    answer = client.request(method, address(path), json={"if_empty": True})

    assert answer.status_code == 422, answer.text
