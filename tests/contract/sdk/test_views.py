"""Views through the Python SDK, and through that for TypeScript."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from millstream_client import AlreadyExists, AsyncMillstream, Gone, Millstream, NotFound, Refused
from millstream_client.core.params import ViewInputConfigParams, ViewSinkConfigParams
from millstream_client.testing import MemoryService
from tests.conditions import wait_until
from tests.javascript import compile_typescript, run

pytestmark = pytest.mark.usefixtures("view_worker")

SDK = Path(__file__).parents[3] / "openapi" / "sdk" / "typescript"
SQL = "select page, count(*) as clicks from c group by page"
IN_TYPESCRIPT = """
import { Millstream, NotFound } from './dist/index.js';
const [url, name] = process.argv.slice(1);
const client = new Millstream({ url });
const view = client.view(name);
const sink = client.queue(`${name}-changes`);
await sink.create();
const config = {
  sql: SQL, from: { c: { stream: name, columns: 'page string' } }, sources: 'range', into: [{ queue: sink.name, when: 'clicks = 1' }],
  history_seconds: 3600,
};
const made = await view.create(config);
const again = await view.create(config);
const { shard, offset } = await client.stream(name).append({ page: 'home' });
const page = await view.read({ after: `${shard}:${offset}`, waitSeconds: 10 });
const [change] = await sink.receive({ waitSeconds: 10 });
await change.ack();
const rows = [];
for await (const row of view.rows({ key: ['home'] })) rows.push(row);
const then = await view.read({ atBatch: page.as_of.batch });
const at = await view.read({ at: new Date(page.as_of.changed_at) });
const sources = [];
for await (const record of view.sources({ key: ['home'] })) sources.push(record.data);
const listed = [];
for await (const one of client.views({ prefix: name })) listed.push(one.name);
await view.rebuild();
while ((await view.details()).report === null) await new Promise((resolve) => setTimeout(resolve, 50));
const former = await view.rollBack().catch((error) => error instanceof NotFound);
const paused = (await view.pause()).paused;
const state = (await view.details()).state;
await view.resume();
const batches = (await view.batches()).length;
const backTest = await view.startBacktest({ sql: config.sql, from: config.from });
let tested;
for await (tested of backTest.watch()) { }
const compared = [tested.result.exact, tested.result.changed, (await view.backtests())[0].id === backTest.id, backTest.view];
await view.delete();
const gone = await view.details().catch((error) => error instanceof NotFound);
console.log(JSON.stringify({
  created: [made.created, again.created], key: made.key, rows, sources, same: [page, then, at].map((one) => one.rows.length), listed, paused, state, batches, gone, former, compared,
  change: change.json(),
}));
""".replace("SQL", repr(SQL))


@pytest.fixture
def stream(millstream: Millstream, name: str) -> str:
    """The name of a new stream."""
    millstream.stream(name).create()
    return name


def test_view_is_created_compared_replaced_paused_and_deleted(millstream: Millstream, stream: str):
    view = millstream.view(stream)
    read: Mapping[str, ViewInputConfigParams] = {"c": {"stream": stream, "columns": "page string"}}

    made, again = view.create(SQL, read), view.create(SQL, read)
    with pytest.raises(AlreadyExists):
        view.create(SQL, read, rows_max=10)
    with pytest.raises(Refused, match="Line 1, column 8"):
        view.apply("select page from c", read)
    changed = view.apply(SQL, read, late="drop", dry_run=True)

    assert (made.created, again.created) == (True, False)
    assert [(one.name, one.type_) for one in made.output] == [
        ("page", "string"),
        ("clicks", "bigint"),
    ]
    assert [one.pointer for one in changed.changes] == ["/late"]
    assert (view.pause().paused, view.details().state, view.resume().paused) == (
        True,
        "paused",
        False,
    )
    assert [one.name for one in millstream.views(prefix=stream)] == [stream]
    view.delete()
    with pytest.raises(NotFound):
        view.details()


def test_rows_include_what_was_appended(millstream: Millstream, stream: str):
    view = millstream.view(stream)
    view.create(SQL, {"c": {"stream": stream}})
    place = [millstream.stream(stream).put({"page": page}) for page in ("a", "b", "b")][-1]
    after = f"{place.shard}:{place.offset}"

    page = view.read(limit=1, after=after, wait_seconds=10)
    rows = list(view.rows(after=after))

    assert page.next_cursor is not None
    assert sum(page.as_of.positions.to_dict().values()) == 3
    assert rows == [{"page": "a", "clicks": 1}, {"page": "b", "clicks": 2}]
    assert list(view.rows(descending=True, key=["b"])) == [{"page": "b", "clicks": 2}]
    assert sum(batch.records for batch in view.batches()) == 3


def test_earlier_rows_are_read(millstream: Millstream, stream: str):
    view = millstream.view(stream)
    view.create(SQL, {"c": {"stream": stream}}, history_seconds=3600)
    pages = []
    for _ in range(2):
        place = millstream.stream(stream).put({"page": "a"})
        pages.append(view.read(after=f"{place.shard}:{place.offset}", wait_seconds=10))

    first = pages[0].as_of
    by_batch = list(view.rows(at_batch=first.batch))
    by_time = list(view.rows(at=first.changed_at))

    assert by_batch == by_time == [{"page": "a", "clicks": 1}]
    with pytest.raises(Gone):
        view.read(at_batch=0)


def test_sources_of_a_row_are_listed(millstream: Millstream, stream: str):
    view = millstream.view(stream)
    view.create(SQL, {"c": {"stream": stream}}, sources="range")
    place = [millstream.stream(stream).put({"page": page}) for page in "aba"][-1]
    view.read(after=f"{place.shard}:{place.offset}", wait_seconds=10)

    page = view.read_sources(key=["a"], limit=1)
    records = list(view.sources(key=["a"]))

    assert page.row is not None
    assert page.row.to_dict() == {"page": "a", "clicks": 2}
    assert [(one.first, one.last, one.records) for one in page.ranges] == [(0, 2, 2)]
    assert page.next_cursor is not None
    assert [one["offset"] for one in records] == [0, 2]


def test_view_is_rebuilt_and_rolled_back(millstream: Millstream, stream: str):
    view = millstream.view(stream)
    read: Mapping[str, ViewInputConfigParams] = {"c": {"stream": stream}}
    view.create(SQL, read, keep_former_seconds=3600)

    view.rebuild()
    wait_until(lambda: view.details().revision == 2)
    report = view.details().report
    view.roll_back()
    wait_until(lambda: view.details().revision == 3)

    assert report is not None
    assert (report.former, report.exact, report.changed) == (1, True, 0)
    assert view.details().former is not None


def test_configuration_is_back_tested(millstream: Millstream, stream: str):
    view = millstream.view(stream)
    read: Mapping[str, ViewInputConfigParams] = {"c": {"stream": stream}}
    view.create(SQL, read)
    millstream.stream(stream).put({"page": "a"})
    place = millstream.stream(stream).put({"page": "a"})
    view.read(after=f"{place.shard}:{place.offset}", wait_seconds=10)

    started = view.start_backtest(
        SQL.replace("clicks", "visits"), read, into=[{"queue": "alerts", "when": "visits > 1"}]
    )
    [*_, done] = started.watch(0.05)

    assert done.result is not None
    assert (done.state, done.result.exact, done.result.changed) == ("done", True, 1)
    [sample] = done.result.samples
    assert sample.after is not None
    assert sample.after.to_dict() == {"page": "a", "visits": 2}
    [sink] = done.result.sinks
    assert (sink.sink, sink.messages, sink.samples[0].change) == ("queue:alerts", 1, "insert")
    assert [one.id for one in view.backtests()] == [started.id]
    assert view.backtest(started.id).status().result == done.result


def test_sinks_get_changes(millstream: Millstream, stream: str):
    view, queue = millstream.view(stream), millstream.queue(f"{stream}-alerts")
    changes = millstream.stream(f"{stream}-changes")
    queue.create()
    changes.create(key_index=True)
    alert: ViewSinkConfigParams = {"queue": queue.name, "when": "clicks > 1", "once_per_key": True}
    read: Mapping[str, ViewInputConfigParams] = {"c": {"stream": stream}}
    made = view.create(SQL, read, into=[{"stream": changes.name}, alert])
    again = view.create(SQL, read, into=[{"stream": changes.name}, alert])

    for _ in range(2):
        place = millstream.stream(stream).put({"page": "home"})
        view.read(after=f"{place.shard}:{place.offset}", wait_seconds=10)
    [message] = queue.receive(wait_seconds=10)
    message.ack()
    wait_until(lambda: [sink.pending for sink in view.details().sinks] == [0, 0])

    assert (made.created, again.created) == (True, False)
    assert [sink.when for sink in made.into] == ["", "clicks > 1"]
    body = message.json()
    assert (body["change"], body["row"]) == ("insert", {"page": "home", "clicks": 2})
    assert body["before"] == {"page": "home", "clicks": 1}
    assert [sink.sent for sink in view.details().sinks] == [2, 1]
    assert changes.latest("home").to_dict()["data"]["change"] == "update"


async def test_asynchronous_client_reads_rows(service_url: str, stream: str):
    async with AsyncMillstream(service_url) as client:
        view = client.view(stream)
        await view.create(SQL, {"c": {"stream": stream}})
        place = await client.stream(stream).put({"page": "a"})
        after = f"{place.shard}:{place.offset}"
        rows = [row async for row in view.rows(after=after, wait_seconds=10)]
        names = [one.name async for one in client.views(prefix=stream)]

    assert rows == [{"page": "a", "clicks": 1}]
    assert names == [stream]


def test_in_memory_service_has_no_views(name: str):
    with MemoryService().client() as client, pytest.raises(Refused) as refused:
        client.view(name).details()

    assert refused.value.status == 501


def test_view_is_used_from_typescript(service_url: str, stream: str):
    compile_typescript(SDK)

    script = ["node", "--input-type=module", "--eval", IN_TYPESCRIPT, service_url, stream]
    assert json.loads(run(SDK, *script, seconds_max=60)) == {
        "created": [True, False],
        "key": ["page"],
        "rows": [{"page": "home", "clicks": 1}],
        "sources": [{"page": "home"}],
        "same": [1, 1, 1],
        "listed": [stream],
        "paused": True,
        "state": "paused",
        "batches": 1,
        "gone": True,
        "former": True,
        "compared": [True, 0, True, stream],
        "change": {
            "change": "insert",
            "row": {"page": "home", "clicks": 1},
            "before": None,
            "view": stream,
            "revision": 1,
            "batch": 1,
        },
    }
