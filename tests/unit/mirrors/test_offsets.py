"""Offset tables: a translated offset never skips a record that the group has not read."""

import random
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.domain import limits
from storage.domain.mirrors.offsets import (
    OffsetBound,
    OffsetTable,
    ShardPosition,
    TargetShard,
    safe_offsets,
)

RING = 16


@pytest.fixture(autouse=True)
def _dense(monkeypatch):
    monkeypatch.setattr(limits, "MIRROR_OFFSET_INTERVAL", 3)
    monkeypatch.setattr(limits, "MIRROR_OFFSETS_MAX", 4)


class Log:
    """A shard of either side: its range of hash keys, and what is in it."""

    def __init__(self, first: int, last: int, parents: tuple[int, ...] = ()) -> None:
        self.first, self.last, self.parents = first, last, parents
        self.items: list[Any] = []
        self.is_open = True

    def takes(self, hash_key: int) -> bool:
        return self.first <= hash_key <= self.last


class Side:
    """A stream of shards, of which some are closed: split, or merged."""

    def __init__(self) -> None:
        self.logs = [Log(0, RING - 1)]

    def open_for(self, hash_key: int) -> int:
        return next(n for n, log in enumerate(self.logs) if log.is_open and log.takes(hash_key))

    def split(self, nth: int) -> None:
        log = self.logs[nth]
        if log.is_open and log.first < log.last:
            log.is_open = False
            middle = (log.first + log.last) // 2
            self.logs += [Log(log.first, middle, (nth,)), Log(middle + 1, log.last, (nth,))]

    def merge(self, nth: int) -> None:
        log = self.logs[nth]
        if log.is_open and log.last < RING - 1:
            other = self.open_for(log.last + 1)
            log.is_open = self.logs[other].is_open = False
            self.logs.append(Log(log.first, self.logs[other].last, (nth, other)))

    def reshard(self, chance: random.Random) -> None:
        nth = chance.randrange(len(self.logs))
        chance.choice((self.split, self.split, self.merge))(nth)


class Attempt:
    """A puller: how far it knows that records are copied, its tables, and the tips that it read."""

    def __init__(self, progress: dict[int, int], tables: dict[int, list[OffsetBound]]) -> None:
        self.progress = dict(progress)
        self.tables = {shard: OffsetTable(entries) for shard, entries in tables.items()}
        self.tips: dict[int, int] = {}


class Translation(NamedTuple):
    """A group's positions at the origin, and the offsets that they were translated to."""

    committed: dict[int, int]
    offsets: dict[int, int]


