"""Views over HTTP: configuration, plan, progress, rows, batches, audit."""

import json

import pytest

from tests.conditions import wait_until
from tests.contract.views.conftest import OTHER_SQL, SQL

pytestmark = pytest.mark.usefixtures("view_worker")

OUTPUT = [{"name": "page", "type": "string"}, {"name": "clicks", "type": "bigint"}]


def test_view_is_created_shown_changed_listed_and_deleted(client, path, name, fields):
    made = client.put(path, json=fields)
    changed = client.put(path, json={**fields, "keep_seconds": 60})
    shown = client.get(path)
    listed = client.get("/v1/views", params={"prefix": name}).json()["items"]
    deleted = client.delete(path, headers={"if-match": '"v2"'})

    assert made.status_code == 201
    assert (made.json()["output"], made.json()["key"]) == (OUTPUT, ["page"])
    assert changed.json()["changes"] == [{"pointer": "/keep_seconds", "before": None, "after": 60}]
    assert shown.headers["etag"] == '"v2"'
    plan = {key: shown.json()[key] for key in ("state", "revision", "output", "key", "aggregates")}
    assert plan == {
        "state": "running",
        "revision": 1,
        "output": OUTPUT,
        "key": ["page"],
        "aggregates": ["count(1)"],
    }
    assert listed == [{key: shown.json()[key] for key in listed[0]}]
    assert deleted.status_code == 204
    assert client.get(path).json()["code"] == "view_not_found"


def test_dry_run_returns_plan_and_stores_nothing(client, path, fields):
    tried = client.put(path, json=fields, params={"dry_run": True})
    missing = client.get(path)
    client.put(path, json=fields).raise_for_status()
    same = client.put(path, json=fields, params={"dry_run": True})
    other = client.put(path, json={**fields, "sql": OTHER_SQL}, params={"dry_run": True})

    assert (tried.json()["output"], tried.json()["key"]) == (OUTPUT, ["page"])
    assert missing.status_code == 404
    assert same.json()["output"] == OUTPUT
    assert other.json()["key"] == ["site"]
    assert client.get(path).json()["sql"] == SQL


def test_rows_include_a_record_that_was_appended(append, read, client, path, fields):
    client.put(path, json=fields).raise_for_status()
    append("home", "news")

    answer = read(after=append("home"), wait_seconds=10)

    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["rows"] == [{"page": "home", "clicks": 2}, {"page": "news", "clicks": 1}]
    as_of = answer.json()["as_of"]
    assert (as_of["revision"], sum(as_of["positions"].values())) == (1, 3)
    assert as_of["changed_at"] is not None


def test_rows_are_selected_by_key_and_prefix_in_order(append, read, client, path, fields):
    client.put(path, json=fields).raise_for_status()
    after = append("a", "ab", "b", "c")
    read(after=after, wait_seconds=10).raise_for_status()

    def pages(**query):
        return [row["page"] for row in read(**query).json()["rows"]]

    assert pages(key="ab") == ["ab"]
    assert pages(prefix="a") == ["a", "ab"]
    assert pages(order="desc", limit=2) == ["c", "b"]


def test_rows_are_read_in_pages(append, read, client, path, fields):
    client.put(path, json=fields).raise_for_status()
    read(after=append("a", "b", "c"), wait_seconds=10).raise_for_status()

    first = read(limit=2).json()
    second = read(limit=2, cursor=first["next_cursor"]).json()
    elsewhere = read(limit=2, cursor=first["next_cursor"], order="desc")

    assert [row["page"] for row in first["rows"] + second["rows"]] == ["a", "b", "c"]
    assert second["next_cursor"] is None
    assert (elsewhere.status_code, elsewhere.json()["code"]) == (400, "invalid_cursor")


