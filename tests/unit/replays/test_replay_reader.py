"""Reading the parts of a replay in send order, without a store."""

import asyncio
import random
from collections.abc import Mapping
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from spark_worker.jobs.replay_reader import OrderedReader
from storage.domain.errors import StorageUnavailable
from storage.domain.log.record_batch import Record
from storage.domain.names import StreamName
from storage.domain.replays.replay import OffsetRange, PartProgress
from storage.domain.streams.columnar_batch import Columns
from storage.domain.streams.record_columns import NO_RECORDS, ColumnRead, RecordColumns
from storage.domain.streams.record_filter import Filter
from storage.domain.streams.stream import Gap, GapReason, LogRecord
from storage.streams.column_source import ColumnSource

SOURCE = StreamName("source")


class Logs:
    """Shards with the given records; a read returns some of them, without a hole."""

    def __init__(
        self, shards: Mapping[int, list[LogRecord]], chance: random.Random, fails: float = 0.2
    ) -> None:
        self.shards = shards
        self.chance = chance
        self.fails = fails

    async def read_columns(self, name, shard, *, offset, end, **others):
        for _ in range(self.chance.choice((0, 0, 20))):
            await asyncio.sleep(0)
        if self.chance.random() < self.fails:
            raise StorageUnavailable
        records = [one for one in self.shards[shard] if offset <= one.offset < end]
        most = self.chance.randint(1, 5)
        chosen = [
            one for nth, one in enumerate(records[:most]) if one.offset == records[0].offset + nth
        ]
        if not chosen:
            return ColumnRead(NO_RECORDS, end, Gap(offset, end, GapReason.EXPIRED))
        first = chosen[0].offset
        gap = Gap(offset, first, GapReason.EXPIRED) if first > offset else None
        return ColumnRead(columns_of(chosen), chosen[-1].offset + 1, gap)

    def source(self, keys: tuple[str, ...] = ()) -> ColumnSource:
        """Return the records with these keys; all of them for none."""
        return ColumnSource(self, SOURCE, "id", Filter(keys=keys))  # type: ignore[arg-type]  # it reads


def columns_of(records: list[LogRecord]) -> RecordColumns:
    return RecordColumns(
        [one.offset for one in records],
        [one.arrival_ms for one in records],
        Columns([one.record.data for one in records], [one.record.key for one in records]),
    )


def drawn(seed: int, shards: int) -> dict[int, list[LogRecord]]:
    """Records at random offsets of each shard, with non-decreasing arrival times."""
    chance = random.Random(seed)
    found = {}
    for shard in range(shards):
        offsets = sorted(chance.sample(range(60), chance.randint(0, 30)))
        arrivals = sorted(chance.randint(0, 40) for _ in offsets)
        found[shard] = [
            LogRecord(offset, arrival, Record(b"%d %d" % (shard, offset), str(offset % 3)))
            for offset, arrival in zip(offsets, arrivals, strict=True)
        ]
    return found


async def filled(lane: OrderedReader) -> bool:
    """Fill the lane, repeating failed reads."""
    while True:
        with suppress(StorageUnavailable):
            return await lane.prefetch()


async def taken(lane: OrderedReader, chance: random.Random, batches: int = 1_000):
    """Return the records of a lane and its parts after the given number of batches."""
    found: list[tuple[int, int, int]] = []
    after: dict[str, PartProgress] = {}
    while batches and await filled(lane):
        batch = lane.take(chance.randint(1, 6), chance.randint(1, 30))
        found += [
            (record.arrival_ms, run.shard, record.offset)
            for run in batch.runs
            for record in run.columns.records()
        ]
        after |= {part.part: part for part in batch.after}
        batches -= 1
    return found, after


def parts(shards: int) -> list[PartProgress]:
    return [
        PartProgress(part=str(shard), reach=OffsetRange(shard, 0, 50), position=0)
        for shard in range(shards)
    ]


@given(
    seed=st.integers(0, 10**6),
    shards=st.integers(1, 4),
    stop=st.integers(0, 12),
    most=st.none() | st.integers(1, 40),
    keys=st.sampled_from([(), ("1",)]),
)
def test_lane_yields_selected_records_by_arrival_and_resumes(seed, shards, stop, most, keys):
    logs, chance = drawn(seed, shards), random.Random(seed)
    meant = sorted(
        (record.arrival_ms, shard, record.offset)
        for shard, records in logs.items()
        for record in records
        if record.offset < 50 and (not keys or record.record.key in keys)
    )[:most]

    async def run():
        source = Logs(logs, chance).source(keys)
        first, before = await taken(
            OrderedReader(source, parts(shards), records_max=most),
            chance,
            stop,
        )
        stored = {part.part: part for part in parts(shards)} | before
        left = None if most is None else most - sum(part.selected for part in stored.values())
        second, after = await taken(
            OrderedReader(source, [*stored.values()], records_max=left),
            chance,
        )
        return first + second, stored | after

    found, stored = asyncio.run(run())

    assert found == meant
    assert all(part.done for part in stored.values())
    assert sum(part.selected for part in stored.values()) == len(meant)


def test_records_not_yet_due_stay_in_the_lane():
    logs = {0: [LogRecord(n, n * 10, Record(b"x")) for n in range(5)]}

    async def run():
        lane = OrderedReader(Logs(logs, random.Random(2), 0).source(), parts(1))
        await lane.prefetch()
        batch = lane.take(10, 1_000, lambda arrival_ms: arrival_ms < 10)
        await lane.prefetch()
        return len(batch), lane.take(10, 1_000, lambda _: False), lane.next_arrival_ms()

    count, nothing, following = asyncio.run(run())

    assert (count, nothing.runs, nothing.after) == (1, [], [])
    assert following == 10