class World:
    """Two deployments and pullers between them, each step of which may be the last."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.origin, self.copy = Side(), Side()
        self.added: set[tuple[int, int]] = set()
        self.committed: dict[int, int] = {}
        self.attempts = [Attempt({}, {})]
        self.translations: list[Translation] = []

    def write(self) -> None:
        for _ in range(self.chance.randint(1, 4)):
            hash_key = self.chance.randrange(RING)
            self.origin.logs[self.origin.open_for(hash_key)].items.append(hash_key)

    def write_here(self) -> None:
        self.copy.logs[self.copy.open_for(self.chance.randrange(RING))].items.append(None)

    def reshard_origin(self) -> None:
        self.origin.reshard(self.chance)

    def reshard_copy(self) -> None:
        self.copy.reshard(self.chance)

    def take_over(self) -> None:
        """Begin another attempt where some attempt was, which goes on."""
        other = self.chance.choice(self.attempts)
        tables = {shard: list(table) for shard, table in other.tables.items()}
        self.attempts.append(Attempt(other.progress, tables))

    def read_tips(self) -> None:
        attempt = self.chance.choice(self.attempts)
        attempt.tips = {nth: len(log.items) for nth, log in enumerate(self.copy.logs)}

    def pull(self) -> None:
        attempt = self.chance.choice(self.attempts)
        shard = self.chance.randrange(len(self.origin.logs))
        log = self.origin.logs[shard]
        if not all(self._has_ended(attempt, parent) for parent in log.parents):
            return
        first = attempt.progress.get(shard, 0)
        tips = {
            nth: tip
            for nth, tip in attempt.tips.items()
            if self.copy.logs[nth].first <= log.last and log.first <= self.copy.logs[nth].last
        }
        batch = list(enumerate(log.items))[first : first + self.chance.randint(1, 4)]
        parts: dict[int, list[int]] = {}
        for offset, hash_key in batch:
            parts.setdefault(self.copy.open_for(hash_key), []).append(offset)
        is_partial = self.chance.random() < 0.2
        added = 0
        for target, offsets in parts.items():
            if is_partial and self.chance.random() < 0.5:
                continue
            for offset in offsets:
                if (shard, offset) not in self.added:
                    self.added.add((shard, offset))
                    self.copy.logs[target].items.append((shard, offset))
                    added += 1
        if is_partial:
            return
        table = attempt.tables.setdefault(shard, OffsetTable())
        is_added = added == len(batch) > 0
        table.observe_read(first, len(log.items), tips, is_added=is_added)
        attempt.progress[shard] = first + len(batch)

    def _has_ended(self, attempt: Attempt, shard: int) -> bool:
        log = self.origin.logs[shard]
        return not log.is_open and attempt.progress.get(shard, 0) == len(log.items)

    def commit(self) -> None:
        shard = self.chance.randrange(len(self.origin.logs))
        least, most = self.committed.get(shard, 0), len(self.origin.logs[shard].items)
        self.committed[shard] = self.chance.choice((self.chance.randint(least, most), most))

    def expire(self) -> None:
        attempt = self.chance.choice(self.attempts)
        starts = {nth: len(log.items) // 2 for nth, log in enumerate(self.copy.logs)}
        for table in attempt.tables.values():
            table.retain(starts)

    def translate(self) -> None:
        attempt = self.chance.choice(self.attempts)
        positions = [
            ShardPosition(
                first_hash_key=log.first,
                last_hash_key=log.last,
                position=self.committed.get(shard, 0),
                offsets=attempt.tables.get(shard, OffsetTable()),
                is_complete=self._has_ended(attempt, shard)
                and self.committed.get(shard, 0) >= attempt.progress.get(shard, 0),
            )
            for shard, log in enumerate(self.origin.logs)
        ]
        targets = [
            TargetShard(nth, log.first, log.last, len(log.items))
            for nth, log in enumerate(self.copy.logs)
        ]
        offsets = safe_offsets(positions, targets)
        self.translations.append(Translation(dict(self.committed), offsets))

    def check(self) -> None:
        for committed, offsets in self.translations:
            for target, safe in offsets.items():
                for item in self.copy.logs[target].items[:safe]:
                    assert item is None or item[1] < committed.get(item[0], 0)

    def settle(self) -> Attempt:
        """Let one attempt copy everything, and the group read it."""
        attempt = self.attempts[0]
        self.attempts = [attempt]
        for _ in range(2):
            while any(
                attempt.progress.get(shard, 0) < len(log.items)
                for shard, log in enumerate(self.origin.logs)
            ):
                self.pull()
            self.read_tips()
        for _ in range(200):
            self.pull()
        self.committed = {n: len(log.items) for n, log in enumerate(self.origin.logs)}
        return attempt


STEPS = (
    *(World.write, World.pull, World.pull, World.read_tips, World.commit, World.translate),
    *(World.reshard_origin, World.reshard_copy, World.take_over, World.write_here, World.expire),
)


@settings(max_examples=300)
@given(st.integers(0, 2**32))
def test_translated_offset_skips_nothing_that_was_not_read(seed):
    """With reshards of both sides, attempts that overlap, lost parts, and others that write here."""
    chance = random.Random(seed)
    world = World(chance)

    for _ in range(80):
        chance.choice(STEPS)(world)

    world.check()


@settings(max_examples=50)
@given(st.integers(0, 2**32))
def test_group_that_has_read_everything_is_at_the_tips(seed):
    chance = random.Random(seed)
    world = World(chance)
    steps = [step for step in STEPS if step not in (World.take_over, World.expire)]
    for _ in range(60):
        chance.choice(steps)(world)

    world.settle()
    world.translate()

    [*_, last] = world.translations
    tips = {n: len(log.items) for n, log in enumerate(world.copy.logs)}
    assert last.offsets == {n: tips[n] for n in last.offsets}
    assert {n for n, log in enumerate(world.copy.logs) if log.is_open} <= last.offsets.keys()
    world.check()


def test_table_is_sparse_and_bounded():
    table = OffsetTable()

    for offset in range(100):
        table.add(offset, {0: 2 * offset})

    entries = list(table)
    assert len(entries) <= limits.MIRROR_OFFSETS_MAX + 1
    assert entries[-1] == (0, 99, 198)


def test_entries_below_the_start_are_dropped():
    table = OffsetTable([OffsetBound(0, 10, 20), OffsetBound(0, 20, 40), OffsetBound(1, 5, 7)])

    table.retain({0: 45})

    assert list(table) == [(0, 20, 40)]
    assert table.floor(0, 15) == 0


def test_changes_are_those_since_the_table_was_stored():
    table = OffsetTable([OffsetBound(0, 10, 20)])
    table.add(10, {0: 30})
    changes = table.changes()
    table.add(50, {0: 90})
    table.mark_stored(changes)

    assert (set(changes.added), set(changes.removed)) == ({(0, 10, 30)}, {(0, 10, 20)})
    assert set(table.changes().added) == {(0, 50, 90)}
