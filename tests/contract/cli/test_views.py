"""`millstream view` against a service: every verb, as text and as JSON."""

from pathlib import Path

import httpx
import pytest

from tests.cli_commands import millstream
from tests.conditions import wait_until

pytestmark = pytest.mark.usefixtures("at_the_service", "view_worker")

SQL = "select page, count(*) as clicks from records group by page"


@pytest.fixture
def view(client: httpx.Client, name: str) -> str:
    """The name of a new view, and of its stream."""
    client.put(f"/v1/streams/{name}", json={}).raise_for_status()
    made = millstream("view", "create", name, name, SQL, "--columns", "page string")
    assert made.code == 0, made.err
    assert "Columns: page string, clicks bigint." in made.out
    return name


@pytest.fixture
def record(client: httpx.Client, view: str) -> str:
    """The place of a record that was appended to the stream."""
    body = {"records": [{"data": {"page": page}} for page in ("home", "news")]}
    results = client.post(f"/v1/streams/{view}/records", json=body).json()["records"]
    return "{shard}:{offset}".format(**results[-1])


def test_view_is_shown_listed_changed_and_deleted(view, tmp_path):
    (tmp_path / "query.sql").write_text(f"{SQL}\n")
    file = str(tmp_path / "query.sql")

    again = millstream("view", "create", view, view, SQL, "--columns", "page string")
    shown = millstream("view", "show", view, "-o", "json").json
    listed = millstream("view", "ls", "--prefix", view).out
    changed = millstream(
        *("view", "apply", view, view, "--sql-file", file, "--columns", "page string"),
        *("--keep", "30d", "--late", "drop", "-o", "json"),
    ).json
    refused = millstream("view", "rm", view)
    removed = millstream("view", "rm", view, "--yes")

    assert "already exists with these settings" in again.out
    assert (shown["sql"], shown["state"], shown["problems"]) == (SQL, "running", [])
    assert view in listed
    assert {change["pointer"] for change in changed["changes"]} == {"/keep_seconds", "/late"}
    assert (refused.code, removed.code) == (2, 0)
    assert millstream("view", "show", view).code == 3


def test_rows_and_batches_are_printed(view, record):
    rows = millstream("view", "rows", view, "--after", record, "-o", "json").json
    table = millstream("view", "rows", view, "--key", "home").out
    descending = millstream("view", "rows", view, "--desc", "-n", "1", "-o", "ndjson").lines
    batches = millstream("view", "batches", view, "-o", "json").json

    assert rows == [{"page": "home", "clicks": 1}, {"page": "news", "clicks": 1}]
    assert [line.split() for line in table.splitlines()] == [["page", "clicks"], ["home", "1"]]
    assert descending == [{"page": "news", "clicks": 1}]
    assert sum(batch["records"] for batch in batches) == 2


def test_earlier_rows_are_printed(client, view, record):
    columns = ("--columns", "page string")
    applied = millstream("view", "apply", view, view, SQL, *columns, "--history", "1h")
    millstream("view", "rows", view, "--after", record)
    batch = client.get(f"/v1/views/{view}/rows").json()["as_of"]["batch"]
    client.post(f"/v1/streams/{view}/records", json={"records": [{"data": {"page": "home"}}]})

    rows = millstream("view", "rows", view, "--at-batch", str(batch), "-o", "json").json
    gone = millstream("view", "rows", view, "--at", "1d")

    assert applied.code == 0, applied.err
    assert rows == [{"page": "home", "clicks": 1}, {"page": "news", "clicks": 1}]
    assert "The view has rows from" in gone.err


def test_sources_of_a_row_are_printed(client, view, record):
    made = millstream(
        "view", "apply", view, view, SQL, "--columns", "page string", "--sources", "range"
    )
    assert made.code == 0, made.err
    wait_until(lambda: client.get(f"/v1/views/{view}").json()["revision"] == 2)

    records = millstream("view", "sources", view, "--key", "news", "-o", "json").json
    table = millstream("view", "sources", view, "--key", "news").out
    refused = millstream("view", "sources", view)

    assert [(one["offset"], one["data"]) for one in records] == [(1, {"page": "news"})]
    assert table.splitlines()[1].split()[:2] == ["0", "1"]
    assert "all 1 columns of the key" in refused.err