def test_sources_of_a_row_are_listed_in_pages(append, read, client, path, fields):
    client.put(path, json={**fields, "sources": "range"}).raise_for_status()
    read(after=append("a", "b", "a", "b", "a"), wait_seconds=10).raise_for_status()

    def sources(**query):
        return client.get(f"{path}/rows/sources", params=query).json()

    first = sources(key="a", limit=2)
    second = sources(key="a", limit=2, cursor=first["next_cursor"])

    assert client.get(path).json()["sources"] == "range"
    assert first["row"] == {"page": "a", "clicks": 3}
    assert first["ranges"] == [{"shard": 0, "first": 0, "last": 4, "records": 3}]
    assert (first["gaps"], first["as_of"]["positions"]) == ([], {"0": 5})
    records = first["records"] + second["records"]
    assert [one["offset"] for one in records] == [0, 2, 4]
    assert [one["data"] for one in records] == [{"page": "a", "site": "a"}] * 3
    assert (second["next_cursor"], sources(key="c")["row"]) == (None, None)
    assert sources(key="b", cursor=first["next_cursor"])["code"] == "invalid_cursor"
    assert sources()["errors"][0]["pointer"] == "/key"


def test_sources_that_are_not_tracked_are_refused(append, read, client, path, fields):
    client.put(path, json=fields).raise_for_status()
    read(after=append("a"), wait_seconds=10).raise_for_status()

    answer = client.get(f"{path}/rows/sources", params={"key": "a"})

    assert (answer.status_code, answer.json()["code"]) == (409, "view_sources_untracked")


def test_tracked_sources_begin_a_revision(append, read, client, path, fields):
    client.put(path, json=fields).raise_for_status()
    read(after=append("a", "a"), wait_seconds=10).raise_for_status()

    client.put(path, json={**fields, "sources": "range"}).raise_for_status()
    wait_until(lambda: client.get(path).json()["revision"] == 2)

    listed = client.get(f"{path}/rows/sources", params={"key": "a"}).json()
    assert [one["offset"] for one in listed["records"]] == [0, 1]


def test_other_query_builds_a_revision_that_replaces_rows(append, read, client, path, fields):
    client.put(path, json=fields).raise_for_status()
    read(after=append("a", "b"), wait_seconds=10).raise_for_status()
    cursor = read(limit=1).json()["next_cursor"]

    client.put(path, json={**fields, "sql": OTHER_SQL}).raise_for_status()
    wait_until(lambda: client.get(path).json()["revision"] == 2)
    answer, stale = read(), read(limit=1, cursor=cursor)

    assert answer.json()["rows"] == [{"site": "a", "clicks": 2}]
    assert client.get(path).json()["building"] is None
    assert (stale.status_code, stale.json()["code"]) == (400, "invalid_cursor")


def test_earlier_rows_are_read_by_batch_and_time(append, read, client, path, fields):
    client.put(path, json={**fields, "history_seconds": 3600}).raise_for_status()
    first = read(after=append("a", "b", "c"), wait_seconds=10).json()
    last = read(after=append("a", "d"), wait_seconds=10).json()

    then = first["as_of"]
    page = read(at_batch=then["batch"], limit=2).json()
    rest = read(at_batch=then["batch"], limit=2, cursor=page["next_cursor"]).json()
    at = read(at=then["changed_at"], limit=1).json()
    next_at = read(at=then["changed_at"], limit=2, cursor=at["next_cursor"]).json()
    gone = read(at="2026-01-31T12:00:00Z")

    assert (page["rows"] + rest["rows"], page["as_of"]) == (first["rows"], then)
    assert (at["rows"] + next_at["rows"], next_at["as_of"]) == (first["rows"], then)
    assert len(last["rows"]) == 4
    assert (gone.status_code, gone.json()["code"]) == (410, "view_history_expired")


def test_earlier_rows_that_are_not_kept_are_gone(append, read, client, path, fields):
    client.put(path, json=fields).raise_for_status()
    batch = read(after=append("a"), wait_seconds=10).json()["as_of"]["batch"]

    gone = read(at_batch=batch)

    assert (gone.status_code, gone.json()["code"]) == (410, "view_history_expired")
    assert "history_seconds" in gone.json()["detail"]


