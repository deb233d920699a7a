"""`millstream query` against a service: every verb, as text and as JSON."""

import pytest

from tests.cli_commands import millstream

pytestmark = pytest.mark.usefixtures("at_the_service", "view_worker")

SQL = "select page, count(*) as clicks from c group by page order by clicks desc"
ROWS = [{"page": "home", "clicks": 2}, {"page": "news", "clicks": 1}]


@pytest.fixture
def stream(client, name):
    client.put(f"/v1/streams/{name}", json={}).raise_for_status()
    records = [{"data": {"page": page}} for page in ("home", "news", "home")]
    client.post(f"/v1/streams/{name}/records", json={"records": records}).raise_for_status()
    return name


@pytest.fixture
def run(stream):
    return lambda *words: millstream(
        "query", "run", SQL, "--from", f"c={stream}", "--columns", "page string", *words
    )


def test_rows_of_a_query_are_printed(run):
    text, json, lines = run(), run("-o", "json"), run("-o", "ndjson", "--max", "1")

    assert [line.split() for line in text.out.splitlines()] == [
        ["page", "clicks"],
        ["home", "2"],
        ["news", "1"],
    ]
    assert json.json == ROWS
    assert (lines.lines, lines.err) == (ROWS[:1], "there are more than these 1 rows\n")


def test_query_is_read_from_a_file_and_limited_by_time(stream, tmp_path):
    (tmp_path / "query.sql").write_text(f"{SQL}\n")
    words = ("--sql-file", str(tmp_path / "query.sql"), "--from", f"c={stream}:page string")
    later = millstream(
        "query", "run", *words, "--since", "1s", "--until", "2001-01-01", "-o", "json"
    )

    assert later.json == []


def test_query_is_shown_and_cancelled_by_its_id(client, stream):
    body = {"sql": SQL, "from": {"c": {"stream": stream}}}
    query = client.post("/v1/queries", json=body).json()["id"]

    assert millstream("query", "show", query, "-o", "json").json == ROWS
    assert millstream("query", "cancel", query).out == f"Query {query} is done.\n"
    assert millstream("query", "show", "none").code == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "name a stream, a table or a view"),
        (("--from", "clicks"), "write NAME=STREAM, or NAME=STREAM:COLUMNS"),
        (("--view", "v=rows:page string"), "write NAME=VIEW"),
        (("--from", "c=a", "--table", "c=b"), "c is the name of another relation"),
    ],
)
def test_relations_are_checked(words, message):
    refused = millstream("query", "run", SQL, *words)

    assert refused.code == 2
    assert message in refused.err


def test_refused_query_has_its_place(stream):
    refused = millstream("query", "run", "select 1 from c", "--from", f"c={stream}")

    assert refused.code != 0
    assert "Line 1, column 8" in refused.err