def test_back_test_is_printed_and_listed(view, record):
    millstream("view", "rows", view, "--after", record)
    other = SQL.replace("clicks", "visits")
    options = ("--columns", "page string", "--into", "queue:alerts", "--when", "visits > 0")

    shown = millstream("view", "backtest", view, view, other, *options).out
    started = millstream("view", "backtest", view, view, other, "--no-wait")
    listed = millstream("view", "backtests", view, "-o", "json").json
    first = listed[-1]
    again = millstream("view", "backtests", view, "--id", first["id"], "-o", "json").json
    missing = millstream("view", "backtests", view, "--id", "nothing")

    assert "queue:alerts" in shown
    assert '{"page":"home","visits":1}' in shown
    assert f"millstream view backtests {view} --id " in started.out
    assert len(listed) == 2
    assert (again["result"]["changed"], again["problems"]) == (2, [])
    assert missing.code == 3


def test_view_is_rebuilt_and_rolled_back(client, view, record):
    def has_revision(number):
        return lambda: client.get(f"/v1/views/{view}").json()["revision"] == number

    refused = millstream("view", "rollback", view)
    rebuilt = millstream("view", "rebuild", view)
    wait_until(has_revision(2))
    report = millstream("view", "show", view).out
    other = SQL.replace("page", "site")
    columns = ("--columns", "page string", "--keep-former", "1h")
    millstream("view", "apply", view, view, other, *columns)
    wait_until(has_revision(3))
    former = millstream("view", "show", view).out
    back = millstream("view", "rollback", view)
    wait_until(has_revision(4))

    assert "no former revision" in refused.err
    assert "Revision 2" in rebuilt.out
    assert "former_records" in report
    assert "FORMER REVISION" in former.upper()
    assert "Revision 4" in back.out
    assert client.get(f"/v1/views/{view}").json()["sql"] == SQL


def test_view_is_paused_and_resumed(view):
    paused = millstream("view", "pause", view)
    shown = millstream("view", "show", view)
    resumed = millstream("view", "resume", view, "-o", "json").json

    assert (paused.code, resumed["paused"]) == (0, False)
    assert "Paused. Its rows are as of the last batch" in shown.out


def test_start_and_query_are_given_once(view):
    offset = millstream("view", "apply", view, view, SQL, "--start", "7")
    neither = millstream("view", "apply", view, view)
    day = millstream(
        *("view", "apply", view, view, SQL, "--start", "1d", "--dry-run", "-o", "json")
    ).json

    assert (offset.code, neither.code) == (2, 2)
    assert day["from"]["records"]["start"] == "time"


@pytest.fixture
def alerts(client: httpx.Client, name: str) -> str:
    """The name of a queue and of a stream, as options and a sink's state have it."""
    client.put(f"/v1/queues/{name}-alerts", json={}).raise_for_status()
    client.put(f"/v1/streams/{name}-alerts", json={}).raise_for_status()
    return f"{name}-alerts"


def apply(view: str, *options: str):
    return millstream("view", "apply", view, view, SQL, "--columns", "page string", *options)


def test_sink_is_added_shown_and_removed(view, alerts, client):
    options = ("--into", f"queue:{alerts}", "--when", "clicks > 1", "--once-per-key")
    added = apply(view, *options)
    body = {"records": [{"data": {"page": "home"}}] * 2}
    client.post(f"/v1/streams/{view}/records", json=body).raise_for_status()
    message = client.post(f"/v1/queues/{alerts}/receive", json={"wait_seconds": 20}).json()
    row = f"queue:{alerts} changes clicks > 1 yes 0 1 -"
    wait_until(lambda: row in " ".join(millstream("view", "show", view).out.split()))
    removed = apply(view)

    assert (added.code, message["messages"][0]["body"]["row"]["clicks"]) == (0, 2)
    assert "updated: into [{" in removed.out
    assert client.get(f"/v1/views/{view}").json()["into"] == []


