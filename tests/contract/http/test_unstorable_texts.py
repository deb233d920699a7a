"""Texts that no store can hold are rejected with their pointer, wherever they are."""

import json

import pytest

TEXTS = ["a\0b", "\ud800", "\udfff x"]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(
    ("method", "path", "body", "pointer"),
    [
        ("PUT", "/v1/queues/{name}", {"tags": {"a": "{text}"}}, "/tags/a"),
        ("PUT", "/v1/queues/{name}", {"tags": {"{text}": "a"}}, "/tags"),
        ("PUT", "/v1/streams/{name}", {"tags": {"a": "{text}"}}, "/tags/a"),
        ("PUT", "/v1/groups/{name}", {"stream": "{text}"}, "/stream"),
        ("PUT", "/v1/webhooks/{name}", {"source": "queue:q", "url": "{text}"}, "/url"),
        ("POST", "/v1/keys", {"name": "{text}", "roles": ["viewer"]}, "/name"),
        ("POST", "/v1/keys", {"{text}": 1}, ""),
        ("PATCH", "/v1/queues/{name}", {"tags": {"a": "{text}"}}, "/tags/a"),
    ],
)
def test_unstorable_text_is_rejected_with_pointer(client, name, method, path, body, pointer, text):
    """A NUL in a tag was a 500."""
    content = json.dumps(body).replace("{text}", json.dumps(text)[1:-1]).encode()

    answer = client.request(
        method,
        path.format(name=name),
        content=content,
        headers={"content-type": "application/json"},
    )

    assert (answer.status_code, answer.json()["code"]) == (422, "validation_failed"), answer.text
    assert [fault["pointer"] for fault in answer.json()["errors"]] == [pointer]


def test_surrogate_pair_is_stored_as_its_character(client, name):
    content = rb'{"tags": {"a": "\ud83d\ude00"}}'

    made = client.put(
        f"/v1/queues/{name}", content=content, headers={"content-type": "application/json"}
    )

    assert made.json()["tags"] == {"a": "\N{GRINNING FACE}"}


def test_nul_in_query_parameter_is_rejected(client):
    answer = client.get("/v1/audit", params={"principal": "a\0b"})

    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/principal")
