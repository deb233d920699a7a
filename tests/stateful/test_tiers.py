"""A shard in two tiers compared with every acknowledged record: S1 and S3.

Includes trims, restarts, and restores of an older copy of the hot store.
"""

import asyncio
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import pytest
import redis
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from storage.archive.compact_task import compact_files
from storage.bootstrap import Storage, open_storage
from storage.domain import limits
from storage.domain.clock import ManualClock
from storage.domain.errors import OffsetExpired, OffsetOutOfRange
from storage.domain.jobs import JobKind
from storage.domain.limits import Limits
from storage.domain.log.record_batch import Record
from storage.domain.names import StreamName
from storage.domain.streams.stream import ReadFrom, ShardRead, StreamSpec
from storage.parquet.object_store import open_root
from storage.redis.keys import STORE_KEY, every_key
from storage.settings import StorageSettings
from tests.archive_steps import archive_stream

RECORDS = st.lists(
    st.builds(Record, st.binary(max_size=3), st.sampled_from(["", "k"])), min_size=1, max_size=6
)
HOT_MS = 10 * limits.MINUTE_MS


class TwoTiers:
    """Open storage with an archive, which can be closed and reopened."""

    def __init__(self, stores: StorageSettings, runner: asyncio.Runner) -> None:
        self.stores = stores
        self.run = runner.run
        self.clock = ManualClock()
        self._opened: AbstractAsyncContextManager[Storage] | None = None
        self.storage = self.open()

    def open(self) -> Storage:
        limits_ = Limits(
            reservation_offsets_min=20, reservation_ms=0
        )  # small, so that examples reach their ceilings
        self._opened = open_storage(self.stores, clock=self.clock, limits=limits_)
        return self.run(self._opened.__aenter__())

    def close(self) -> None:
        if self._opened is not None:
            self.run(self._opened.__aexit__(None, None, None))
            self._opened = None


@pytest.fixture
def tiers(redis_url: str, database_url: str, tmp_path: Any) -> Iterator[TwoTiers]:
    stores = StorageSettings(
        redis_url=redis_url, database_url=database_url, archive_url=f"file://{tmp_path}/archive"
    )
    with asyncio.Runner() as runner:
        tiers = TwoTiers(stores, runner)
        try:
            yield tiers
        finally:
            tiers.close()


@dataclass
class Hot:
    """The hot store's offsets, its start, and the next offset."""

    offsets: set[int] = field(default_factory=set)
    start: int = 0
    tip: int = 0


