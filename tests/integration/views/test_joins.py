"""Views of two streams: definitions, progress in both, and reads that wait for either."""

import asyncio

import pytest
from msgspec.structs import replace

from storage.bootstrap import Storage
from storage.domain.errors import ValidationFailed, ViewBehind
from storage.domain.names import StreamName, ViewName
from storage.domain.streams.stream import StreamSpec
from storage.domain.views.progress import StreamProgress, ViewBatch, ViewProgress
from storage.domain.views.rows import IncludedRecord, RowQuery
from storage.domain.views.sink import ViewSink
from storage.domain.views.view import ViewInput, ViewQuery, ViewSpec
from tests.integration.views.conftest import NAME, STREAM, Worker, row

PAYMENTS = StreamName("payments")
CHANGES = StreamName("changes")


def spec_of(joined: StreamName = PAYMENTS, **options: object) -> ViewSpec:
    inputs = {"c": ViewInput(stream=STREAM.name), "p": ViewInput(stream=joined.name)}
    return replace(ViewSpec(query=ViewQuery(sql="select 1", inputs=inputs)), **options)


@pytest.fixture
async def payments(engines: Storage, worker: Worker) -> Worker:
    """A worker that has claimed the scan of a view that joins clicks with payments."""
    await engines.catalog.put_stream(PAYMENTS, StreamSpec())
    await worker.put(spec_of(history_ms=3_600_000))
    await worker.start()
    return worker


async def commit(engines: Storage, worker: Worker, clicks: int, payments: int) -> ViewProgress:
    """Commit a batch that reads up to these positions of shard 0 of each stream."""
    view = await engines.views.get(NAME)
    revision = (await engines.views.status(NAME)).active
    before = revision.progress
    streams = [
        replace(
            followed.progress, positions={0: position}, marks={0: 7}, buffered_from={0: position}
        )
        for followed, position in zip(revision.streams, (clicks, payments), strict=True)
    ]
    after = replace(before, batch=before.batch + 1).with_streams(revision.query, streams)
    batch = ViewBatch(before=before, after=after, changes=(row("a", 1, before.batch),))
    return await engines.view_scans.commit(worker.claim, view, revision.revision_id, batch)


async def test_progress_has_both_streams(engines, payments):
    stream = await engines.catalog.stream(PAYMENTS)
    started = (await engines.views.status(NAME)).active
    assert [one.progress.stream_id for one in started.streams] == [
        started.stream_id,
        stream.stream_id,
    ]

    await commit(engines, payments, 3, 5)

    active = (await engines.views.status(NAME)).active
    assert active.progress.positions == {0: 3}
    assert active.progress.joined == {
        "p": StreamProgress(
            positions={0: 5}, marks={0: 7}, buffered_from={0: 5}, stream_id=stream.stream_id
        )
    }
    [batch] = await engines.views.batches(NAME, 1)
    assert (batch.after, batch.joined) == ({0: 3}, {"p": {0: 5}})


async def test_rows_of_the_past_have_the_positions_in_both_streams(engines, payments):
    await commit(engines, payments, 3, 5)
    await commit(engines, payments, 4, 9)

    page = await engines.view_rows.read(NAME, RowQuery(at_batch=1))

    positions = [one.progress.positions for one in page.revision.streams]
    assert positions == [{0: 3}, {0: 5}]


async def test_read_waits_for_a_record_of_either_stream(engines, payments):
    async def read(offset: int, wait_ms: int = 0, relation: str = "p") -> ViewProgress:
        query = RowQuery(includes=IncludedRecord(0, offset, relation), wait_ms=wait_ms)
        page = await engines.view_rows.read(NAME, query)
        progress: ViewProgress = page.revision.progress
        return progress

    await commit(engines, payments, 3, 5)
    assert await read(4) == await read(2, relation="c")
    for offset, relation in ((5, "p"), (3, "c")):
        with pytest.raises(ViewBehind, match=f"offset {offset}"):
            await read(offset, relation=relation)
    waiting = asyncio.create_task(read(5, 20_000))
    await asyncio.sleep(0)

    await commit(engines, payments, 3, 6)

    async with asyncio.timeout(4):  # the announcement arrives before the fallback
        assert (await waiting).joined["p"].positions == {0: 6}


@pytest.mark.parametrize("relation", ["", "other"])
async def test_read_names_the_stream_of_its_record(engines, payments, relation):
    with pytest.raises(ValidationFailed) as refused:
        await engines.view_rows.read(NAME, RowQuery(includes=IncludedRecord(0, 0, relation)))

    assert [fault.pointer for fault in refused.value.faults] == ["/after"]
    assert "'c:' or 'p:'" in str(refused.value.faults[0])


async def test_put_requires_both_streams(engines, worker):
    with pytest.raises(ValidationFailed) as refused:
        await engines.views.put(NAME, spec_of())

    assert [fault.pointer for fault in refused.value.faults] == ["/from/p/stream"]


async def test_sink_into_either_stream_is_refused(engines, payments):
    await engines.catalog.put_stream(CHANGES, StreamSpec())
    own = ViewSink(stream=PAYMENTS.name)
    with pytest.raises(ValidationFailed) as refused:
        await engines.views.put(NAME, spec_of(into=(own,)))
    assert refused.value.faults[0].pointer == "/into/0/stream"
    back = ViewSpec(
        query=ViewQuery(sql="select 1", inputs={"c": ViewInput(stream=CHANGES.name)}),
        into=(own,),
    )
    await asyncio.gather(engines.views.put(ViewName("back"), back), payments.plans())

    with pytest.raises(ValidationFailed) as refused:  # through the other view
        await engines.views.put(NAME, spec_of(into=(ViewSink(stream=CHANGES.name),)))

    assert refused.value.faults[0].pointer == "/into"


async def test_recreated_second_stream_begins_a_revision(engines, payments):
    await engines.views.put(NAME, spec_of())
    assert (await engines.views.status(NAME)).building is None
    await engines.catalog.delete_stream(PAYMENTS)
    await engines.catalog.put_stream(PAYMENTS, StreamSpec())

    await engines.views.put(NAME, spec_of())

    status = await engines.views.status(NAME)
    assert status.building is not None
    assert status.building.stream_id == status.active.stream_id
    own, former = (one.streams[1].progress.stream_id for one in (status.building, status.active))
    assert own != former


@pytest.mark.parametrize(
    ("inputs", "pointer"),
    [
        ({"c": ViewInput(stream=STREAM.name)}, "/from"),
        (
            {"c": ViewInput(stream=PAYMENTS.name), "p": ViewInput(stream=STREAM.name)},
            "/from/c/stream",
        ),
    ],
)
async def test_back_test_is_of_the_same_streams(engines, payments, inputs, pointer):
    query = ViewQuery(sql="select 1", inputs=inputs)
    with pytest.raises(ValidationFailed) as refused:
        await engines.view_back_tests.submit(NAME, ViewSpec(query=query))

    assert [fault.pointer for fault in refused.value.faults] == [pointer]
