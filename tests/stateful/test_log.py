"""A log compared with every acknowledged record: S1, S2 and S4, also across restores."""

from copy import deepcopy
from dataclasses import dataclass, field

import pytest
import redis
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from storage.domain.errors import (
    DuplicateForgotten,
    OffsetExpired,
    OffsetMismatch,
    OffsetOutOfRange,
    ProducerFenced,
    SequenceOutOfOrder,
)
from storage.domain.limits import IDEMPOTENCY_WINDOW_MS, PRODUCER_BATCHES_MAX
from storage.domain.log.record_batch import Record
from storage.domain.names import StreamName
from storage.domain.streams.stream import AppendCondition, Appended, Producer, ReadFrom, StreamSpec
from storage.redis.keys import STORE_KEY, every_key
from tests.stateful.conftest import Bench

RECORDS = st.lists(st.builds(Record, st.binary(max_size=3)), min_size=1, max_size=4)
RETENTION_MS = 60_000


@dataclass
class ProducerModel:
    """Producer state of the log: batches as (sequence, records, offset), newest last."""

    epoch: int = 0
    last: int = -1
    batches: list[tuple[int, int, int]] = field(default_factory=list)


@dataclass
class LogModel:
    """Readable records, and the log's state of its writers."""

    records: dict[int, tuple[bytes, int]] = field(default_factory=dict)
    start: int = 0
    tip: int = 0
    producers: dict[str, ProducerModel] = field(default_factory=dict)
    keys: dict[str, tuple[list[Record], int, int]] = field(default_factory=dict)