def test_rollback_returns_to_the_former_rows(append, read, client, path, fields):
    kept = {**fields, "keep_former_seconds": 3600}
    client.put(path, json=kept).raise_for_status()
    read(after=append("a", "b"), wait_seconds=10).raise_for_status()
    client.put(path, json={**kept, "sql": OTHER_SQL}).raise_for_status()
    wait_until(lambda: client.get(path).json()["revision"] == 2)
    former = client.get(path).json()["former"]

    answer = client.post(f"{path}/rollbacks", headers={"if-match": '"v2"'})
    wait_until(lambda: client.get(path).json()["revision"] == 3)

    shown = client.get(path).json()
    assert (former["revision"], former["sql"]) == (1, SQL)
    assert former["until"] is not None
    assert answer.status_code == 202
    assert (shown["sql"], shown["former"]["sql"]) == (SQL, OTHER_SQL)
    assert [row["page"] for row in read(after=append("c"), wait_seconds=10).json()["rows"]] == [
        *"abc"
    ]
    again = client.post(f"{path}/rollbacks", headers={"if-match": '"v2"'})
    assert (again.status_code, again.json()["code"]) == (412, "precondition_failed")


def test_rollback_without_a_former_revision_is_refused(client, path, fields):
    client.put(path, json=fields).raise_for_status()

    answer = client.post(f"{path}/rollbacks")

    assert (answer.status_code, answer.json()["code"]) == (404, "view_revision_not_found")


def test_rebuild_reports_rows_that_differ(append, read, client, path, stream, fields):
    client.put(path, json=fields).raise_for_status()
    read(after=append("a", "b"), wait_seconds=10).raise_for_status()
    client.post(f"/v1/streams/{stream}/shards/0/truncate", json={"before": 1}).raise_for_status()

    answer = client.post(f"{path}/rebuilds")
    wait_until(lambda: client.get(path).json()["revision"] == 2)

    assert answer.status_code == 202
    report = client.get(path).json()["report"]
    samples = [{"before": {"page": "a", "clicks": 1}, "after": None}]
    assert report == {
        "former": 1,
        "exact": True,
        "records": 1,
        "former_records": 2,
        "added": 0,
        "removed": 1,
        "changed": 0,
        "samples": samples,
    }


def test_paused_view_keeps_rows_and_is_behind(append, read, client, path, fields):
    client.put(path, json=fields).raise_for_status()
    read(after=append("a"), wait_seconds=10).raise_for_status()

    paused = client.put(f"{path}/pause")
    after = append("b")
    behind = read(after=after)
    state = client.get(path).json()["state"]
    resumed = client.delete(f"{path}/pause")
    caught_up = read(after=after, wait_seconds=10)

    assert (paused.json()["paused"], state, resumed.json()["paused"]) == (True, "paused", False)
    assert (behind.status_code, behind.json()["code"]) == (503, "view_behind")
    assert "retry-after" in behind.headers
    assert len(caught_up.json()["rows"]) == 2


def test_batches_are_listed_newest_first(append, read, client, path, fields):
    client.put(path, json=fields).raise_for_status()
    for page in "ab":
        read(after=append(page), wait_seconds=10).raise_for_status()

    listed = client.get(f"{path}/batches").json()["items"]
    [newest] = client.get(f"{path}/batches", params={"limit": 1}).json()["items"]

    assert [(one["batch"], one["records"], one["rows"]) for one in listed] == [(2, 1, 1), (1, 1, 1)]
    assert newest == listed[0]


def test_missing_stream_is_refused_at_its_place(client, path, fields):
    missing = client.put(path, json={**fields, "from": {"c": {"stream": "no-such-stream"}}})

    assert missing.json()["errors"][0]["pointer"] == "/from/c/stream"


