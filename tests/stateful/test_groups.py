"""A consumer group compared with what its members were told (G1 to G3).

Members crash, sleep past their session and then commit, leave and return; there are resets, and
shards are split and merged. Processes die or are suspended between the steps of a rebalance, and
offsets in the hot store are lost. The model makes no decisions: it records who was told what, and checks
that this is consistent.
"""

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, ExitStack
from dataclasses import dataclass, field
from functools import partial

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from storage.bootstrap import Storage, open_storage
from storage.domain.errors import (
    MemberUnknown,
    OffsetOutOfRange,
    StaleGeneration,
    StorageUnavailable,
)
from storage.domain.groups.group import (
    Commit,
    GroupOffset,
    GroupSpec,
    Membership,
    ResetSpec,
    ResetTo,
)
from storage.domain.limits import Limits
from storage.domain.log.record_batch import Record
from storage.domain.names import GroupName, StreamName
from storage.domain.streams.stream import StreamSpec
from storage.settings import StorageSettings
from tests.group_faults import FormerRelease, interrupt, lose_offsets
from tests.stateful.conftest import Bench

SESSION_MS, STATIC_MS, REVOKE_MS = 10_000, 25_000, 15_000
MEMBERS = st.sampled_from(["ann", "ben", "cat", "static"])
PROCESSES = st.sampled_from([0, 1])


@dataclass
class ShardModel:
    """A shard: records, whether it is closed, committed offset, owners by generation."""

    parents: tuple[int, ...] = ()
    records: list[bytes] = field(default_factory=list)
    closed: bool = False
    committed: int | None = None
    finished: bool = False
    owners: dict[int, str] = field(default_factory=dict)
    fenced_before: int = 0

    @property
    def is_over(self) -> bool:
        """Return whether the group has read it to its end; true for an empty closed shard."""
        return self.closed and (self.committed or 0) == len(self.records)


@dataclass
class MemberModel:
    """A member's own, possibly outdated view: the last response."""

    generation: int = 0
    shards: tuple[int, ...] = ()
    revoked: tuple[int, ...] = ()
    heartbeat_ms: int = -1
    alive: bool = False