class LogMachine(RuleBasedStateMachine):
    """One shard, written and read in every way, and at times restored from an older copy."""

    def __init__(self, bench: Bench, redis_url: str) -> None:
        super().__init__()
        self.bench = bench
        self.streams = bench.storage.streams
        self.reader = bench.storage.record_reader
        self.redis = redis.Redis.from_url(redis_url)

    @initialize()
    def create(self) -> None:
        self.name = StreamName(self.bench.new_name("stream"))
        spec = StreamSpec(retention_ms=RETENTION_MS)
        stream, *_ = self.bench.run(self.bench.storage.catalog.put_stream(self.name, spec))
        self.keys = every_key("default", stream.shards[0].log_id)
        self.model = LogModel()
        self.ever: dict[int, bytes] = {}
        self.copy: tuple[dict[bytes, bytes], LogModel] | None = None
        self.may_jump = False

    def note(self, records: list[Record], appended: list[Appended]) -> None:
        offsets = [one.offset for one in appended]
        assert offsets == list(range(offsets[0], offsets[0] + len(records)))  # S2
        assert offsets[0] > max(self.ever, default=-1)  # S1: never assigned before
        for offset, record in zip(offsets, records, strict=True):
            self.ever[offset] = record.data
            self.model.records[offset] = (record.data, self.bench.clock.now_ms())
        self.model.tip = offsets[-1] + 1

    @rule(records=RECORDS)
    def append(self, records: list[Record]) -> None:
        self.note(records, self.bench.run(self.streams.append_to_shard(self.name, 0, records)))

    @rule(records=RECORDS, off_by=st.sampled_from([0, 0, 1]))
    def append_expecting(self, records: list[Record], off_by: int) -> None:
        condition = AppendCondition(expected_offset=self.model.tip + off_by)
        append = self.streams.append_to_shard(self.name, 0, records, condition)
        if off_by:
            with pytest.raises(OffsetMismatch):
                self.bench.run(append)
        else:
            self.try_expected(append, records)

    def try_expected(self, append, records: list[Record]) -> None:
        """Append; after a restore the tip jumps, so the expected offset may differ."""
        try:
            self.note(records, self.bench.run(append))
        except OffsetMismatch:
            assert self.may_jump

    @rule(
        records=RECORDS,
        who=st.sampled_from(["p", "q"]),
        epoch_step=st.sampled_from([0, 0, 0, 1, -1]),
        back=st.sampled_from([0, 0, 0, 1, 2, 7, -1]),
    )
    def produce(self, records: list[Record], who: str, epoch_step: int, back: int) -> None:
        """Append a producer's next batch, an earlier one (`back` > 0), or one ahead (-1)."""
        producer = self.model.producers.get(who, ProducerModel())
        epoch = max(0, producer.epoch + epoch_step)
        last = producer.last if epoch == producer.epoch else -1
        sequence = last + 1 if back == 0 else last + 5
        if back > 0 and epoch == producer.epoch and producer.batches:
            sequence, count, _ = producer.batches[-min(back, len(producer.batches))]
            records = (records * count)[:count]
        condition = AppendCondition(Producer(who, epoch, sequence))
        append = self.streams.append_to_shard(self.name, 0, records, condition)

        if epoch < producer.epoch:
            with pytest.raises(ProducerFenced):
                self.bench.run(append)
        elif epoch == producer.epoch and sequence <= producer.last:
            self.repeat(append, producer, sequence, len(records))
        elif sequence != last + 1:
            with pytest.raises(SequenceOutOfOrder):
                self.bench.run(append)
        else:
            appended = self.bench.run(append)
            self.note(records, appended)
            batches = [*producer.batches, (sequence, len(records), appended[0].offset)]
            stored_batches = batches if epoch == producer.epoch else batches[-1:]
            self.model.producers[who] = ProducerModel(
                epoch, sequence + len(records) - 1, stored_batches
            )

    def repeat(self, append, known: ProducerModel, sequence: int, count: int) -> None:
        recent = {
            (first, size): offset for first, size, offset in known.batches[-PRODUCER_BATCHES_MAX:]
        }
        offset = recent.get((sequence, count))
        if offset is None:
            with pytest.raises(DuplicateForgotten):
                self.bench.run(append)
        else:
            assert self.bench.run(append) == [
                Appended(0, offset + nth, duplicate=True) for nth in range(count)
            ]  # S4

    @rule(records=RECORDS, key=st.sampled_from(["k1", "k2"]))
    def append_once(self, records: list[Record], key: str) -> None:
        current_key = self.model.keys.get(key)
        now_ms = self.bench.clock.now_ms()
        if current_key and now_ms - current_key[2] < IDEMPOTENCY_WINDOW_MS:
            answers = self.bench.run(
                self.streams.append(self.name, current_key[0], idempotency_key=key)
            )
            assert answers == [
                Appended(0, current_key[1] + nth, duplicate=True)
                for nth in range(len(current_key[0]))
            ]  # S4
            return
        appended = self.bench.run(self.streams.append(self.name, records, idempotency_key=key))
        offsets = [one for one in appended if isinstance(one, Appended)]
        self.note(records, offsets)
        self.model.keys[key] = (records, offsets[0].offset, now_ms)

    @rule(step_ms=st.sampled_from([1, 10_000, 59_999, 700_000]))
    def advance(self, step_ms: int) -> None:
        self.bench.clock.advance(step_ms)

    @rule()
    def trim(self) -> None:
        self.bench.run(self.streams.trim(self.name, 10_000))

        oldest_ms = self.bench.clock.now_ms() - RETENTION_MS
        young = [offset for offset, (_, at) in self.model.records.items() if at > oldest_ms]
        self.model.start = min(young, default=self.model.tip)
        for offset in [offset for offset in self.model.records if offset < self.model.start]:
            del self.model.records[offset]

    @precondition(lambda self: self.model.tip)
    @rule(data=st.data(), limit=st.integers(1, 5))
    def read(self, data: st.DataObject, limit: int) -> None:
        offset = data.draw(st.integers(0, self.model.tip + 1))
        read = self.reader.read_shard(self.name, 0, ReadFrom(offset=offset), records_max=limit)
        if offset < self.model.start:
            with pytest.raises(OffsetExpired):
                self.bench.run(read)
            return
        if offset > self.model.tip:
            with pytest.raises(OffsetOutOfRange):
                self.bench.run(read)
            return
        read_result = self.bench.run(read)
        self.check_read(offset, limit, read_result)

    def check_read(self, offset: int, limit: int, found) -> None:
        first = min(
            (record for record in self.model.records if record >= offset), default=self.model.tip
        )
        expected: list[tuple[int, bytes]] = []
        while len(expected) < limit and first + len(expected) in self.model.records:
            expected.append((first + len(expected), self.model.records[first + len(expected)][0]))
        assert [(record.offset, record.record.data) for record in found.records] == expected  # S1
        assert (found.gap is None) == (first == offset)
        if found.gap:
            assert (found.gap.first, found.gap.next) == (offset, first)
        assert found.next_offset == first + len(expected)

    @rule(count=st.integers(1, 5))
    def read_the_last(self, count: int) -> None:
        read_result = self.bench.run(self.reader.read_shard(self.name, 0, ReadFrom(tail=count)))
        offset = max(self.model.start, self.model.tip - count)
        self.check_read(offset, 10_000, read_result)

    @rule(data=st.data())
    def read_from_a_time(self, data: st.DataObject) -> None:
        times = [at for _, at in self.model.records.values()]
        at_ms = data.draw(st.sampled_from(times or [0])) + data.draw(st.integers(-1, 1))

        read_result = self.bench.run(
            self.reader.read_shard(self.name, 0, ReadFrom(time_ms=at_ms), records_max=1)
        )

        later = [offset for offset, (_, at) in self.model.records.items() if at >= at_ms]
        assert [record.offset for record in read_result.records] == sorted(later)[:1]

    @precondition(lambda self: self.model.tip)
    @rule()
    def take_a_copy(self) -> None:
        dumped = {key: self.redis.dump(key) for key in self.keys}
        present = {key: bytes(dump) for key, dump in dumped.items() if dump}
        self.copy = (present, deepcopy(self.model))

    @precondition(lambda self: self.copy is not None)
    @rule()
    def restore_the_copy(self) -> None:
        """Restore; lost offsets must never be assigned again."""
        assert self.copy is not None
        dumps, model = self.copy
        self.redis.delete(*self.keys)
        self.redis.delete(STORE_KEY)  # in another slot of a cluster
        for key, dump in dumps.items():
            self.redis.restore(key, 0, dump)
        self.bench.reconnect_to_another_server()
        self.model = deepcopy(model)
        self.may_jump = True

    @invariant()
    def the_end_agrees(self) -> None:
        [state] = self.bench.run(self.reader.shards(self.name))
        if self.may_jump and state.next > self.model.tip:
            assert state.next > max(self.ever)
            self.model.tip, self.may_jump = state.next, False
        assert state.next == self.model.tip
        assert state.start <= self.model.start or not self.model.records


def test_offset_holds_one_value_forever(bench, redis_url):
    run_state_machine_as_test(lambda: LogMachine(bench, redis_url), settings=bench.examples)  # type: ignore[arg-type]  # a factory will do