def test_view_has_several_sinks(view, alerts):
    both = ("--into", f"queue:{alerts}", "--into", f"stream:{alerts}")
    apply(view, *both)
    shown = millstream("view", "show", view, "-o", "json").json
    refused = apply(view, *both, "--when", "clicks > 1", "--emit", "final")

    assert [sink["sink"] for sink in shown["sinks"]] == [f"queue:{alerts}", f"stream:{alerts}"]
    assert refused.code == 2
    assert "--emit, --when" in refused.err
    assert "`millstream apply -f`" in refused.err


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--into", "topic:a"], "is not a sink: use stream:NAME or queue:NAME"),
        (["--into", "queue:"], "is not a sink"),
        (["--once-per-key"], "needs --into"),
        (["--into", "queue:missing"], "/into/0/queue"),
    ],
)
def test_invalid_sink_is_refused(view, options, reason):
    refused = apply(view, *options)

    assert refused.code == 2
    assert reason in " ".join(refused.err.split())


def test_failing_sink_is_a_problem(view, alerts, client):
    apply(view, "--into", f"queue:{alerts}")
    client.delete(f"/v1/queues/{alerts}").raise_for_status()
    body = {"records": [{"data": {"page": "home"}}]}
    client.post(f"/v1/streams/{view}/records", json=body).raise_for_status()
    problem = f"queue:{alerts} does not accept changes, 1 are pending"

    wait_until(lambda: problem in millstream("view", "show", view).out)


def test_refused_query_names_its_place(view):
    refused = millstream("view", "apply", view, view, "select page from records")

    assert refused.code == 2
    assert "/sql" in refused.err
    assert "Line 1, column 8" in refused.err


def test_view_is_exported_and_applied(view: str, tmp_path: Path, client: httpx.Client):
    exported = millstream("export", "views", "--prefix", view)
    file = tmp_path / "view.yaml"
    file.write_text(exported.out)
    same = millstream("diff", "-f", str(file))
    file.write_text(exported.out.replace("late: count", "late: drop"))
    changed = millstream("apply", "-f", str(file))

    assert "kind: view" in exported.out
    assert (same.code, same.out) == (0, "")
    assert '/late: "count" -> "drop"' in changed.out
    assert client.get(f"/v1/views/{view}").json()["late"] == "drop"


def test_tables_are_named_listed_and_checked(client, name):
    for stream in (name, f"{name}-users"):
        client.put(f"/v1/streams/{stream}", json={}).raise_for_status()
    create = ("view", "create", name, name, SQL, "--columns", "page string")

    made = millstream(*create, "--table", f"u={name}-users:plan string, born date")
    shown = millstream("view", "show", name, "-o", "json").json
    listed = millstream("view", "ls", "--prefix", name, "-o", "json").json
    refused = [millstream(*create, "--table", text) for text in ("u", "u=", "records=users")]
    millstream("view", "rm", name, "--yes")

    assert made.code == 0, made.err
    assert shown["from"]["u"] == {"table": f"{name}-users", "columns": "plan string, born date"}
    assert [one["stream"] for one in listed] == [name]
    assert [done.code for done in refused] == [2, 2, 2]


def test_joined_stream_is_named_listed_and_checked(client, name):
    for stream in (name, f"{name}-paid"):
        client.put(f"/v1/streams/{stream}", json={}).raise_for_status()
    create = ("view", "create", name, name, SQL, "--columns", "page string")

    made = millstream(*create, "--join", f"p={name}-paid:page string, cents int")
    shown = millstream("view", "show", name, "-o", "json").json
    listed = millstream("view", "ls", "--prefix", name, "-o", "json").json
    refused = [millstream(*create, "--join", text) for text in ("p", "p=", "records=users")]
    millstream("view", "rm", name, "--yes")

    assert made.code == 0, made.err
    joined = shown["from"]["p"]
    assert (joined["stream"], joined["columns"]) == (f"{name}-paid", "page string, cents int")
    assert shown["join_seconds"] == {"p": 3600, "records": 3600}
    assert [one["stream"] for one in listed] == [f"{name}-paid, {name}"]
    assert [done.code for done in refused] == [2, 2, 2]
    assert "--join" in refused[0].err
