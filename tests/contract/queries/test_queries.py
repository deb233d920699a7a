"""Queries over HTTP: rows, states, refusals, rights."""

import pytest

pytestmark = pytest.mark.usefixtures("view_worker")

SQL = "select page, count(*) as clicks from c group by page order by clicks desc"
COLUMNS = [{"name": "page", "type": "string"}, {"name": "clicks", "type": "bigint"}]


@pytest.fixture
def stream(client, name):
    client.put(f"/v1/streams/{name}", json={}).raise_for_status()
    records = [{"data": {"page": page}} for page in ("home", "news", "home")]
    client.post(f"/v1/streams/{name}/records", json={"records": records}).raise_for_status()
    return name


@pytest.fixture
def fields(stream):
    return {"sql": SQL, "from": {"c": {"stream": stream, "columns": "page string"}}}


def faults(answer):
    return [(one["pointer"], one["code"]) for one in answer.json()["errors"]]


def test_query_is_answered_with_rows_and_positions(client, fields):
    answer = client.post("/v1/queries", json=fields)

    done = answer.json()
    assert answer.status_code == 200
    assert done["rows"] == [{"page": "home", "clicks": 2}, {"page": "news", "clicks": 1}]
    assert (done["columns"], done["truncated"], done["state"]) == (COLUMNS, False, "done")
    as_of = done["as_of"]["c"]
    assert (sum(as_of["positions"].values()), as_of["revision"], as_of["batch"]) == (3, None, None)
    assert done["records"] == {"c": 3}
    assert done["seconds"] >= 0
    assert client.get(f"/v1/queries/{done['id']}").json() == done


def test_rows_beyond_the_maximum_are_left_out(client, fields):
    done = client.post("/v1/queries", json={**fields, "rows_max": 1}).json()

    assert (done["rows"], done["truncated"]) == ([{"page": "home", "clicks": 2}], True)


def test_refused_query_has_line_and_column(client, fields):
    refused = client.post("/v1/queries", json={**fields, "sql": "select 1 from c"})

    assert refused.status_code == 422
    assert faults(refused) == [("/sql", "sql_refused")]
    assert "Line 1, column 8" in refused.json()["errors"][0]["detail"]


@pytest.mark.parametrize(
    ("relation", "fault"),
    [
        ({"stream": "missing"}, ("/from/c/stream", "not_found")),
        ({"table": "missing"}, ("/from/c/table", "not_found")),
        ({"view": "missing"}, ("/from/c/view", "not_found")),
        ({}, ("/from/c", "conflict")),
        ({"stream": "a", "view": "b"}, ("/from/c", "conflict")),
        ({"view": "a", "columns": "page string"}, ("/from/c/columns", "conflict")),
        ({"table": "a", "start": "earliest"}, ("/from/c/start", "conflict")),
        ({"stream": "a", "start": "latest"}, ("/from/c/start", "invalid")),
        ({"stream": "a", "start": "time"}, ("/from/c/start_time", "conflict")),
        ({"stream": "a/b"}, ("/from/c/stream", "invalid")),
    ],
)
def test_relation_is_checked(client, relation, fault):
    refused = client.post("/v1/queries", json={"sql": SQL, "from": {"c": relation}})

    assert refused.status_code == 422
    assert faults(refused) == [fault]


def test_query_of_another_id_does_not_exist(client):
    for answer in (client.get("/v1/queries/none"), client.delete("/v1/queries/none")):
        assert (answer.status_code, answer.json()["code"]) == (404, "job_not_found")


def test_ended_query_stays_when_it_is_cancelled(client, fields):
    done = client.post("/v1/queries", json=fields).json()
    cancelled = client.delete(f"/v1/queries/{done['id']}")

    assert (cancelled.status_code, cancelled.json()["state"]) == (200, "done")
    assert client.get(f"/v1/queries/{done['id']}").json()["rows"] == done["rows"]


def test_queries_are_audited_without_their_rows(client, fields):
    done = client.post("/v1/queries", json=fields).json()
    client.delete(f"/v1/queries/{done['id']}").raise_for_status()

    entries = client.get("/v1/audit", params={"limit": 2}).json()["items"]

    assert [(entry["operation"], entry["action"]) for entry in entries] == [
        ("cancel_query", "query:run"),
        ("run_query", "query:run"),
    ]
    assert done["id"] in str(entries)
    assert "home" not in str(entries)
