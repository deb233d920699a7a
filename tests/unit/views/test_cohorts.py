"""Unit tests of cohorts: how far revisions read, and when one replaces another."""

from collections import Counter
from collections.abc import Mapping
from random import Random

import pytest
from msgspec.structs import replace

from spark_worker.views.cohorts import Cohorts
from spark_worker.views.inputs.reads import capped, has_news
from storage.domain import limits
from storage.domain.log.record_batch import Record
from storage.domain.names import StreamName, ViewName
from storage.domain.streams.lineage import FULLY_READ, positions_after, read_frontier
from storage.domain.streams.stream import (
    Gap,
    GapReason,
    LogRecord,
    Shard,
    ShardRead,
    Stream,
    StreamRead,
    StreamSpec,
)
from storage.domain.views.plan import ViewPlan
from storage.domain.views.progress import RevisionState, ViewProgress, ViewRevision
from storage.domain.views.view import View, ViewInput, ViewQuery, ViewSpec
from storage.views.scans import ScanRevision

QUERY = ViewQuery(sql="select 1", inputs={"c": ViewInput(stream="clicks")})
VIEW = View(
    view_id="v",
    name=ViewName("clicks"),
    spec=ViewSpec(query=QUERY),
    version=1,
    created_at_ms=0,
    changed_at_ms=0,
)


def entry(state: RevisionState, positions: Mapping[int, int], **fields) -> ScanRevision:
    revision = ViewRevision(
        revision_id=state.value,
        view_id="v",
        number=1,
        query=QUERY,
        plan=ViewPlan(columns=(), key=()),
        stream_id="s",
        state=state,
        progress=ViewProgress(positions=dict(positions), batch=1),
    )
    return ScanRevision(VIEW, replace(revision, **fields))


OUTER_JOIN = ViewPlan(columns=(), key=(), join_waits_ms={"c": 1_000, "d": 0}, join_preserved="c")


def at_watermark(state: RevisionState, watermark_ms: int, plan: ViewPlan, **fields) -> ScanRevision:
    progress = ViewProgress(positions={0: 5}, batch=1, watermark_ms=watermark_ms)
    return entry(state, {}, progress=progress, plan=plan, **fields)


@pytest.mark.parametrize(
    ("plan", "watermark_ms", "behind"),
    [
        (OUTER_JOIN, 7_000, 9_000),
        (OUTER_JOIN, 9_000, None),
        (replace(OUTER_JOIN, join_waits_ms={"c": 1_500, "d": 0}), 7_000, 8_500),
        (replace(OUTER_JOIN, join_preserved=""), 7_000, None),
    ],
)
def test_rebuilt_outer_join_reaches_the_watermark_of_the_active_one(plan, watermark_ms, behind):
    active = at_watermark(RevisionState.ACTIVE, 9_000, OUTER_JOIN)
    building = at_watermark(RevisionState.BUILDING, watermark_ms, plan)
    cohorts = Cohorts([active, building], [])

    assert cohorts.watermark_behind(building) == behind
    assert cohorts.watermark_behind(active) is None
    assert cohorts.caught_up() == ([] if behind else [building])