class GroupMachine(RuleBasedStateMachine):
    """One group, served by two processes, and by one of the former release."""

    def __init__(self, bench: Bench, processes: list[Storage], database_url: str) -> None:
        super().__init__()
        self.bench = bench
        self.processes = processes
        self.faults = [interrupt(process) for process in processes]
        self.database_url = database_url
        self.run = bench.run

    @initialize(shards=st.integers(1, 4))
    def create(self, shards: int) -> None:
        self.stream = StreamName(self.bench.new_name("stream"))
        self.group = GroupName(self.bench.new_name("group"))
        storage = self.processes[0]
        self.run(storage.catalog.put_stream(self.stream, StreamSpec(shards=shards)))
        spec = GroupSpec(
            stream=self.stream.name,
            session_timeout_ms=SESSION_MS,
            static_timeout_ms=STATIC_MS,
            revoke_timeout_ms=REVOKE_MS,
        )
        self.run(storage.groups.put(self.group, spec))
        self.former = FormerRelease(self.database_url, self.group)
        for fault in self.faults:
            fault.withheld.clear()
        self.shards = {index: ShardModel() for index in range(shards)}
        self.members: dict[str, MemberModel] = {}
        self.read: list[tuple[str, int, dict[int, int]]] = []
        self.written = 0

    # Responses to members

    def note(self, membership: Membership) -> None:
        """Check that a response contradicts nothing that other members were told."""
        member = self.members.setdefault(membership.member_id, MemberModel())
        assert membership.generation >= member.generation
        for place in (*membership.assigned, *membership.revoked):
            shard = self.shards[place.shard]
            for generation in range(place.generation, membership.generation + 1):
                if generation - place.generation > 50:
                    break
                told = shard.owners.setdefault(generation, membership.member_id)
                assert told == membership.member_id  # G1
            assert place.committed == shard.committed
            assert all(self.shards[parent].is_over for parent in shard.parents)
        member.generation = membership.generation
        member.shards = tuple(place.shard for place in membership.assigned)
        member.revoked = tuple(place.shard for place in membership.revoked)

    def beaten(self, name: str) -> None:
        """Record a heartbeat; members whose session expired are removed."""
        member = self.members.setdefault(name, MemberModel())
        member.alive, member.heartbeat_ms = True, self.bench.clock.now_ms()
        self.look()

    def look(self) -> None:
        """Remove members whose session has expired."""
        for name, member in self.members.items():
            allowed = STATIC_MS if name == "static" else SESSION_MS
            if self.bench.clock.now_ms() - member.heartbeat_ms >= allowed:
                member.alive = False

    def groups(self, process: int):
        return self.processes[process].groups

    # Members

    @rule(
        what=st.sampled_from(["work", "work", "work", "fetch", "beat", "give up", "join", "leave"]),
        name=MEMBERS,
        process=PROCESSES,
        data=st.data(),
        commits=st.booleans(),
    )
    def act(self, what: str, name: str, process: int, data: st.DataObject, commits: bool) -> None:
        """Let a member act; a static one only joins and sends heartbeats."""
        match what:
            case "work" | "fetch" if name != "static":
                if what == "work":
                    self.append(data, 3)
                self.fetch(name, process, 9 if what == "work" else 2)
                if commits and self.read:
                    self.commit_read(process, *self.read[-1])
            case "give up" | "beat":
                self.heartbeat(name, process, gives_up=what == "give up")
            case "leave":
                self.leave(name, process)
            case _:
                self.join(name, process)

    def join(self, name: str, process: int) -> None:
        who = {"instance_id" if name == "static" else "member_id": name}
        membership = self.run(self.groups(process).join(self.group, **who))
        self.beaten(name)
        self.note(membership)

    def fetch(self, name: str, process: int, limit: int) -> None:
        groups = self.groups(process)
        fetched = self.run(groups.fetcher.fetch(self.group, name, records_max=limit))
        self.beaten(name)
        self.follow_finished()
        self.note(fetched.membership)
        assert fetched.membership.revoked == ()
        for read in fetched.reads:
            shard = self.shards[read.shard]
            start = shard.committed or 0
            data = [record.record.data for record in read.records]
            assert data == shard.records[start : start + len(data)]
            assert data or start == len(shard.records)
        if fetched.positions:
            self.read.append((name, fetched.membership.generation, dict(fetched.positions)))

    def follow_finished(self) -> None:
        """Adopt shards that a fetch or a sweep finished without a commit."""
        _, _, found = self.run(self.processes[0].groups.describe(self.group))
        for index, one in found.items():
            shard = self.shards[index]
            if one.lease.finished and shard.committed is None and shard.is_over:
                shard.committed = one.committed

    def heartbeat(self, name: str, process: int, gives_up: bool) -> None:
        member = self.members.setdefault(name, MemberModel())
        owned = member.shards if gives_up else None
        beat = self.groups(process).heartbeat(self.group, name, owned=owned)
        if not member.alive:
            with pytest.raises(MemberUnknown):
                self.run(beat)
            return
        membership = self.run(beat)
        self.beaten(name)
        self.note(membership)

    def leave(self, name: str, process: int) -> None:
        member = self.members.setdefault(name, MemberModel())
        self.run_or_unknown(self.groups(process).leave(self.group, name), member.alive)
        member.alive = False
        self.look()

    def run_or_unknown(self, coroutine, expected: bool) -> None:
        if expected:
            self.run(coroutine)
        else:
            with pytest.raises(MemberUnknown):
                self.run(coroutine)

    # Commits of anything a member read or believes to own, possibly outdated

    @precondition(lambda self: self.read)
    @rule(data=st.data(), process=PROCESSES)
    def commit_late(self, data: st.DataObject, process: int) -> None:
        """Commit anything that was ever read, as by a reader that slept."""
        nth = data.draw(st.integers(0, len(self.read) - 1))
        self.commit_read(process, *self.read[nth])

    def commit_read(
        self, process: int, name: str, generation: int, positions: dict[int, int]
    ) -> None:
        for index, offset in positions.items():
            self.commit(process, Commit(index, offset, name, generation))

    @precondition(lambda self: any(member.generation for member in self.members.values()))
    @rule(data=st.data(), process=PROCESSES)
    def commit_anything(self, data: st.DataObject, process: int) -> None:
        names = [name for name, member in self.members.items() if member.generation]
        name = data.draw(st.sampled_from(names))
        index = data.draw(st.sampled_from(self.members[name].shards or sorted(self.shards)))
        offset = data.draw(st.integers(0, len(self.shards[index].records) + 1))
        self.commit(process, Commit(index, offset, name, self.members[name].generation))

    def commit(self, process: int, commit: Commit) -> None:
        member, shard = self.members[commit.member_id], self.shards[commit.shard]
        generation, before = commit.generation or 0, shard.committed
        is_new = not shard.owners and commit.shard not in self.shards_of_the_group()

        [result] = self.run(self.groups(process).commit(self.group, [commit]))

        if is_new and commit.offset <= len(shard.records):
            self.look()  # an unknown shard makes the group settle first
        if commit.offset > len(shard.records):
            assert isinstance(result, OffsetOutOfRange)  # G3
        elif isinstance(result, GroupOffset):
            others = [at for at, owner in shard.owners.items() if owner != commit.member_id]
            assert max(others, default=0) <= generation  # G2
            assert shard.fenced_before <= generation  # G2
            assert result.offset == max(before or 0, commit.offset)  # G3
            shard.committed = result.offset
        else:
            assert isinstance(result, StaleGeneration | MemberUnknown)
            told_last = generation == member.generation and member.alive
            holds = commit.shard in (*member.shards, *member.revoked)
            assert not (told_last and holds) or self.may_have_moved(commit.member_id)

    def shards_of_the_group(self) -> set[int]:
        """Shards that the group knows; recently split or merged ones are missing."""
        _, _, found = self.run(self.processes[0].groups.describe(self.group))
        return set(found)

    def may_have_moved(self, name: str) -> bool:
        """Return whether the member's view may be outdated without its having been told."""
        group, _, _ = self.run(self.processes[0].groups.describe(self.group))
        return group.generation > self.members[name].generation

    # The group

    @rule(
        what=st.sampled_from(["reset", "sweep", "sweep", "split", "merge", "time", "time"]),
        process=PROCESSES,
        data=st.data(),
    )
    def upheaval(self, what: str, process: int, data: st.DataObject) -> None:
        """Change something for all members."""
        match what:
            case "reset":
                some = [ResetTo.EARLIEST, ResetTo.LATEST, ResetTo.OFFSETS]
                self.reset(data.draw(st.sampled_from(some)), process, data)
            case "sweep":
                self.sweep(process)
            case "split" if len(self.shards) < 12:
                self.split(data)
            case "merge" if len(self.shards) < 12 and len(self.open_shards()) > 1:
                self.merge()
            case _:
                some_ms = [1, 3_000, 9_999, 10_000, 26_000]
                self.bench.clock.advance(data.draw(st.sampled_from(some_ms)))

    def reset(self, to: ResetTo, process: int, data: st.DataObject) -> None:
        index = data.draw(st.sampled_from(sorted(self.shards)))
        some = data.draw(st.integers(0, len(self.shards[index].records)))
        spec = (
            ResetSpec(to=to, offsets={index: some}) if to is ResetTo.OFFSETS else ResetSpec(to=to)
        )
        returned_process = self.run(self.groups(process).positions.reset(self.group, spec))

        self.look()
        group, _, _ = self.run(self.groups(process).describe(self.group))
        for one in returned_process:
            shard = self.shards[one.shard]
            wanted = {ResetTo.EARLIEST: 0, ResetTo.LATEST: len(shard.records)}.get(to, some)
            assert (one.before, one.after) == (shard.committed, wanted)
            shard.committed = wanted
            shard.fenced_before = max(
                shard.fenced_before, *(member.generation + 1 for member in self.members.values()), 0
            )
        assert all(group.generation > member.generation for member in self.members.values())

    def sweep(self, process: int) -> None:
        self.run(self.groups(process).rebalance_all())
        self.look()
        self.follow_finished()

    # Processes that die or are suspended in a rebalance, and a store that loses offsets

    @rule(
        what=st.sampled_from(["dies", "is suspended", "wakes", "freezes late"]), process=PROCESSES
    )
    def interrupt_rebalance(self, what: str, process: int) -> None:
        """Interrupt a process between freeze and commit, or commit and seed, or let it go on late."""
        fault = self.faults[process]
        match what:
            case "dies":
                fault.dies_after_freeze = True
                with pytest.raises(StorageUnavailable):
                    self.run(self.groups(process).join(self.group, member_id="dan"))
            case "is suspended":
                fault.withholds_seeds = True
                self.join("ann", process)
                fault.withholds_seeds = False
            case "wakes" if fault.withheld:
                self.run(fault.send_withheld())
            case _:
                self.run(fault._hot.freeze(self.run(self.groups(process).get(self.group)), "late"))

    @rule(process=PROCESSES)
    def lose_offsets(self, process: int) -> None:
        """Lose the group's offsets in the hot store, which the rows have."""
        for storage in self.processes:
            self.run(storage.groups.copier.close())
        self.run(lose_offsets(self.processes[process], self.group))

    @precondition(lambda self: self.read)
    @rule(data=st.data())
    def commit_by_former_release(self, data: st.DataObject) -> None:
        """Commit to the rows alone, as a process does that was not upgraded yet."""
        name, generation, positions = data.draw(st.sampled_from(self.read))
        for index, offset in positions.items():
            if self.former.commit(Commit(index, offset, name, generation)):
                shard = self.shards[index]
                shard.committed = max(shard.committed or 0, offset)

    # The stream

    def append(self, data: st.DataObject, count: int) -> None:
        index = data.draw(st.sampled_from(self.open_shards()))
        records = [b"%d" % (self.written + nth) for nth in range(count)]
        streams = self.processes[0].streams
        self.run(
            streams.append_to_shard(self.stream, index, [Record(record) for record in records])
        )
        self.shards[index].records += records
        self.written += count

    def split(self, data: st.DataObject) -> None:
        index = data.draw(st.sampled_from(self.open_shards()))
        stream = self.run(self.processes[0].catalog.fresh_stream(self.stream))
        shard = stream.shard(index)
        middle = (shard.first_hash_key + shard.last_hash_key) // 2
        after = self.run(self.processes[0].streams.resharder.split(self.stream, index, middle))
        self.adopt(after)

    def merge(self) -> None:
        stream = self.run(self.processes[0].catalog.fresh_stream(self.stream))
        first, second, *_ = stream.open_shards
        after = self.run(
            self.processes[0].streams.resharder.merge(self.stream, first.index, second.index)
        )
        self.adopt(after)

    def open_shards(self) -> list[int]:
        return [index for index, shard in sorted(self.shards.items()) if not shard.closed]

    def adopt(self, stream) -> None:
        for shard in stream.shards:
            model = self.shards.setdefault(shard.index, ShardModel(parents=shard.parents))
            model.closed = not shard.is_open

    # Invariants

    @invariant()
    def the_group_is_where_the_model_is(self) -> None:
        if not hasattr(self, "shards"):
            return
        _, members, found = self.run(self.processes[0].groups.describe(self.group))
        for index, one in found.items():
            shard = self.shards[index]
            assert one.committed == shard.committed  # G2, G3
            assert (one.committed or 0) <= len(shard.records)  # G3
        member_ids = {member.member_id for member in members}
        assert {name for name, member in self.members.items() if member.alive} == member_ids

    def teardown(self) -> None:
        """Check that, after a few fetches by everyone, every readable shard has one owner."""
        if not hasattr(self, "shards"):
            return
        for _ in range(4):
            for name in ("ann", "ben", "cat"):
                self.run(self.processes[0].groups.fetcher.fetch(self.group, name))
        _, members, found = self.run(self.processes[0].groups.describe(self.group))
        over = {index for index, one in found.items() if one.lease.finished}
        readable = {
            index
            for index, shard in self.shards.items()
            if index not in over and over.issuperset(shard.parents)
        }
        owned = {index for index, one in found.items() if one.lease.owner}
        assert owned == readable
        names = [member.member_id for member in members]
        counts = [sum(one.lease.owner == name for one in found.values()) for name in names]
        static_holds = "static" in names  # it gives up nothing by itself
        assert static_holds or max(counts) - min(counts) <= 1


@pytest.fixture
def processes(bench: Bench, redis_url: str, database_url: str) -> Iterator[list[Storage]]:
    """Two processes on the same stores; time may leap without counting as an outage."""
    stores = StorageSettings(redis_url=redis_url, database_url=database_url)
    limits = Limits(outage_ms=10**15)
    with ExitStack() as stack:
        opened = []
        for _ in range(2):
            context = open_storage(stores, clock=bench.clock, limits=limits)
            opened.append(bench.run(context.__aenter__()))
            stack.callback(_close, bench, context)
        yield opened


def _close(bench: Bench, context: AbstractAsyncContextManager[Storage]) -> None:
    bench.run(context.__aexit__(None, None, None))


def test_group_satisfies_invariants(bench, processes, database_url):
    shorter = settings(
        bench.half,
        stateful_step_count=30,
        phases=[Phase.reuse, Phase.generate, Phase.shrink],
    )
    machine = partial(GroupMachine, bench, processes, database_url)
    run_state_machine_as_test(machine, settings=shorter)  # type: ignore[arg-type]
