"""A stream with random splits and merges: S1, S2 and S4 for writers that retry."""

import itertools
from dataclasses import dataclass, field

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from storage.domain.errors import DuplicateForgotten, SequenceOutOfOrder, ShardClosed
from storage.domain.limits import IDEMPOTENCY_WINDOW_MS, MINUTE_MS, PRODUCER_BATCHES_MAX
from storage.domain.log.record_batch import Record
from storage.domain.names import StreamName
from storage.domain.streams.stream import AppendCondition, Appended, Producer, Shard, StreamSpec
from tests.stateful.conftest import ON_BOTH_STORES, Bench

KEYS = [f"key {number}" for number in range(6)]


@dataclass
class Call:
    """An append with an idempotency key, and its response."""

    key: str
    records: list[Record]
    answers: list[Appended]
    at_ms: int


@dataclass
class Line:
    """A shard's producer state: last sequence, and batches as (sequence, records, offset)."""

    last: int = -1
    batches: list[tuple[int, int, int]] = field(default_factory=list)


class ReshardMachine(RuleBasedStateMachine):
    """One stream, written by key and by a producer, read as a whole."""

    def __init__(self, bench: Bench) -> None:
        super().__init__()
        self.bench = bench
        self.streams = bench.storage.streams
        self.reader = bench.storage.record_reader

    @initialize(shards=st.integers(1, 3))
    def create(self, shards: int) -> None:
        self.name = StreamName(self.bench.new_name("stream"))
        brief = MINUTE_MS  # empty shards expire; nothing is trimmed
        spec = StreamSpec(shards=shards, retention_ms=brief)
        self.stream, *_ = self.bench.run(self.bench.storage.catalog.put_stream(self.name, spec))
        self.places: dict[tuple[int, int], bytes] = {}
        self.written: dict[str, list[bytes]] = {key: [] for key in KEYS}
        self.calls: list[Call] = []
        self.lines: dict[int, Line] = {}
        self.numbers = itertools.count()
        self.positions: dict[int, int] = {}
        self.read_so_far: dict[str, list[bytes]] = {key: [] for key in KEYS}

    def new_records(self, keys: list[str]) -> list[Record]:
        return [Record(b"%d" % next(self.numbers), key) for key in keys]

    def note(self, records: list[Record], answers: list[Appended]) -> None:
        for record, answer in zip(records, answers, strict=True):
            assert isinstance(answer, Appended), answer
            assert not answer.duplicate
            assert (answer.shard, answer.offset) not in self.places  # S1
            assert self.stream.shard(answer.shard).is_open
            self.places[answer.shard, answer.offset] = record.data
            if record.key:
                self.written[record.key].append(record.data)

    @rule(keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=5))
    def append(self, keys: list[str]) -> None:
        records = self.new_records(keys)
        self.note(records, self.bench.run(self.streams.append(self.name, records)))  # type: ignore[arg-type]

    @rule(keys=st.lists(st.sampled_from([*KEYS, ""]), min_size=1, max_size=5))
    def append_once(self, keys: list[str]) -> None:
        records, key = self.new_records(keys), f"call {len(self.calls)}"
        answers = self.bench.run(self.streams.append(self.name, records, idempotency_key=key))
        self.note(records, answers)  # type: ignore[arg-type]
        self.calls.append(Call(key, records, answers, self.bench.clock.now_ms()))  # type: ignore[arg-type]

    @precondition(lambda self: self.calls)
    @rule(data=st.data())
    def append_again(self, data: st.DataObject) -> None:
        call = data.draw(st.sampled_from(self.calls[-4:]))
        if self.bench.clock.now_ms() - call.at_ms >= IDEMPOTENCY_WINDOW_MS:
            return
        answers = self.bench.run(
            self.streams.append(self.name, call.records, idempotency_key=call.key)
        )
        assert answers == [
            Appended(answer.shard, answer.offset, duplicate=True) for answer in call.answers
        ]  # S4

    def knowing(self, shard: Shard) -> dict[int, Line]:
        """The shard, or its nearest ancestors, with state of the producer."""
        known: dict[int, Line] = {}
        waiting, seen = [shard], {shard.index}
        while waiting:
            item = waiting.pop()
            if item.index in self.lines:
                known[item.index] = self.lines[item.index]
                continue
            parents = [p for p in self.stream.parents_of(item) if p.index not in seen]
            seen |= {parent.index for parent in parents}
            waiting += parents
        return known

    @rule(data=st.data(), count=st.integers(1, 3), back=st.sampled_from([0, 0, 0, 1, 2, 7]))
    def produce(self, data: st.DataObject, count: int, back: int) -> None:
        """Append the next batch to a shard, or repeat one that the shard or its ancestors have."""
        shard = data.draw(st.sampled_from(self.stream.shards))
        known = self.knowing(shard)
        last = max((line.last for line in known.values()), default=-1)
        batches = [batch for line in known.values() for batch in line.batches]
        sequence = last + 1
        if back and batches:
            sequence, count, _ = batches[-min(back, len(batches))]
        records = [Record(b"%d" % next(self.numbers)) for _ in range(count)]
        condition = AppendCondition(Producer("p", 0, sequence))
        append = self.streams.append_to_shard(self.name, shard.index, records, condition)
        if back and batches:
            self.repeat(append, known, (sequence, count))
        elif not shard.is_open:
            with pytest.raises(ShardClosed):
                self.bench.run(append)
        else:
            appended = self.bench.run(append)
            self.note(records, appended)
            line = self.lines.setdefault(shard.index, Line())
            line.last = sequence + count - 1
            line.batches.append((sequence, count, appended[0].offset))

    def repeat(self, append, known: dict[int, Line], batch: tuple[int, int]) -> None:
        if len(known) > 1:
            with pytest.raises(SequenceOutOfOrder):
                self.bench.run(append)
            return
        [(shard, line)] = known.items()
        recent = {(first, size): at for first, size, at in line.batches[-PRODUCER_BATCHES_MAX:]}
        offset = recent.get(batch)
        if offset is None:
            with pytest.raises(DuplicateForgotten):
                self.bench.run(append)
        else:
            assert self.bench.run(append) == [
                Appended(shard, offset + nth, duplicate=True) for nth in range(batch[1])
            ]  # S4

    @precondition(lambda self: len(self.stream.open_shards) < 8)
    @rule(data=st.data())
    def split(self, data: st.DataObject) -> None:
        shard = data.draw(st.sampled_from(self.stream.open_shards))
        middle = (shard.first_hash_key + shard.last_hash_key) // 2
        self.stream = self.bench.run(self.streams.resharder.split(self.name, shard.index, middle))

    @precondition(lambda self: len(self.stream.open_shards) > 1)
    @rule(data=st.data())
    def merge(self, data: st.DataObject) -> None:
        low, high = data.draw(st.sampled_from([*itertools.pairwise(self.stream.open_shards)]))
        self.stream = self.bench.run(self.streams.resharder.merge(self.name, low.index, high.index))

    @rule(count=st.integers(1, 5))
    def set_count(self, count: int) -> None:
        self.stream = self.bench.run(self.streams.resharder.set_shard_count(self.name, count))
        assert len(self.stream.open_shards) == count

    @rule(step_ms=st.sampled_from([1, 10_000, 599_999, 660_000]))
    def advance(self, step_ms: int) -> None:
        self.bench.clock.advance(step_ms)

    @rule()
    def let_go_of_what_is_over(self) -> None:
        """Expire shards: nothing is past retention, but empty closed shards may expire."""
        self.bench.run(self.streams.expire_shards(self.name))
        self.stream = self.bench.run(self.bench.storage.catalog.fresh_stream(self.name))

    @rule(limit=st.sampled_from([3, 10, 1_000]))
    def read_on(self, limit: int) -> None:
        read = self.bench.run(self.reader.read(self.name, self.positions, records_max=limit))
        for shard in read.shards:
            for record in shard.records:
                assert self.places[shard.shard, record.offset] == record.record.data  # S1
                if record.record.key:
                    self.read_so_far[record.record.key].append(record.record.data)
        self.positions = read.positions
        for key, found in self.read_so_far.items():
            assert found == self.written[key][: len(found)]  # in order, once

    def teardown(self) -> None:
        if not hasattr(self, "name"):
            return
        before: dict[int, int] | None = None
        while before != self.positions:
            before = self.positions
            self.read_on(1_000)
        assert self.read_so_far == self.written  # nothing is lost
        self.check_numbers()

    def check_numbers(self) -> None:
        """S2: the sequence numbers of a key increase, whatever shards it went through."""
        where = {data: place for place, data in self.places.items()}
        opened: dict[int, int] = {shard.index: shard.opened_at_ms for shard in self.stream.shards}
        for written in self.written.values():
            places = [where[data] for data in written if where[data][0] in opened]
            numbers = [(opened[shard] // 1_000, offset) for shard, offset in places]
            assert numbers == sorted(set(numbers))


@ON_BOTH_STORES
def test_retries_across_splits_and_merges_add_nothing(bench):
    run_state_machine_as_test(lambda: ReshardMachine(bench), settings=bench.half)  # type: ignore[arg-type]  # a factory will do
