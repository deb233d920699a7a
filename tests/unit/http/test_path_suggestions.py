"""Suggestions for requests without a route, over all operations of the API."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.app_routes import fast_routes
from api.rest.path_suggestions import PathSuggestions, RoutePattern

DOCUMENT = json.loads((Path(__file__).parents[3] / "openapi" / "openapi.json").read_text())
METHODS = ("get", "put", "post", "patch", "delete")
OPERATIONS = [
    *(RoutePattern(route.method, route.path) for route in fast_routes()),
    *(
        RoutePattern(method.upper(), path)
        for path, item in DOCUMENT["paths"].items()
        for method in METHODS
        if method in item
    ),
]
SUGGESTIONS = PathSuggestions(OPERATIONS)


@pytest.mark.parametrize(
    ("method", "path", "meant"),
    [
        ("PUT", "/v1/queue/orders", "PUT /v1/queues/orders"),
        ("PUT", "/queues/orders", "PUT /v1/queues/orders"),
        ("PUT", "/v1/Queues/orders/", "PUT /v1/queues/orders"),
        ("POST", "/v1/queues/orders/message", "POST /v1/queues/orders/messages"),
        ("POST", "/v1/queues/orders/send", "POST /v1/queues/orders/messages"),
        ("GET", "/v1/queues/orders/recieve", "POST /v1/queues/orders/receive"),
        ("POST", "/v1/queues/orders/ack", "POST /v1/queues/orders/settle"),
        ("GET", "/v1/queues/orders/dead_letters", "GET /v1/queues/orders/dead-letters"),
        ("POST", "/v1/streams/clicks/record", "POST /v1/streams/clicks/records"),
        ("GET", "/v1/streams/clicks/partitions", "GET /v1/streams/clicks/shards"),
        ("GET", "/v1/consumer-groups/readers/lag", "GET /v1/groups/readers/lag"),
        ("GET", "/v1/streams/clicks/weather", ""),
        ("POST", "/v1/streams/clicks/receive", ""),
        ("GET", "/v1//orders", ""),
        ("GET", "/", ""),
        ("GET", "/favicon.ico", ""),
        ("GET", "/v1/queues/" + "a" * 300 + "/message", ""),
    ],
)
def test_path_gets_operation_that_it_resembles(method, path, meant):
    assert SUGGESTIONS.of_path(method, path) == meant


@pytest.mark.parametrize(
    ("method", "path", "meant"),
    [
        ("POST", "/v1/queues", "PUT /v1/queues/{queue}"),
        ("POST", "/v1/webhooks", "PUT /v1/webhooks/{webhook}"),
        ("POST", "/v1/queues/orders", "POST /v1/queues/orders/messages"),
        ("POST", "/v1/streams/clicks", "POST /v1/streams/clicks/records"),
        ("DELETE", "/v1/queues", ""),
        ("GET", "/v1/queues/orders/receive", ""),
    ],
)
def test_method_gets_operation_that_it_stands_for(method, path, meant):
    assert SUGGESTIONS.of_method(method, path) == meant


@given(st.sampled_from(OPERATIONS), st.data())
def test_path_with_one_wrong_letter_gets_its_operation(operation, data):
    segments = operation.path.removeprefix("/").replace("{", "").replace("}", "").split("/")
    literals = [
        nth
        for nth, segment in enumerate(operation.path.removeprefix("/").split("/"))
        if len(segment) > 4 and not segment.startswith("{")
    ]
    if not literals:
        return
    nth = data.draw(st.sampled_from(literals))
    letter = data.draw(st.integers(0, len(segments[nth]) - 1))
    wrong = segments[nth][:letter] + segments[nth][letter + 1 :]
    path = "/".join(["", *segments[:nth], wrong, *segments[nth + 1 :]])
    if any(_has_route(candidate.path, path) for candidate in OPERATIONS):
        return

    assert SUGGESTIONS.of_path(operation.method, path) != ""


def _has_route(template: str, path: str) -> bool:
    expected, actual = template.split("/"), path.split("/")
    return len(expected) == len(actual) and all(
        left.startswith("{") or left == right for left, right in zip(expected, actual, strict=True)
    )