def test_sinks_get_changes_and_show_their_state(client, path, name, fields, append, read):
    client.put(f"/v1/queues/{name}", json={}).raise_for_status()
    client.put(f"/v1/streams/{name}-out", json={}).raise_for_status()
    alert = {"queue": name, "when": "clicks > 1", "once_per_key": True}
    made = client.put(path, json={**fields, "into": [alert, {"stream": f"{name}-out"}]})
    read(after=append("home", "cart", "home"), wait_seconds=10).raise_for_status()

    received = client.post(f"/v1/queues/{name}/receive", json={"wait_seconds": 10}).json()
    shown = client.get(path).json()
    other = client.put(path, json={**fields, "into": [{"queue": "missing"}]})
    removed = client.put(path, json=fields)

    assert made.status_code == 201, made.text
    [message] = received["messages"]
    assert message["body"]["change"] == "insert"
    assert message["body"]["row"] == {"page": "home", "clicks": 2}
    assert shown["into"][0] == {"stream": None, "emit": "changes", **alert}
    assert [sink["sink"] for sink in shown["sinks"]] == [f"queue:{name}", f"stream:{name}-out"]
    assert [fault["pointer"] for fault in other.json()["errors"]] == ["/into/0/queue"]
    assert (removed.json()["into"], client.get(path).json()["sinks"]) == ([], [])


def test_table_is_shown_and_must_exist(client, path, name, fields):
    users = f"{name}-users"
    both = {**fields["from"], "u": {"table": users, "columns": "plan string"}}

    missing = client.put(path, json={**fields, "from": both})
    client.put(f"/v1/streams/{users}", json={}).raise_for_status()
    made = client.put(path, json={**fields, "from": both})
    again = client.put(path, json={**fields, "from": made.json()["from"]})

    assert [fault["pointer"] for fault in missing.json()["errors"]] == ["/from/u/table"]
    assert made.status_code == 201, made.text
    assert made.json()["from"]["u"] == {"table": users, "columns": "plan string"}
    assert (again.status_code, again.json()["changes"]) == (200, [])
    assert client.get(path).json()["progress"]["tables"] == {}


def test_view_is_a_table_of_another_one(client, path, name, fields):
    other = f"/v1/views/{name}-other"
    both = {**fields["from"], "o": {"view": f"{name}-other"}}

    missing = client.put(path, json={**fields, "from": both})
    client.put(other, json=fields).raise_for_status()
    made = client.put(path, json={**fields, "from": both})
    again = client.put(path, json={**fields, "from": made.json()["from"]})
    itself = client.put(other, json={**fields, "from": both})
    tests = client.post(f"{path}/backtests", json={**fields, "from": both})
    client.delete(other).raise_for_status()
    later = client.put(path, json={**fields, "from": both, "rows_max": 7})
    elsewhere = client.put(
        path, json={**fields, "from": {**fields["from"], "x": {"view": f"{name}-other"}}}
    )

    assert made.status_code == 201, made.text
    assert made.json()["from"]["o"] == {"view": f"{name}-other"}
    assert (again.status_code, again.json()["changes"]) == (200, [])
    assert tests.status_code == 202, tests.text
    assert [one["pointer"] for one in later.json()["changes"]] == ["/rows_max"]
    for refused, pointer in ((missing, "o"), (itself, "o"), (elsewhere, "x")):
        assert refused.status_code == 422
        assert [one["pointer"] for one in refused.json()["errors"]] == [f"/from/{pointer}/view"]