class Log:
    """A stream of shards that are split and merged, read as `RecordReader.read` does."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._records: list[int] = []
        self._shards: list[Shard] = []
        self._open(())
        for _ in range(random.randrange(5)):
            self.reshard()

    def _open(self, parents: tuple[int, ...]) -> None:
        index = len(self._shards)
        self._shards.append(Shard(index, f"l{index}", index, index, 0, None, parents))
        self._records.append(self._random.randrange(30))

    def append(self) -> None:
        shard = self._random.choice([one for one in self._shards if one.is_open])
        self._records[shard.index] += self._random.randrange(10)

    def reshard(self) -> None:
        """Split a shard, or merge two."""
        parents = [one for one in self._shards if one.is_open]
        self._random.shuffle(parents)
        closed = parents[: self._random.choice((1, 1, 2))]
        for shard in closed:
            self._shards[shard.index] = replace(shard, closed_at_ms=1)
        for _ in range(2 if len(closed) == 1 else 1):
            self._open(tuple(shard.index for shard in closed))

    @property
    def stream(self) -> Stream:
        return Stream(
            name=StreamName("clicks"),
            stream_id="s",
            spec=StreamSpec(),
            shards=tuple(self._shards),
            version=1,
            created_at_ms=0,
            changed_at_ms=0,
        )

    def read(self, positions: Mapping[int, int], most: int) -> StreamRead:
        while True:
            frontier = read_frontier(self.stream, positions)
            reads = [
                self._read(shard, position or 0, most)
                for shard, position in frontier.items()
                if position != FULLY_READ
            ]
            after = positions_after(frontier, reads)
            has_news = any(read.records for read in reads)
            if has_news or not any(read.ended for read in reads):
                return StreamRead(reads, after, "s")
            if read_frontier(self.stream, after) == frontier:
                return StreamRead(reads, after, "s")
            positions = after

    def _read(self, shard: int, first: int, most: int) -> ShardRead:
        end = min(first + most, self._records[shard])
        records = [LogRecord(offset, 0, Record(b"x")) for offset in range(first, end)]
        ended = not self._shards[shard].is_open and end == self._records[shard]
        return ShardRead(shard, records, end, 0, self._records[shard], 0, ended=ended)

    def places(self) -> set[tuple[int, int]]:
        return {(shard, nth) for shard, end in enumerate(self._records) for nth in range(end)}


def places_of(read: StreamRead) -> list[tuple[int, int]]:
    return [(shard.shard, one.offset) for shard in read.shards for one in shard.records]


@pytest.mark.parametrize("seed", range(200))
def test_building_revision_reaches_the_records_of_the_active_one(seed):
    """Each record once, none that the active one has not read, and at the end the same ones."""
    random = Random(seed)
    log = Log(random)
    active, active_places = dict[int, int](), set[tuple[int, int]]()
    building, building_places = dict[int, int](), Counter[tuple[int, int]]()

    def read_building() -> None:
        nonlocal building
        read = capped(log.read(building, random.randrange(1, 40)), building, active, log.stream)
        building_places.update(places_of(read))
        assert read.positions != building or not has_news(read)  # no batch without progress
        building = read.positions

    for _ in range(60):
        match random.choice(("append", "reshard", "active", "active", "building", "building")):
            case "append":
                log.append()
            case "reshard" if len(log.stream.shards) < 12:
                log.reshard()
            case "active":
                read = log.read(active, random.randrange(1, 40))
                active_places.update(places_of(read))
                active = read.positions
            case "building":
                read_building()
            case _:
                pass
        assert building_places.keys() <= active_places
        assert max(building_places.values(), default=1) == 1
    while (read := log.read(active, 40)).positions != active:
        active_places.update(places_of(read))
        active = read.positions
    for _ in range(100):
        read_building()

    assert building_places.keys() == active_places == log.places()
    entries = [entry(RevisionState.ACTIVE, active), entry(RevisionState.BUILDING, building)]
    assert len(Cohorts(entries, ()).caught_up()) == 1


@pytest.mark.parametrize("seed", range(400))
def test_reader_reaches_the_positions_that_another_one_had(seed):
    """A back-test reads the same records, and then nothing, while others are appended."""
    random = Random(seed)
    log = Log(random)
    former, places = dict[int, int](), set[tuple[int, int]]()
    for _ in range(random.randrange(12)):
        read = log.read(former, random.randrange(1, 40))
        places.update(places_of(read))
        former = read.positions
        if random.random() < 0.3:
            log.reshard()
    own, found = dict[int, int](), Counter[tuple[int, int]]()
    while former:
        if random.random() < 0.5:
            log.append()
        read = capped(log.read(own, random.randrange(1, 40)), own, former, log.stream)
        if read.positions == own and not has_news(read):
            break
        found.update(places_of(read))
        own = read.positions

    assert found.keys() == places
    assert max(found.values(), default=1) == 1


def test_gap_is_cut_with_the_records():
    log = Log(Random(0))
    gap = Gap(2, 8, GapReason.EXPIRED)
    read = StreamRead([ShardRead(0, [], 8, 8, 9, 0, gap)], {0: 8}, "s")

    cut = capped(read, {0: 2}, {0: 5}, log.stream)
    at_end = capped(read, {0: 2}, {0: 2}, log.stream)

    assert (cut.shards[0].gap, cut.positions) == (Gap(2, 5, GapReason.EXPIRED), {0: 5})
    assert (at_end.shards[0].gap, at_end.positions) == (None, {0: 2})


def test_building_revision_that_is_ahead_reads_nothing():
    log = Log(Random(0))
    records = [LogRecord(offset, 0, Record(b"x")) for offset in range(7, 9)]

    read = capped(
        StreamRead([ShardRead(0, records, 9, 0, 9, 0)], {0: 9}, "s"), {0: 7}, {0: 5}, log.stream
    )

    assert (read.shards[0].records, read.positions) == ([], {0: 7})


def test_active_revision_waits_for_one_that_is_near():
    near = [entry(RevisionState.ACTIVE, {0: 100}), entry(RevisionState.BUILDING, {0: 90})]
    far_offset = 100 + limits.READ_RECORDS_MAX
    far = [entry(RevisionState.ACTIVE, {0: far_offset}), entry(RevisionState.BUILDING, {0: 90})]

    def states(entries, blocked=()):
        cohorts = Cohorts(entries, ()).by_read(lambda one: one.revision.state in blocked)
        return [[one.revision.state.value for one in cohort] for cohort in cohorts]

    assert states(near) == [["building"]]
    assert states(near, [RevisionState.BUILDING]) == [["active"]]
    assert states(far) == [["active"], ["building"]]


def test_revision_without_active_one_is_built_to_the_end():
    building = entry(RevisionState.BUILDING, {0: 90})
    former_stream = entry(RevisionState.ACTIVE, {0: 5}, stream_id="former")

    for entries in ([building], [former_stream, building]):
        assert Cohorts(entries, ()).cap(building) is None
        assert Cohorts(entries, ()).caught_up() == []
        assert Cohorts(entries, {"building"}).caught_up() == [building]


def test_revisions_that_lost_records_replace_each_other_when_idle():
    """A store that was restored has fewer records than the active revision had read."""
    entries = [
        entry(RevisionState.ACTIVE, {0: 100, 1: 5}),
        entry(RevisionState.BUILDING, {0: 95, 1: 5}),
    ]

    waiting, idle = Cohorts(entries, {"building"}), Cohorts(entries, {"active", "building"})

    assert waiting.caught_up() == []
    assert [
        [one.revision.state.value for one in cohort] for cohort in waiting.by_read(lambda _: False)
    ] == [
        ["active"],
        ["building"],
    ]
    assert idle.caught_up() == entries[1:]


def test_former_revision_reads_with_the_active_one():
    entries = [entry(RevisionState.ACTIVE, {0: 5}), entry(RevisionState.FORMER, {0: 5})]

    [cohort] = Cohorts(entries, ()).by_read(lambda _: False)

    assert cohort == entries


@pytest.mark.parametrize(
    ("building", "idle", "are_the_same"),
    [
        ({0: 7}, (), True),
        ({0: 9}, (), False),  # ahead
        ({1: 0, 2: 0}, (), False),
        ({1: 0, 2: 0}, ("building",), False),
        ({1: 0, 2: 0}, ("building", "active"), True),  # in the children of a closed shard
        ({0: FULLY_READ}, ("building", "active"), True),
        ({0: 5}, ("building", "active"), False),  # the store has lost records
    ],
)
def test_revisions_include_the_same_records(building, idle, are_the_same):
    entries = [
        entry(RevisionState.ACTIVE, {0: 7}),
        entry(RevisionState.BUILDING, building),
    ]

    assert Cohorts(entries, idle).include_the_same(entries[1]) is are_the_same
