"""Queries through the Python SDK, and through that for TypeScript."""

import json
from pathlib import Path

import pytest

from millstream_client import AsyncMillstream, BadRequest, Millstream, Refused
from millstream_client.testing import MemoryService
from tests.javascript import compile_typescript, run

pytestmark = pytest.mark.usefixtures("view_worker")

SDK = Path(__file__).parents[3] / "openapi" / "sdk" / "typescript"
SQL = "select page, count(*) as clicks from c group by page order by clicks desc"
ROWS = [{"page": "home", "clicks": 2}, {"page": "news", "clicks": 1}]
IN_TYPESCRIPT = """
import { BadRequest, Millstream } from './dist/index.js';
const [url, name] = process.argv.slice(1);
const client = new Millstream({ url });
const from = { c: { stream: name, columns: 'page string' } };
const done = await client.runQuery({ sql: SQL, from });
const refused = await client.runQuery({ sql: 'select 1 from c', from }).catch((error) => error);
const query = client.query(done.id);
const states = [];
for await (const status of query.watch()) states.push(status.state);
console.log(JSON.stringify({
  rows: done.rows, states, cancelled: (await query.cancel()).state,
  refused: [refused instanceof BadRequest, refused.errors[0].code],
}));
""".replace("SQL", repr(SQL), 1)


@pytest.fixture
def stream(millstream: Millstream, name: str) -> str:
    """The name of a stream with three clicks."""
    stream = millstream.stream(name)
    stream.create()
    for page in ("home", "news", "home"):
        stream.put({"page": page})
    return name


def test_query_is_run_and_read_again(millstream: Millstream, stream: str):
    done = millstream.run_query(SQL, {"c": {"stream": stream, "columns": "page string"}})
    query = millstream.query(done.id)

    assert [row.to_dict() for row in done.rows] == ROWS
    assert [column.name for column in done.columns] == ["page", "clicks"]
    assert sum(done.as_of["c"].positions.to_dict().values()) == 3
    assert [status.to_dict() for status in query.watch()] == [done.to_dict()]
    assert query.cancel().state == "done"


def test_options_of_a_query_are_sent(millstream: Millstream, stream: str):
    done = millstream.run_query(SQL, {"c": {"stream": stream}}, rows_max=1, seconds_max=5)

    assert (len(done.rows), done.truncated) == (1, True)


def test_refused_query_raises_bad_request(millstream: Millstream, stream: str):
    with pytest.raises(BadRequest) as refused:
        millstream.run_query("select 1 from c", {"c": {"stream": stream}})

    [fault] = refused.value.errors
    assert (fault.pointer, fault.code) == ("/sql", "sql_refused")


async def test_asynchronous_client_runs_queries(service_url: str, stream: str):
    async with AsyncMillstream(service_url) as client:
        done = await client.run_query(SQL, {"c": {"stream": stream}})

    assert [row.to_dict() for row in done.rows] == ROWS


def test_in_memory_service_has_no_queries():
    with MemoryService().client() as client, pytest.raises(Refused) as refused:
        client.run_query(SQL, {"c": {"stream": "clicks"}})

    assert refused.value.status == 501


def test_query_is_run_from_typescript(service_url: str, stream: str):
    compile_typescript(SDK)

    script = ["node", "--input-type=module", "--eval", IN_TYPESCRIPT, service_url, stream]
    assert json.loads(run(SDK, *script, seconds_max=60)) == {
        "rows": ROWS,
        "states": ["done"],
        "cancelled": "done",
        "refused": [True, "sql_refused"],
    }