class TiersMachine(RuleBasedStateMachine):
    """One shard; every record ever appended is known by offset, and the tiers that have it."""

    numbers = iter(range(10**9))

    def __init__(self, tiers: TwoTiers, redis_url: str) -> None:
        super().__init__()
        self.tiers = tiers
        self.redis = redis.Redis.from_url(redis_url)
        self.restored = False

    def teardown(self) -> None:
        self.redis.close()
        if self.restored:  # a lane that connects later would meet another store while the next example creates its log
            self.restart()

    @initialize()
    def create(self) -> None:
        self.name = StreamName(f"stream-{next(self.numbers)}")
        spec = StreamSpec(retention_ms=None, hot_retention_ms=HOT_MS)
        stream, *_ = self.run(self.tiers.storage.catalog.put_stream(self.name, spec))
        self.keys = every_key("default", stream.shards[0].log_id)
        self.ever: dict[int, tuple[Record, int]] = {}
        self.hot = Hot()
        self.archived: set[int] = set()
        self.mark = 0
        self.cut = 0
        self.begun = False
        self.copy: tuple[dict[bytes, bytes], Hot] | None = None
        self.may_jump = False

    def run(self, step: Any) -> Any:
        return self.tiers.run(step)

    @property
    def streams(self) -> Any:
        return self.tiers.storage.streams

    @property
    def readable(self) -> set[int]:
        """Readable offsets; a restored hot store has forgotten truncations, the archive has not."""
        return self.hot.offsets | {one for one in self.archived if one >= self.cut}

    # Changes

    @rule(records=RECORDS)
    def append(self, records: list[Record]) -> None:
        appended = self.run(self.streams.append_to_shard(self.name, 0, records))
        first, now_ms = appended[0].offset, self.tiers.clock.now_ms()
        assert first > max(self.ever, default=-1)  # S1: never assigned before
        for nth, record in enumerate(records):
            self.ever[first + nth] = (record, now_ms)
            self.hot.offsets.add(first + nth)
        self.hot.tip, self.may_jump = first + len(records), False

    @rule(step_ms=st.sampled_from([1, 5 * limits.MINUTE_MS, HOT_MS, limits.HOUR_MS]))
    def advance(self, step_ms: int) -> None:
        self.tiers.clock.advance(step_ms)

    @precondition(lambda self: self.ever)
    @rule()
    def archive_stream(self) -> None:
        self.run(archive_stream(self.tiers.storage, self.tiers.stores, self.name))
        self.begun = True
        since = max(self.mark, self.cut)
        self.archived |= {offset for offset in self.hot.offsets if offset >= since}
        self.mark = max(self.mark, self.hot.tip)
        self.trim()  # as a commit does itself, if there was anything to archive

    @rule()
    def trim(self) -> None:
        self.run(self.streams.trim(self.name, 10_000))
        self.trimmed()

    def trimmed(self) -> None:
        oldest_ms = self.tiers.clock.now_ms() - HOT_MS
        young = [offset for offset in self.hot.offsets if self.ever[offset][1] > oldest_ms]
        edge = min(self.mark, min(young, default=self.hot.tip))
        self.hot.start = max(self.hot.start, edge)
        self.hot.offsets = {offset for offset in self.hot.offsets if offset >= self.hot.start}

    @precondition(lambda self: self.ever)
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        before = data.draw(st.integers(0, self.hot.tip))
        self.run(self.streams.truncate(self.name, 0, before))
        if self.begun:
            self.cut = max(self.cut, before)
        self.hot.start = max(self.hot.start, before)
        self.hot.offsets = {offset for offset in self.hot.offsets if offset >= before}

    @rule()
    def join_files(self) -> None:
        planner = self.tiers.storage.archive_planner
        self.run(planner.plan_compaction())
        claimed = self.run(self.tiers.storage.jobs.claim("test", [JobKind.COMPACT]))
        if claimed is None:
            return
        root = open_root(self.tiers.stores.archive_url or "")
        runs = self.run(planner.to_compact("default"))
        swaps = [(run, compact_files(root, "default", run)) for run in runs]
        self.run(self.tiers.storage.archive_committer.commit_compaction(claimed.claim, swaps, {}))

    @rule()
    def restart(self) -> None:
        self.tiers.close()
        self.tiers.storage = self.tiers.open()

    @precondition(lambda self: self.ever)
    @rule()
    def take_a_copy(self) -> None:
        dumped = {key: self.redis.dump(key) for key in self.keys}
        present = {key: bytes(dump) for key, dump in dumped.items() if dump}
        self.copy = (present, deepcopy(self.hot))

    @precondition(lambda self: self.copy is not None)
    @rule()
    def restore_the_copy(self) -> None:
        """Restore; what was acknowledged since is lost, unless it was archived."""
        assert self.copy is not None
        dumps, hot = self.copy
        self.redis.delete(*self.keys)
        self.redis.delete(STORE_KEY)
        for key, dump in dumps.items():
            self.redis.restore(key, 0, dump)
        epoch = self.streams._provisioner._epoch
        epoch._run_id = ""
        self.run(epoch.check())
        self.hot, self.may_jump, self.restored = deepcopy(hot), True, True

    # Reads

    @precondition(lambda self: self.ever)
    @rule(data=st.data(), limit=st.integers(1, 8), bytes_max=st.sampled_from([1, 7, 10_000]))
    def read(self, data: st.DataObject, limit: int, bytes_max: int) -> None:
        offset = data.draw(st.integers(0, max(self.ever) + 2))
        try:
            found = self.read_one(ReadFrom(offset=offset), limit, bytes_max)
        except OffsetExpired as expired:
            start = expired.facts["earliest_offset"]
            assert offset < start <= min(self.readable, default=start)
            return
        except OffsetOutOfRange:
            assert offset > self.hot.tip
            assert offset not in self.readable
            return
        if offset != self.hot.tip or not self.may_jump:
            self.check(offset, limit, found)

    def read_one(self, where: ReadFrom, limit: int, bytes_max: int = 10_000) -> ShardRead:
        shard_read: ShardRead = self.run(
            self.tiers.storage.record_reader.read_shard(
                self.name, 0, where, records_max=limit, bytes_max=bytes_max
            )
        )
        return shard_read

    def check(self, offset: int, limit: int, found: ShardRead) -> None:
        got = [one.offset for one in found.records]
        between = sorted(one for one in self.readable if offset <= one < found.next_offset)
        assert got == between  # S3: nothing between two reads is skipped
        assert len(got) <= limit
        for one in found.records:
            assert (one.record, one.arrival_ms) == self.ever[one.offset]  # S1
        first = got[0] if got else found.next_offset
        assert (found.gap is None) == (first == offset)
        if found.gap is not None:
            assert (found.gap.first, found.gap.next) == (offset, first)
        if any(one >= offset for one in self.readable):
            assert found.next_offset > offset

    @precondition(lambda self: self.ever and not self.may_jump)
    @rule(limit=st.integers(1, 8))
    def read_everything(self, limit: int) -> None:
        """Read from the oldest record to the tip."""
        found = self.read_one(ReadFrom(time_ms=0), limit)
        got = [record.offset for record in found.records]
        while found.next_offset < found.tip:
            before = found.next_offset
            found = self.read_one(ReadFrom(offset=before), limit)
            assert found.next_offset > before
            got += [record.offset for record in found.records]
        assert got == sorted(self.readable)

    @precondition(lambda self: self.ever and not self.may_jump)
    @rule(count=st.integers(1, 12))
    def read_the_last(self, count: int) -> None:
        found = self.read_one(ReadFrom(tail=count), 10_000)
        first = found.gap.first if found.gap else found.next_offset - len(found.records)
        assert first >= self.hot.tip - count
        wanted = {one for one in self.readable if self.hot.tip - count <= one < found.next_offset}
        assert {one.offset for one in found.records} == wanted

    @precondition(lambda self: self.ever and not self.may_jump)
    @rule(data=st.data(), off_by=st.integers(-1, 1))
    def read_from_a_time(self, data: st.DataObject, off_by: int) -> None:
        at_ms = data.draw(st.sampled_from([at for _, at in self.ever.values()])) + off_by

        found = self.read_one(ReadFrom(time_ms=at_ms), 1)
        if found.gap is not None and not found.records and found.next_offset < found.tip:
            found = self.read_one(ReadFrom(offset=found.next_offset), 1)

        later = [one for one in self.readable if self.ever[one][1] >= at_ms]
        assert [one.offset for one in found.records] == sorted(later)[:1]

    @invariant()
    def the_ends_agree(self) -> None:
        [state] = self.run(self.tiers.storage.record_reader.shards(self.name))
        assert state.start <= min(self.readable, default=state.start)
        if self.may_jump and state.next > self.hot.tip:
            assert state.next > max(self.ever)
            self.hot.tip, self.may_jump = state.next, False
        assert state.next == self.hot.tip


def test_every_record_is_read_once_from_either_tier(tiers, redis_url, examples):
    run_state_machine_as_test(
        lambda: TiersMachine(tiers, redis_url),  # type: ignore[arg-type]  # a factory will do
        settings=hypothesis_settings(examples, stateful_step_count=40),
    )
