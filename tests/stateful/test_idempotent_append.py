"""Idempotent appends under faults and reshards: S4, and the order of each key.

Attempts repeat, overlap, lose responses and outlive one another, while the shards of the stream are
split and merged.
"""

import itertools
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import pytest
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

from storage.domain.errors import MillstreamError, OutcomeUnknown, ProducerFenced
from storage.domain.limits import DAY_MS
from storage.domain.log.record_batch import Record
from storage.domain.names import StreamName
from storage.domain.streams.columnar_batch import Columns
from storage.domain.streams.idempotence import PartialDuplicate, SequencedBatch
from storage.domain.streams.lineage import ShardClosedTo
from storage.domain.streams.reshard_plan import merge_of
from storage.domain.streams.stream import Shard, Stream, StreamSpec
from storage.hot_store.errors import LogNotReady
from storage.hot_store.log_store import AppendPart, PartAppended
from storage.log.provisioner import LogDeleted
from storage.streams.idempotent_append import IdempotentAppender, _Batch, _hash_keys
from storage.streams.reshard import _FenceTransfer
from tests.stateful.conftest import ON_BOTH_STORES, Bench

KEYS = ["", *(f"key {number}" for number in range(6))]
RECORDS = 60
PRODUCERS = ("p", "q")

FAULTS = ["none", "none", "none", "unsent", "unanswered", "late", "split", "merge"]


class Faulty:
    """Append parts, except those that it loses, delays, or precedes with a reshard."""

    def __init__(self, machine: "IdempotentAppendMachine") -> None:
        self.machine = machine
        self.faults: list[str] = []

    async def put(self, stream: Stream, shard: Shard, part: AppendPart) -> PartAppended:
        fault = self.faults.pop() if self.faults else "none"
        streams = self.machine.streams
        put = partial(streams._appender.put, stream, shard, part)
        if fault == "unsent":
            raise OutcomeUnknown
        if fault == "late":
            self.machine.late.append((stream, shard, part))
            raise OutcomeUnknown
        if fault in ("split", "merge"):
            await self.machine.reshard(fault, shard.index)
        done = await put()
        if fault == "unanswered":
            raise OutcomeUnknown
        return done


@dataclass
class Attempt:
    """A sender; all records before `position` are known to be appended."""

    appender: IdempotentAppender
    faulty: Faulty
    stream: Stream
    position: int = 0