def test_refused_query_stores_nothing_and_names_its_place(client, path, fields):
    answer = client.put(path, json={**fields, "sql": "select page from c"})

    assert answer.status_code == 422
    [fault] = answer.json()["errors"]
    assert (fault["pointer"], fault["code"]) == ("/sql", "sql_refused")
    assert "Line 1, column 8" in fault["detail"]
    assert client.get(path).status_code == 404


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"sql": ""}, "/sql"),
        ({"from": {}}, "/from"),
        ({"from": {"C": {"stream": "clicks"}}}, "/from"),
        ({"from": {"c": {"stream": "clicks", "idle_seconds": 0}}}, "/from/c/idle_seconds"),
        ({"from": {"c": {"stream": "clicks", "start": "time"}}}, "/from/c/start_time"),
        ({"from": {"c": {"stream": "clicks", "on_bad": "fail"}}}, "/from/c/on_bad"),
        ({"from": {"c": {"stream": "clicks", "typo": 1}}}, "/from/c/typo"),
        ({"late": "correct"}, "/late"),
        ({"keep_seconds": 0}, "/keep_seconds"),
        ({"rows_max": 0}, "/rows_max"),
        ({"into": [{"topic": "a"}]}, "/into/0/topic"),
        ({"into": [{"queue": "missing"}]}, "/into/0/queue"),
        ({"sinks": []}, "/sinks"),
        ({"from": {"u": {"table": "users"}}}, "/from"),
        ({"from": {"c": {"stream": "clicks", "table": "users"}}}, "/from/c"),
        ({"from": {"c": {"stream": "clicks"}, "u": {}}}, "/from/u"),
        (
            {"from": {"c": {"stream": "clicks"}, "u": {"view": "v", "columns": "a int"}}},
            "/from/u/columns",
        ),
        ({"from": {"c": {"stream": "clicks"}, "u": {"view": "no name"}}}, "/from/u/view"),
        ({"from": {"c": {"stream": "clicks"}, "U": {"table": "users"}}}, "/from"),
        (
            {"from": {"c": {"stream": "clicks"}, "u": {"table": "users", "start": "latest"}}},
            "/from/u/start",
        ),
        ({"from": {"c": {"stream": "clicks"}, "u": {"table": "no name"}}}, "/from/u/table"),
        ({"history_seconds": 31 * 86400}, "/history_seconds"),
    ],
)
def test_invalid_field_is_refused_at_its_place(client, path, fields, change, pointer):
    answer = client.put(path, json={**fields, **change})

    assert answer.status_code in (400, 422), answer.text
    assert [fault["pointer"] for fault in answer.json()["errors"]] == [pointer]


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ({"after": "0"}, "/after"),
        ({"key": ["a", "b"]}, "/key/1"),
        ({"latest": True}, "/latest"),
        ({"window_from": "2026-01-31T12:00:00Z"}, "/window_from"),
        ({"order": "up"}, "/order"),
        ({"wait_seconds": 60}, "/wait_seconds"),
        ({"at": "yesterday"}, "/at"),
        ({"at_batch": -1}, "/at_batch"),
        ({"at_batch": 1, "after": "0:1"}, "/after"),
        ({"at_batch": 1, "at": "2026-01-31T12:00:00Z"}, "/at_batch"),
    ],
)
def test_invalid_selection_is_refused_at_its_place(client, read, path, fields, query, pointer):
    client.put(path, json=fields).raise_for_status()

    answer = read(**query)

    assert answer.status_code in (400, 422), answer.text
    assert [fault["pointer"] for fault in answer.json()["errors"]] == [pointer]


def test_change_of_a_view_is_audited(client, path, name, fields):
    client.put(path, json=fields).raise_for_status()
    client.put(path, json={**fields, "rows_max": 10}).raise_for_status()
    client.put(f"/v1/queues/{name}", json={}).raise_for_status()
    client.put(path, json={**fields, "into": [{"queue": name}]}).raise_for_status()

    entries = client.get("/v1/audit", params={"resource": path.removeprefix("/v1/")}).json()

    assert [entry["action"] for entry in entries["items"]] == ["view:manage"] * 3
    assert "rows_max" in json.dumps(entries["items"][1])
    assert f'"queue": "{name}"' in json.dumps(entries["items"][0])
