"""Back-tests of views over HTTP: the job, its result, and who may start one."""

import pytest

from tests.conditions import wait_until
from tests.contract.views.conftest import OTHER_SQL, SQL

pytestmark = pytest.mark.usefixtures("view_worker")

ALERTS = {"queue": "alerts", "when": "clicks > 1", "once_per_key": True}


@pytest.fixture
def back_test(client, path):
    """Start a back-test, and return it once it is over."""

    def run(configuration):
        started = client.post(f"{path}/backtests", json=configuration)
        assert started.status_code == 202, started.text
        location = started.headers["location"]
        wait_until(lambda: client.get(location).json()["state"] in ("done", "failed"))
        return client.get(location).json()

    return run


def test_result_has_rows_and_messages(append, read, client, path, fields, back_test):
    client.put(path, json=fields).raise_for_status()
    read(after=append("a", "b", "a"), wait_seconds=10).raise_for_status()

    same = back_test({**fields, "into": [ALERTS]})
    other = back_test({**fields, "sql": OTHER_SQL})
    listed = client.get(f"{path}/backtests").json()["items"]
    view = client.get(path).json()

    assert (same["sql"], same["records"], same["records_total"]) == (SQL, 3, 3)
    assert same["result"] == {
        "revision": 1,
        "exact": True,
        "records": 3,
        "view_records": 3,
        "added": 0,
        "removed": 0,
        "changed": 0,
        "samples": [],
        "sinks": [
            {
                "sink": "queue:alerts",
                "messages": 1,
                "samples": [
                    {
                        "change": "insert",
                        "key": "a",
                        "row": {"page": "a", "clicks": 2},
                        "before": None,
                    }
                ],
            }
        ],
    }
    result = other["result"]
    assert (result["added"], result["removed"], result["changed"]) == (0, 1, 1)
    assert {"before": {"page": "b", "clicks": 1}, "after": None} in result["samples"]
    assert [one["id"] for one in listed] == [other["id"], same["id"]]
    assert (view["revision"], view["into"], view["sql"]) == (1, [], SQL)


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"sql": "select 1"}, "/sql"),
        ({"from": {"c": {"stream": "elsewhere"}}}, "/from/c/stream"),
        ({"into": [{"queue": "alerts", "when": "nothing > 1"}]}, "/into/0/when"),
        ({"rows_max": 0}, "/rows_max"),
    ],
)
def test_refused_configurations(change, pointer, client, path, fields):
    client.put(path, json=fields).raise_for_status()

    refused = client.post(f"{path}/backtests", json={**fields, **change})

    assert refused.status_code == 422
    assert [one["pointer"] for one in refused.json()["errors"]] == [pointer]
    assert client.get(f"{path}/backtests").json() == {"items": []}


def test_missing_views_and_back_tests(client, path, fields):
    started = client.post(f"{path}/backtests", json=fields)
    listed = client.get(f"{path}/backtests")
    client.put(path, json=fields).raise_for_status()
    missing = client.get(f"{path}/backtests/nothing")

    assert [started.json()["code"], listed.json()["code"]] == ["view_not_found"] * 2
    assert (missing.status_code, missing.json()["code"]) == (404, "job_not_found")
