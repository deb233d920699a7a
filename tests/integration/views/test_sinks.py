"""Sinks of views: what batches owe them, and its delivery, once and in order."""

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.errors import ProducerFenced, StorageUnavailable, ValidationFailed
from storage.domain.log.record_batch import Record
from storage.domain.names import QueueName, StreamName, ViewName
from storage.domain.queues.policies import Overflow
from storage.domain.queues.queue import QueueSpec, QueueType
from storage.domain.streams.stream import EventTimes, ReadFrom, StreamSpec
from storage.domain.views.progress import RowChange
from storage.domain.views.rows import RowQuery
from storage.domain.views.sink import Emit, SinkState, ViewSink
from storage.domain.views.view import ViewInput, ViewQuery, ViewSpec
from storage.views.scans import ViewTooLarge
from storage.views.sinks import ViewSinks
from tests.integration.views.conftest import MINUTE_MS, NAME, STREAM, row, spec_of

pytestmark = pytest.mark.one_store

CHANGES, TOTALS = StreamName("changes"), StreamName("totals")
ALERTS = QueueName("alerts")
TO_CHANGES = ViewSink(stream=CHANGES.name)
TO_TOTALS = ViewSink(stream=TOTALS.name, emit=Emit.FINAL)
TO_ALERTS = ViewSink(queue=ALERTS.name, when="clicks > 10", once_per_key=True)


@pytest.fixture
async def put(worker, engines):
    """Put the view with sinks, whose targets exist, and claim its scan."""
    await engines.catalog.put_stream(CHANGES, StreamSpec())
    await engines.catalog.put_stream(TOTALS, StreamSpec())
    await engines.catalog.put_queue(ALERTS, QueueSpec())

    async def put(*into: ViewSink, **options: Any) -> Any:
        view = (await worker.put(spec_of(into=into, **options))).definition
        await worker.start()
        return view

    return put


async def read(engines: Storage, stream: StreamName) -> list[Any]:
    """Return the messages of a stream."""
    page = await engines.record_reader.read_shard(stream, 0, ReadFrom(offset=0))
    return [msgspec.json.decode(one.record.data) for one in page.records]


async def receive(engines: Storage, queue: QueueName = ALERTS) -> list[Any]:
    received = await engines.queues.receive(queue, messages_max=10, wait_ms=0)
    return [msgspec.json.decode(one.body) for one in received]


