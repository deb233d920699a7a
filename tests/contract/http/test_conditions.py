"""Conditional requests mean the same for every noun, and are never ignored."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.app_routes import fast_routes

DOCUMENT = json.loads((Path(__file__).parents[3] / "openapi" / "openapi.json").read_text())
NOUNS: dict[str, Callable[[str], tuple[str, dict[str, Any]]]] = {
    "queue": lambda name: (f"/v1/queues/{name}", {}),
    "stream": lambda name: (f"/v1/streams/{name}", {}),
    "topic": lambda name: (f"/v1/topics/{name}", {}),
    "route": lambda name: (
        f"/v1/topics/{name}-topic/routes/{name}",
        {"target": {"queue": f"{name}-queue"}},
    ),
    "group": lambda name: (f"/v1/groups/{name}", {"stream": f"{name}-source"}),
    "namespace": lambda name: (f"/v1/namespaces/{name}", {"queues_max": 3}),
    "webhook": lambda name: (
        f"/v1/webhooks/{name}",
        {"source": f"group:{name}-group", "url": "https://example.com/hook"},
    ),
    "view": lambda name: (
        f"/v1/views/{name}",
        {
            "sql": "select page, count(*) as clicks from c group by page",
            "from": {"c": {"stream": f"{name}-source"}},
        },
    ),
    "source": lambda name: (
        f"/v1/sources/{name}",
        {
            "webhook": {"provider": "github", "secrets": ["It's a Secret"]},
            "into": {"stream": f"{name}-source"},
        },
    ),
    "mirror": lambda name: (
        f"/v1/mirrors/{name}",
        {"from": {"url": "https://example.com"}, "streams": [name]},
    ),
    "bookmark": lambda name: (f"/v1/groups/{name}-group/bookmarks/{name}", {}),
}
VERSIONED = [noun for noun in NOUNS if noun != "bookmark"]


@pytest.fixture
def put(client, name, view_worker) -> Callable[..., httpx.Response]:
    """PUT a noun, whose source exists."""
    client.put(f"/v1/streams/{name}-source", json={})
    client.put(f"/v1/groups/{name}-group", json={"stream": f"{name}-source"})
    client.put(f"/v1/topics/{name}-topic", json={})

    def call(noun: str, **headers: str) -> httpx.Response:
        path, body = NOUNS[noun](name)
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        answer: httpx.Response = client.put(path, json=body, headers=named)
        return answer

    return call


@pytest.mark.parametrize("noun", NOUNS)
def test_put_without_condition_creates_and_replaces(put, noun):
    assert [put(noun).is_success, put(noun).is_success] == [True, True]


@pytest.mark.parametrize("noun", NOUNS)
def test_create_only_put_is_rejected_if_it_exists(put, noun):
    """A bookmark was replaced all the same."""
    first, again = put(noun, if_none_match="*"), put(noun, if_none_match="*")

    assert (first.is_success, again.status_code) == (True, 412)
    assert again.json()["code"] == "precondition_failed"


@pytest.mark.parametrize("noun", VERSIONED)
def test_put_with_version_is_applied_to_that_version_only(put, noun):
    absent = put(noun, if_match='"v1"')
    etag = put(noun).headers["etag"]

    current, stale = put(noun, if_match=etag), put(noun, if_match='"v999"')

    assert (absent.status_code, current.status_code, stale.status_code) == (412, 200, 412)


def unconditional() -> Iterator[Any]:
    """Yield the operations of the control plane that change something and check no condition."""
    hot = {route.operation for route in fast_routes()}
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            declared = {one["name"].lower() for one in operation.get("parameters", [])}
            if (
                method != "get"
                and operation["operationId"] not in hot
                and "if-match" not in declared
            ):
                yield pytest.param(method, path, declared, id=operation["operationId"])


@pytest.mark.parametrize(("method", "path", "declared"), [*unconditional()])
def test_condition_that_an_operation_does_not_check_is_rejected(client, method, path, declared):
    header = "If-Match" if "if-none-match" in declared else "If-None-Match"

    answer = client.request(method, re.sub(r"\{\w+\}", "0", path), headers={header: '"v1"'})

    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["pointer"] == f"/{header}"
