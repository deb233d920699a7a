"""Unit tests of the activity of shards, and of the watermark that follows the clock."""

from msgspec.structs import replace

from spark_worker.views.inputs.activity import ShardActivity
from storage.domain.log.record_batch import Record
from storage.domain.streams.lineage import FULLY_READ
from storage.domain.streams.stream import LogRecord, ShardRead, StreamRead
from storage.domain.views.plan import ViewPlan
from storage.domain.views.progress import RevisionState, ViewProgress, ViewRevision
from storage.domain.views.view import ViewInput, ViewQuery

REVISION = ViewRevision(
    revision_id="r",
    view_id="v",
    number=1,
    query=ViewQuery(
        sql="select 1",
        inputs={"c": ViewInput(stream="clicks", watermark_ms=10_000, idle_ms=60_000)},
    ),
    plan=ViewPlan(columns=(), key=()),
    stream_id="s",
    state=RevisionState.ACTIVE,
    progress=ViewProgress(
        positions={0: 5, 1: 5}, marks={0: 100_000, 1: 200_000}, watermark_ms=90_000, batch=1
    ),
)


class Clock:
    seconds = 1_000.0

    def __call__(self) -> float:
        return self.seconds


def read(*shards: int) -> StreamRead:
    records = [LogRecord(5, 0, Record(b"{}"))]
    return StreamRead([ShardRead(each, records, 6, 0, 6, 0) for each in shards], {}, "s")


def test_shard_is_idle_after_idle_time_without_records():
    clock = Clock()
    activity = ShardActivity(clock)
    clock.seconds += 50
    activity.note(REVISION, [read(1)])
    assert activity.idle(REVISION) == {"c": []}

    clock.seconds += 11

    assert activity.idle(REVISION) == {"c": [0]}
    clock.seconds += 50
    assert activity.idle(REVISION) == {"c": [0, 1]}


def test_read_without_records_is_no_activity():
    clock = Clock()
    activity = ShardActivity(clock)
    clock.seconds += 61

    activity.note(REVISION, [StreamRead([ShardRead(0, [], 6, 0, 6, 0)], {}, "s")])

    assert activity.idle(REVISION) == {"c": [0, 1]}


def test_revision_that_is_built_has_times_of_its_own():
    clock = Clock()
    activity = ShardActivity(clock)
    building = replace(REVISION, revision_id="b", state=RevisionState.BUILDING)
    clock.seconds += 61

    activity.note(building, [read(0)])

    assert activity.idle(building) == {"c": [1]}
    assert activity.idle(REVISION) == {"c": [0, 1]}
    activity.keep(["r"])
    assert activity.idle(building) == {"c": [0, 1]}


def test_watermark_stays_while_one_shard_is_active():
    clock = Clock()
    activity = ShardActivity(clock)
    clock.seconds += 61
    activity.note(REVISION, [read(0)])

    assert activity.watermark(REVISION) == 90_000


def test_watermark_follows_clock_when_all_shards_are_idle():
    clock = Clock()
    activity = ShardActivity(clock)
    clock.seconds += 20
    activity.note(REVISION, [read(1)])
    clock.seconds += 61

    assert activity.watermark(REVISION) == 200_000 - 10_000 + 61_000


def test_ended_shard_does_not_hold_watermark_back():
    clock = Clock()
    activity = ShardActivity(clock)
    progress = replace(REVISION.progress, positions={0: FULLY_READ, 1: 5})
    clock.seconds += 30
    activity.note(REVISION, [read(0)])
    clock.seconds += 31

    assert activity.watermark(replace(REVISION, progress=progress)) == 200_000 - 10_000 + 31_000
