"""Mirrors over HTTP: configuration, secrets, refused URLs, permissions."""

import pytest

FIELDS = {"from": {"url": "https://eu.example.com", "key": "ms_8fKQ2rGq"}, "streams": ["eu.*"]}


@pytest.fixture
def path(client, name):
    yield f"/v1/mirrors/{name}"
    client.delete(f"/v1/mirrors/{name}")


def test_mirror_is_created_shown_changed_listed_and_deleted(client, path, name):
    made = client.put(path, json=FIELDS)
    other = {"from": {"url": "https://eu.example.com"}, "streams": ["eu.orders"]}
    changed = client.put(path, json=other)
    replaced = client.put(
        path, json={**other, "from": {"url": "https://eu.example.com", "key": "another"}}
    )
    shown = client.get(path)
    listed = client.get("/v1/mirrors", params={"prefix": name}).json()["items"]
    stats = client.get(f"{path}/stats").json()
    deleted = client.delete(path)

    assert made.status_code == 201
    assert changed.json()["changes"] == [
        {"pointer": "/streams", "before": ["eu.*"], "after": ["eu.orders"]}
    ]
    assert replaced.json()["changes"] == [
        {"pointer": "/from/key", "before": "(another secret)", "after": "(secret)"}
    ]
    assert shown.json()["from"] == {"url": "https://eu.example.com"}
    assert listed == [shown.json()]
    assert 0 < stats.pop("lag_seconds") < 60
    assert stats == {"lag_records": 0, "failures": [], "shards": [], "queues": [], "groups": []}
    assert deleted.status_code == 204
    assert client.get(path).json()["code"] == "mirror_not_found"


def test_existing_mirror_is_compared(client, path):
    client.put(path, json=FIELDS).raise_for_status()
    other = {**FIELDS, "from": {"url": "https://us.example.com"}}

    same = client.put(path, json=FIELDS, headers={"if-none-match": "*"})
    refused = client.put(path, json=other, headers={"if-none-match": "*"})

    assert (same.status_code, same.json()["changes"]) == (412, [])
    assert refused.json()["changes"] == [
        {
            "pointer": "/from/url",
            "before": "https://eu.example.com",
            "after": "https://us.example.com",
        }
    ]
    assert refused.json()["current"]["from"] == {"url": "https://eu.example.com"}


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"from": {"url": "https://10.0.0.1"}}, "/from/url"),
        ({"from": {"url": "http://example.com"}}, "/from/url"),
        ({"from": {"url": "https://169.254.169.254"}}, "/from/url"),
        ({"from": {"url": "file:///etc/passwd"}}, "/from/url"),
        ({"from": {"url": "https://example.com?a=b"}}, "/from/url"),
        ({"from": {}}, "/from/url"),
        ({"from": {"url": "https://example.com", "token": "x"}}, "/from/token"),
        ({"streams": []}, "/streams"),
        ({"streams": ["a b"]}, "/streams/0"),
        ({"queues": ["a b"]}, "/queues/0"),
        ({"topics": ["orders"]}, "/topics"),
        ({"streams": ["topic:orders"]}, "/streams/0"),
        ({"queues": ["route:orders.crm"]}, "/queues/0"),
        ({"groups": "yes"}, "/groups"),
    ],
)
def test_invalid_field_is_refused_at_its_place(client, path, change, pointer):
    answer = client.put(path, json={**FIELDS, **change})

    assert answer.status_code == 422 or answer.status_code == 400
    assert [fault["pointer"] for fault in answer.json()["errors"]] == [pointer]


def test_audit_log_has_no_key(client, path):
    client.put(path, json=FIELDS).raise_for_status()

    entries = client.get("/v1/audit", params={"resource": path.removeprefix("/v1/")})

    assert "ms_8fKQ2rGq" not in entries.text
    assert "eu.example.com" in entries.text