class IdempotentAppendMachine(RuleBasedStateMachine):
    """One stream, and ordered records of two producers that attempts append to it.

    Parts of a call reach several shards at once: their order, and so who meets a fault, is the server's choice. No rule
    may draw by what came of it, as an example that is run again must draw the same.
    """

    def __init__(self, bench: Bench) -> None:
        super().__init__()
        self.bench = bench
        self.streams = bench.storage.streams
        self.reader = bench.storage.record_reader
        self.resharder = self.streams._idempotent_appender._resharder

    @initialize(shards=st.integers(1, 3), data=st.data())
    def create(self, shards: int, data: st.DataObject) -> None:
        self.name = StreamName(self.bench.new_name("stream"))
        spec = StreamSpec(shards=shards, retention_ms=1_000 * DAY_MS)
        stream, *_ = self.bench.run(self.bench.storage.catalog.put_stream(self.name, spec))
        keys = data.draw(st.lists(st.sampled_from(KEYS), min_size=RECORDS, max_size=RECORDS))
        whose = data.draw(st.lists(st.sampled_from(PRODUCERS), min_size=RECORDS, max_size=RECORDS))
        steps = data.draw(st.lists(st.integers(1, 3), min_size=RECORDS, max_size=RECORDS))
        self.records = [Record(b"%d" % nth, key) for nth, key in enumerate(keys)]
        self.sequenced = SequencedBatch(whose, [*itertools.accumulate(steps)])
        self.known = [stream]
        self.late: list[tuple[Stream, Shard, AppendPart]] = []
        self.acknowledged = 0
        self.attempts = [self.attempt(), self.attempt()]

    def attempt(self) -> Attempt:
        mine, faulty = self.streams._idempotent_appender, Faulty(self)
        appender = IdempotentAppender(
            mine._watermarks,
            faulty,  # type: ignore[arg-type]  # it has a put
            mine._executor,
            self.resharder,
            mine._clock,
        )
        return Attempt(appender, faulty, self.known[-1])

    def batch(self, first: int, count: int) -> _Batch:
        some = slice(first, first + count)
        sequenced = SequencedBatch(
            self.sequenced.producer_ids[some], self.sequenced.sequences[some]
        )
        records = self.records[some]
        columns = Columns([one.data for one in records], [one.key for one in records])
        return _Batch(
            sequenced,
            columns if count % 2 else records,
            [record.size_bytes for record in records],
            partial(_hash_keys, sequenced, records),
        )

    def send(self, attempt: Attempt, count: int, faults: list[str]) -> None:
        batch = self.batch(attempt.position, count)
        if not batch.records:
            return
        attempt.faulty.faults = faults
        append = partial(attempt.appender._append, batch)
        try:
            self.bench.run(self.streams._executor.run(attempt.stream, append))
        except MillstreamError as error:
            note(f"{error!r}")
            return
        attempt.position += len(batch.records)
        self.acknowledged = max(self.acknowledged, attempt.position)

    @rule(
        which=st.integers(0, 1),
        count=st.integers(1, 12),
        faults=st.lists(st.sampled_from(FAULTS), max_size=5),
    )
    def send_on(self, which: int, count: int, faults: list[str]) -> None:
        self.send(self.attempts[which], count, faults)

    @rule(which=st.integers(0, 1), position=st.integers(0, RECORDS), age=st.integers(0, 9))
    def restart(self, which: int, position: int, age: int) -> None:
        """Restart without state, from any acknowledged position, with a definition of any age."""
        attempt = self.attempt()
        attempt.position = min(position, self.acknowledged)
        attempt.stream = self.known[-1 - age % len(self.known)]
        self.attempts[which] = attempt

    @rule(which=st.integers(0, 1))
    def learn(self, which: int) -> None:
        self.attempts[which].stream = self.known[-1]

    @rule(which=st.integers(0, 9))
    def arrive_late(self, which: int) -> None:
        if self.late:
            self.deliver(*self.late.pop(which % len(self.late)))

    def deliver(self, stream: Stream, shard: Shard, part: AppendPart) -> None:
        """Deliver a part whose sender has gone."""
        with suppress(ShardClosedTo, PartialDuplicate, LogDeleted, LogNotReady):
            self.bench.run(self.streams._appender.put(stream, shard, part))

    async def reshard(self, how: str, shard: int) -> None:
        stream = await self.bench.storage.catalog.fresh_stream(self.name)
        if stream.opening:
            await self.streams.resharder.finish(self.name)
            stream = await self.bench.storage.catalog.fresh_stream(self.name)
        found = next(
            (open_shard for open_shard in stream.open_shards if open_shard.index == shard), None
        )
        found = found or stream.open_shards[0]
        place = stream.open_shards.index(found)
        if how == "split" and len(stream.open_shards) < 8:
            middle = (found.first_hash_key + found.last_hash_key) // 2
            stream = await self.streams.resharder.split(self.name, found.index, middle)
        elif how == "merge" and place > 0:
            before = stream.open_shards[place - 1]
            stream = await self.streams.resharder.merge(self.name, before.index, found.index)
        self.known.append(stream)

    @rule(how=st.sampled_from(["split", "merge"]), shard=st.integers(0, 12))
    def reshard_between(self, how: str, shard: int) -> None:
        self.bench.run(self.reshard(how, shard))

    @rule(place=st.integers(0, 6), first=st.booleans())
    def merge_by_half(self, place: int, first: bool) -> None:
        """Merge by a process that dies when one of the two parents is closed."""
        self.bench.run(self.half_merged(place, first))

    async def half_merged(self, place: int, first: bool) -> None:
        await self.streams.resharder.finish(self.name)
        catalog = self.bench.storage.catalog
        stream = await catalog.fresh_stream(self.name)
        pairs = [*itertools.pairwise(stream.open_shards)]
        if not pairs:
            return
        low, high = pairs[place % len(pairs)]
        stream = await catalog.open_children(
            self.name, lambda now: [merge_of(now, low.index, high.index)]
        )
        await self.resharder._make_logs(stream)
        one = low if first else high
        await self.resharder._close_log(stream, stream.shard(one.index), _FenceTransfer.ANY)

    @rule()
    def finish(self) -> None:
        self.bench.run(self.streams.resharder.finish(self.name))
        self.known.append(self.bench.run(self.bench.storage.catalog.fresh_stream(self.name)))

    @rule()
    def let_go_of_what_is_over(self) -> None:
        """Expire closed shards that are empty and have no producer state."""
        self.bench.clock.advance(2 * DAY_MS)
        self.bench.run(self.streams.expire_shards(self.name))

    def teardown(self) -> None:
        if not hasattr(self, "attempts"):
            return
        for attempt in self.attempts:
            while attempt.position < RECORDS:
                self.send(attempt, 7, [])
        while self.late:
            self.deliver(*self.late.pop())
        self.check()
        self.check_stragglers()

    def check(self) -> None:
        records = self.everything()
        assert Counter(record.data for record in records) == Counter(
            record.data for record in self.records
        )
        for key in KEYS[1:]:
            sent = [record.data for record in self.records if record.key == key]
            assert [record.data for record in records if record.key == key] == sent

    def everything(self) -> list[Record]:
        records: list[Record] = []
        positions: dict[int, int] = {}
        while True:
            read = self.bench.run(self.reader.read(self.name, positions))
            records += [record.record for shard in read.shards for record in shard.records]
            if read.positions == positions:
                return records
            positions = read.positions

    def check_stragglers(self) -> None:
        """Check that stragglers are rejected everywhere once the producers are forgotten."""
        self.bench.run(self.streams.retire_writers(self.name, PRODUCERS))
        self.bench.run(self.reshard("split", 0))
        for stream in self.known:
            attempt = self.attempt()
            batch = self.batch(RECORDS - 9, 9)
            work = self.streams._executor.run(stream, partial(attempt.appender._append, batch))
            with pytest.raises(ProducerFenced):
                self.bench.run(work)
        assert len(self.everything()) == RECORDS


@ON_BOTH_STORES
def test_append_is_idempotent_across_faults_and_reshards(bench, monkeypatch):
    monkeypatch.setattr("storage.domain.limits.ENTRY_RECORDS_MAX", 4)
    run_state_machine_as_test(lambda: IdempotentAppendMachine(bench), settings=bench.half)  # type: ignore[arg-type]  # a factory will do