def brief(messages: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return the change of each message, and the clicks before and after it."""
    return [
        (
            one["change"],
            one["before"] and one["before"]["clicks"],
            one["row"] and one["row"]["clicks"],
        )
        for one in messages
    ]


async def test_changes_of_a_batch_are_appended_with_its_number(engines, worker, put):
    view = await put(TO_CHANGES)
    await worker.commit(row("home", 1, 0, clicks=3))
    await worker.commit(row("home", 1, 0, clicks=4), row("cart", 1, 0))
    await worker.commit(row("cart", 1, 0))

    assert await engines.view_sinks.deliver([view]) == set()

    messages = await read(engines, CHANGES)
    assert brief(messages) == [("insert", None, 3), ("update", 3, 4), ("insert", None, 1)]
    assert messages[0] == {
        "change": "insert",
        "row": {"page": "home", "n": 1, "m": 0, "clicks": 3},
        "before": None,
        "view": NAME.name,
        "revision": 1,
        "batch": 1,
    }
    page = await engines.record_reader.read_shard(CHANGES, 0, ReadFrom(offset=0))
    assert [one.record.key for one in page.records] == ['["home",null]'] * 2 + ['["cart",null]']
    state = SinkState(sink="stream:changes", pending=0, sent=3)
    assert list((await engines.views.status(NAME)).sinks) == [state]


async def test_alert_is_sent_once_for_each_key(engines, worker, put):
    view = await put(TO_ALERTS)
    for clicks in (10, 11, 12, 9, 20):
        await worker.commit(row("home", 1, 0, clicks=clicks))
    await engines.view_sinks.deliver([view])

    assert brief(await receive(engines)) == [("insert", 10, 11), ("insert", 9, 20)]


async def test_row_that_having_excludes_is_deleted_for_sinks(engines, worker, put):
    view = await put(TO_CHANGES)
    shown = row("home", 1, 0)
    await worker.commit(replace(shown, row=None))
    await worker.commit(shown)
    await worker.commit(replace(shown, row=None))
    await engines.view_sinks.deliver([view])

    assert brief(await read(engines, CHANGES)) == [("insert", None, 1), ("delete", 1, None)]


async def test_windows_are_final_once_and_corrected(engines, worker, put, monkeypatch):
    monkeypatch.setattr(limits, "VIEW_FINAL_ROWS", 2)
    view = await put(TO_TOTALS)
    pages = ("a", "b", "c")
    await worker.commit(*(row(page, 1, 0) for page in pages), row("later", 1, 5), watermark_ms=1)
    await worker.commit(row("a", 1, 0, clicks=2), watermark_ms=MINUTE_MS)
    await worker.commit(watermark_ms=MINUTE_MS)
    await worker.commit(row("a", 1, 0, clicks=3), row("new", 1, 0), watermark_ms=2 * MINUTE_MS)
    await engines.view_sinks.deliver([view])

    found = await read(engines, TOTALS)
    assert [(one["change"], one["row"]["page"], one["row"]["clicks"]) for one in found] == [
        ("final", "a", 2),
        ("final", "b", 1),
        ("final", "c", 1),
        ("correction", "a", 3),
        ("correction", "new", 1),
    ]


async def test_expired_rows_are_deleted_for_sinks_after_they_were_final(
    engines, worker, put, monkeypatch
):
    monkeypatch.setattr(limits, "VIEW_FINAL_ROWS", 1)
    view = await put(TO_CHANGES, TO_TOTALS, keep_ms=1_000)
    await worker.commit(row("a", 1, 0), row("b", 1, 1), watermark_ms=1)
    for _ in range(4):
        await worker.commit(watermark_ms=10 * MINUTE_MS)
    await engines.view_sinks.deliver([view])

    changes, totals = await read(engines, CHANGES), await read(engines, TOTALS)
    assert [one["change"] for one in changes] == ["insert", "insert", "delete", "delete"]
    assert [one["row"]["page"] for one in totals] == ["a", "b"]
    assert (await engines.views.status(NAME)).active.progress.rows == 0


async def test_message_that_is_sent_again_is_taken_once(engines, worker, put, monkeypatch):
    """The worker died between the append and the end of its message."""
    view = await put(TO_CHANGES, TO_ALERTS)
    await worker.commit(row("home", 1, 0, clicks=11), row("cart", 1, 0, clicks=12))
    rows = engines.view_sinks._rows
    settle = rows.settle

    async def fail(*_: Any) -> None:
        raise StorageUnavailable("away")

    monkeypatch.setattr(rows, "settle", fail)
    await engines.view_sinks.deliver([view])
    monkeypatch.setattr(rows, "settle", settle)
    other = another_worker(engines)
    await worker.commit(row("home", 1, 0, clicks=5))
    await other.deliver([view])

    assert brief(await read(engines, CHANGES)) == [
        ("insert", None, 11),
        ("insert", None, 12),
        ("update", 11, 5),
    ]
    assert len(await receive(engines)) == 2
    states = (await engines.views.status(NAME)).sinks
    assert [(one.pending, one.sent, one.failure) for one in states] == [(0, 3, ""), (0, 2, "")]


def another_worker(engines: Storage) -> ViewSinks:
    """Return the sender of another worker, which has not failed yet."""
    sinks = engines.view_sinks
    return ViewSinks(
        rows=sinks._rows, catalog=sinks._catalog, queues=sinks._queues, streams=sinks._streams
    )


async def test_sink_that_refuses_holds_back_its_view_alone(engines, worker, put, monkeypatch):
    monkeypatch.setattr(limits, "VIEW_OUTBOX_MAX", 2)
    full = QueueSpec(messages_max=1, overflow=Overflow.REJECT)
    await engines.catalog.put_queue(ALERTS, full)
    view = await put(TO_CHANGES, ViewSink(queue=ALERTS.name))
    await worker.commit(row("a", 1, 0))
    await worker.commit(row("b", 1, 0), row("c", 1, 0))

    sent: list[tuple[ViewName, int]] = []
    behind = await engines.view_sinks.deliver([view], lambda *counted: sent.append(counted))
    waiting = (await engines.views.status(NAME)).sinks
    assert len(await read(engines, CHANGES)) == 3
    await engines.catalog.put_queue(ALERTS, QueueSpec())
    again = await another_worker(engines).deliver([view])

    assert (behind, again) == ({view.view_id}, set())
    assert sorted(sent) == [(NAME, 1), (NAME, 3)]  # the full queue had a place
    assert [one.pending for one in waiting] == [0, 2]
    assert waiting[1].failure
    assert [one["row"]["page"] for one in await receive(engines)] == ["a", "b", "c"]


async def test_crash_of_a_sink_is_a_failure_of_that_sink_alone(engines, worker, put, monkeypatch):
    view = await put(TO_CHANGES, TO_ALERTS)
    await worker.commit(row("home", 1, 0, clicks=11))
    monkeypatch.setattr(engines.queues, "send_idempotent_batch", None)

    await engines.view_sinks.deliver([view])

    states = (await engines.views.status(NAME)).sinks
    assert [(one.pending, one.failure) for one in states] == [
        (0, ""),
        (1, "Internal error; the log has it."),
    ]


async def test_failed_sink_is_tried_again_after_a_while(engines, worker, put):
    view = await put(TO_ALERTS)
    await engines.catalog.delete_queue(ALERTS)
    await worker.commit(row("home", 1, 0, clicks=11))
    await engines.view_sinks.deliver([view])
    await engines.catalog.put_queue(ALERTS, QueueSpec())

    await engines.view_sinks.deliver([view])

    assert await receive(engines) == []
    [state] = (await engines.views.status(NAME)).sinks
    assert (state.pending, "alerts" in state.failure) == (1, True)


async def test_sinks_that_fail_or_are_behind_are_named(engines, worker, put, monkeypatch):
    monkeypatch.setattr(limits, "VIEW_SINK_ALERT_PENDING", 2)
    view = await put(TO_CHANGES, ViewSink(queue=ALERTS.name))
    await worker.commit(row("home", 1, 0))
    before = await engines.view_sinks.behind("default")
    await engines.catalog.delete_queue(ALERTS)
    await worker.commit(row("cart", 1, 0))
    pending = await engines.view_sinks.behind("default")
    await engines.view_sinks.deliver([view])
    failing = await engines.view_sinks.behind("default")
    await engines.views.pause(NAME, paused=True)

    assert before == []
    assert [one.state.pending for one in pending] == [2, 2]
    [(name, state)] = failing
    assert (name, state.sink, state.pending) == (NAME, "queue:alerts", 2)
    assert "does not exist" in state.failure
    assert await engines.view_sinks.behind("default") == []


async def test_fifo_queue_has_the_key_as_group(engines, worker, put):
    await engines.catalog.delete_queue(ALERTS)
    await engines.catalog.put_queue(ALERTS, QueueSpec(type=QueueType.FIFO))
    view = await put(ViewSink(queue=ALERTS.name))
    await worker.commit(row("home", 1, 0), row("p" * 300, 1, 0))
    await engines.view_sinks.deliver([view])

    received = await engines.queues.receive(ALERTS, messages_max=10, wait_ms=0)
    groups = {one.group for one in received}
    assert '["home",null]' in groups
    assert len(groups) == 2


async def test_call_to_a_sink_has_a_bounded_size(engines, worker, put, monkeypatch):
    view = await put(TO_CHANGES)
    await worker.commit(*(row(page, 1, 0) for page in "abc"))
    size = len(row("a", 1, 0).row or "")
    pending = engines.view_sinks._rows.pending
    place = view.view_id, TO_CHANGES.label

    sizes = [len(await pending(*place, 500, most)) for most in (1, size, size + 1, 2 * size + 1)]
    monkeypatch.setattr(limits, "VIEW_SINK_BYTES", 1)
    await engines.view_sinks.deliver([view])

    assert sizes == [1, 1, 2, 3]
    assert len(await read(engines, CHANGES)) == 3


async def test_views_that_would_feed_each_other_are_refused_at_once(engines, worker):
    """Two puts at the same time both found no cycle."""
    await engines.catalog.put_stream(CHANGES, StreamSpec())
    there, back = (
        ViewSpec(
            query=ViewQuery(sql="select 1", inputs={"c": ViewInput(stream=source.name)}),
            into=(ViewSink(stream=target.name),),
        )
        for source, target in ((STREAM, CHANGES), (CHANGES, STREAM))
    )

    async def plan_both() -> None:
        await worker.plans()
        await worker.plans()

    results = await asyncio.gather(
        engines.views.put(NAME, there),
        engines.views.put(ViewName("back"), back),
        plan_both(),
        return_exceptions=True,
    )

    assert sorted(isinstance(one, ValidationFailed) for one in results[:2]) == [False, True]


async def test_batch_that_is_refused_enqueues_nothing(engines, worker, put):
    view = await put(TO_CHANGES, rows_max=1)
    with pytest.raises(ViewTooLarge):
        await worker.commit(row("a", 1, 0), row("b", 1, 0))

    await engines.view_sinks.deliver([view])

    assert await read(engines, CHANGES) == []


async def test_sinks_get_the_difference_when_a_revision_replaces_another(engines, worker, put):
    """Whoever applies the changes has the rows that a read returns, also after a switch."""
    view = await put(TO_CHANGES, TO_ALERTS)
    await worker.commit(row("same", 1, 0), row("gone", 1, 0), row("home", 1, 0, clicks=5))
    view = (await worker.put(spec_of("select 2", into=view.spec.into))).definition
    await worker.commit(row("same", 1, 0), row("home", 1, 0, clicks=50), row("new", 1, 0))
    await engines.view_sinks.deliver([view])
    before = await read(engines, CHANGES)

    building = (await engines.views.status(NAME)).building
    await engines.view_scans.promote(worker.claim, view, building.revision_id)
    await worker.commit(row("new", 1, 0, clicks=2))
    await engines.view_sinks.deliver([view])

    with pytest.raises(ProducerFenced):  # the former revision has sent everything
        await engines.streams.append_idempotent(
            CHANGES, f"view {view.view_id} 1", [99], [Record(b"late")]
        )
    after = (await read(engines, CHANGES))[len(before) :]
    assert len(before) == 3
    assert {
        (one["revision"], one["change"], (one["row"] or one["before"])["page"]) for one in after
    } == {
        (2, "delete", "gone"),
        (2, "update", "home"),
        (2, "insert", "new"),
        (2, "update", "new"),
    }
    assert brief(await receive(engines)) == [("insert", 5, 50)]


async def test_final_windows_of_a_former_revision_are_not_sent_again(engines, worker, put):
    view = await put(TO_TOTALS)
    await worker.commit(row("a", 1, 0), row("a", 1, 1), watermark_ms=MINUTE_MS)
    view = (await worker.put(spec_of("select 2", into=view.spec.into))).definition
    await worker.commit(
        row("a", 1, 0, clicks=7), row("a", 1, 1, clicks=8), watermark_ms=2 * MINUTE_MS
    )
    building = (await engines.views.status(NAME)).building
    await engines.view_scans.promote(worker.claim, view, building.revision_id)

    await worker.commit(watermark_ms=2 * MINUTE_MS)
    await engines.view_sinks.deliver([view])

    assert [(one["change"], one["row"]["clicks"]) for one in await read(engines, TOTALS)] == [
        ("final", 1),
        ("final", 8),
    ]


async def test_added_sink_gets_later_changes_and_removed_one_none(engines, worker, put):
    view = await put(TO_CHANGES)
    await worker.commit(row("a", 1, 0), watermark_ms=5 * MINUTE_MS)
    both = (TO_TOTALS, TO_ALERTS)
    changed = (await engines.views.put(NAME, replace(view.spec, into=both))).definition
    await worker.commit(row("b", 1, 9, clicks=11), watermark_ms=10 * MINUTE_MS)
    await engines.view_sinks.deliver([changed])

    assert await read(engines, CHANGES) == []
    assert [one["row"]["page"] for one in await read(engines, TOTALS)] == ["b"]
    assert len(await receive(engines)) == 1
    restored = (await engines.views.put(NAME, view.spec)).definition
    await engines.view_sinks.deliver([restored])
    assert await read(engines, CHANGES) == []


async def test_batch_of_a_former_definition_enqueues_nothing_for_removed_sinks(
    engines, worker, put
):
    view = await put(TO_CHANGES)
    await engines.views.put(NAME, replace(view.spec, into=()))

    await worker.commit(row("a", 1, 0), view=view)

    restored = (await engines.views.put(NAME, view.spec)).definition
    await engines.view_sinks.deliver([restored])
    assert await read(engines, CHANGES) == []


@pytest.mark.parametrize(
    ("sink", "pointer", "code"),
    [
        (ViewSink(queue="missing"), "/into/0/queue", "not_found"),
        (ViewSink(stream="missing"), "/into/0/stream", "not_found"),
        (ViewSink(queue="alerts", when="visits > 1"), "/into/0/when", "not_found"),
        (ViewSink(stream="timed"), "/into/0/stream", "conflict"),
        (ViewSink(stream="viewed"), "/into/0/stream", "not_allowed"),
        (ViewSink(stream="behind"), "/into", "conflict"),
    ],
)
async def test_sinks_that_cannot_be_are_refused(engines, worker, sink, pointer, code):
    await engines.catalog.put_queue(ALERTS, QueueSpec())
    await engines.catalog.put_queue(QueueName("viewed"), QueueSpec(stream_view=True))
    timed = StreamSpec(event_times=EventTimes.CLIENT_REQUIRE)
    await engines.catalog.put_stream(StreamName("timed"), timed)
    await engines.catalog.put_stream(StreamName("behind"), StreamSpec())
    back = ViewQuery(sql="select 9", inputs={"c": ViewInput(stream="behind")})
    await put_other(engines, worker, ViewSpec(query=back, into=(ViewSink(stream=STREAM.name),)))

    refused = await refusal(worker, sink)

    assert [(fault.pointer, fault.code) for fault in refused.faults] == [(pointer, code)]
    assert await engines.views.list_views("default", prefix=NAME.name) == []


async def put_other(engines: Storage, worker: Any, spec: ViewSpec) -> None:
    await asyncio.gather(engines.views.put(ViewName("other"), spec), worker.plans())


async def refusal(worker: Any, sink: ViewSink) -> ValidationFailed:
    with pytest.raises(ValidationFailed) as refused:
        await worker.put(spec_of(into=(sink,)))
    return refused.value


@pytest.mark.parametrize("seed", range(10))
async def test_changes_that_are_applied_are_the_rows(engines, worker, put, monkeypatch, seed):
    """V11: random batches, revisions, rollbacks, expiries, failing sinks and workers that die."""
    monkeypatch.setattr(limits, "VIEW_FINAL_ROWS", 3)
    random_ = random.Random(seed)
    kept = {"keep_ms": 3 * MINUTE_MS, "keep_former_ms": limits.DAY_MS}
    view = await put(TO_CHANGES, TO_TOTALS, **kept)
    watermark_ms, finals_due = 1, dict[tuple[str, int], int]()
    settle = engines.view_sinks._rows.settle

    async def settle_or_die(*arguments: Any) -> None:
        if random_.random() < 0.3:
            raise StorageUnavailable("away")
        await settle(*arguments)

    monkeypatch.setattr(engines.view_sinks._rows, "settle", settle_or_die)
    for nth in range(30):
        if random_.random() < 0.5:
            watermark_ms += random_.randrange(MINUTE_MS)
        minute = watermark_ms // MINUTE_MS
        changes: dict[bytes, RowChange] = {}
        for _ in range(random_.randrange(5)):
            one = row(random_.choice("abc"), 1, random_.randrange(minute, minute + 4), nth)
            changes[one.key] = one if random_.random() < 0.8 else replace(one, row=None)
        await worker.commit(*changes.values(), watermark_ms=watermark_ms)
        if random_.random() < 0.5:
            await another_worker(engines).deliver([view])
        if random_.random() < 0.1:
            view = await switch(engines, worker, view, f"select {nth + 2}")
        elif random_.random() < 0.1 and (await engines.views.status(NAME)).former:
            view = await engines.views.roll_back(NAME)
            await promote(engines, worker, view)
    monkeypatch.setattr(engines.view_sinks._rows, "settle", settle)
    for _ in range(10):
        await worker.commit(watermark_ms=watermark_ms)
    await another_worker(engines).deliver([view])

    rows: dict[tuple[str, int], Any] = {}
    for message in await read(engines, CHANGES):
        shown = message["row"] or message["before"]
        key = shown["page"], shown["m"]
        assert rows.get(key) == message["before"]
        rows[key] = message["row"]
    visible = [msgspec.json.decode(one) for one in (await all_rows(engines))]
    assert sorted(filter(None, rows.values()), key=str) == sorted(visible, key=str)
    for message in await read(engines, TOTALS):
        key = message["row"]["page"], message["row"]["m"]
        finals_due[key] = finals_due.get(key, 0) + (message["change"] == "final")
    assert set(finals_due.values()) <= {0, 1}


async def switch(engines: Storage, worker: Any, view: Any, sql: str) -> Any:
    """Replace the revision of a view by one with other rows, and return the view."""
    spec = replace(view.spec, query=replace(view.spec.query, sql=sql))
    changed = (await worker.put(spec)).definition
    before = (await engines.views.status(NAME)).active.progress
    await worker.commit(row("a", 1, 99, 5), row("d", 1, 99), watermark_ms=before.watermark_ms)
    await promote(engines, worker, changed)
    return changed


async def promote(engines: Storage, worker: Any, view: Any) -> None:
    """Let the revision that is built replace the active one."""
    building = (await engines.views.status(NAME)).building
    assert building is not None
    await engines.view_scans.promote(worker.claim, view, building.revision_id)


async def all_rows(engines: Storage) -> list[bytes]:
    page = await engines.view_rows.read(NAME, RowQuery(limit=1_000))
    return [*page.rows]
