"""Model of a replica set for random walks: the product's own steps over members, a row and links that fail.

`storage.replication.primary_change` runs unchanged, as coroutines that this scheduler resumes one step at a time: between any
two steps of a controller, another one, a writer, a crash or a broken link may act. A member's log is what it has on disk:
numbers of writes, and the epochs, in order. Invariant D1: what was acknowledged in an epoch is in every later primary.
"""

import random
from collections.abc import Coroutine, Generator, Iterable
from contextlib import suppress
from types import SimpleNamespace, coroutine
from typing import Any

import msgspec

from storage.domain.errors import ReplicaSetRefused
from storage.domain.replication.replica_set import Phase, ReplicaSet, StorePosition
from storage.hot_store.members import Promise, WriteOutcome
from storage.replication.engine import ReplicaSetEngine
from storage.replication.primary_change import attach_members, fail_over, switch_over

EPOCH, BEAT = "epoch", "beat"
SPARE = "S"
STEPS_MAX = 120


class Rules(msgspec.Struct, frozen=True):
    """Rules of the protocol, each of which a test switches off."""

    promises: bool = True  # else: REPLICAOF is conditional on the epoch alone
    conditional: bool = True  # REPLICAOF looks at all
    fence_first: bool = True  # positions are read after the fence
    row_unchanged: bool = (
        True  # a term begins from the row with its primary, not from its term alone
    )
    row_read: bool = True  # the row is read again between a promise and an attachment
    epoch_check: bool = True  # of a write, after its acknowledgements; and clients are dropped


class Violation(AssertionError):
    """An acknowledged write is not in a later primary."""


class Member:
    """One store. `follows`: an address, or None for nobody; `is_primary` takes writes."""

    def __init__(self) -> None:
        self.log: tuple[Any, ...] = ()
        self.epoch = self.position = 0
        self.promise = 0
        self.follows: str | None = None
        self.is_primary = False
        self.is_up = True
        self.incarnation = 0
        """Changes whenever clients are dropped."""

    def append(self, entry: Any) -> None:
        self.log += (entry,)
        if not isinstance(entry, tuple):
            self.position += 1
        elif entry[0] == EPOCH:
            self.epoch = entry[1]

    def serves(self, epoch: int | None = None) -> bool:
        """Return whether it takes writes, of this epoch if one is given."""
        return self.is_up and self.is_primary and epoch in (None, self.epoch)

    def furthest(self) -> StorePosition:
        return StorePosition(self.epoch, self.position)

    def copy(self, other: "Member") -> None:
        self.log, self.epoch, self.position = other.log, other.epoch, other.position

    def detach(self) -> None:
        self.follows, self.is_primary = None, False
        self.incarnation += 1


@coroutine
def step() -> Generator[None]:
    """Let the others act."""
    yield


class World:
    """Members, row, links, controllers and writers of one walk."""

    def __init__(
        self,
        seed: int,
        rules: Rules,
        *,
        addresses: str = "ABC",
        min_insync: int = 2,
        loses_disk: bool = False,
        raises_min_insync: bool = False,
        replaces_member: bool = False,
    ) -> None:
        self.random = random.Random(seed)
        self.rules = rules
        self.members = {address: Member() for address in (*addresses, SPARE)}
        self.row = ReplicaSet(
            members=tuple(addresses),
            primary=addresses[0],
            term=1,
            epoch=1,
            phase=Phase.NORMAL,
            min_insync_replicas=min_insync,
        )
        self.broken: set[frozenset[str]] = set()
        self.acknowledged: list[tuple[int, int]] = []
        self.primaries: list[tuple[int, frozenset[Any]]] = []
        self.writes = self.controllers = 0
        self.changes = 0
        self.may_lose_disk = loses_disk
        self.may_raise = raises_min_insync
        self.may_replace = replaces_member
        self.replicating = (*addresses, SPARE) if replaces_member else tuple(addresses)
        primary = self.members[addresses[0]]
        primary.is_primary = True
        primary.append((EPOCH, 1))
        for address in addresses:
            member = self.members[address]
            member.promise = 1
            member.copy(primary)
            if member is not primary:
                member.follows = addresses[0]

    def walk(self) -> None:
        """Run the walk. Raises Violation."""
        running: list[Coroutine[Any, Any, Any]] = []
        try:
            for _ in range(STEPS_MAX):
                self._act(running)
        finally:
            for work in running:
                with suppress(RuntimeError):  # the one that raised has ended
                    work.close()

    def _act(self, running: list[Coroutine[Any, Any, Any]]) -> None:
        chance = self.random.random()
        if chance < 0.52 and running:
            self._resume(running)
        elif chance < 0.60 and len(running) < 4:
            running.append(self._write())
        elif chance < 0.66 and self.controllers < 2:
            self.controllers += 1
            running.append(self._control(self.random.choice("12")))
        elif chance < 0.94:
            self._replicate()
        else:
            self._fail()

    def _resume(self, running: list[Coroutine[Any, Any, Any]]) -> None:
        # Mostly the one that ran last, so that changes come to an end; any other stalls meanwhile.
        nth = -1 if self.random.random() < 0.6 else self.random.randrange(len(running))
        work = running[nth]
        try:
            work.send(None)
        except StopIteration:
            running.remove(work)

    def can_reach(self, one: str, other: str) -> bool:
        """Return whether two ends are linked and the member is up."""
        return self.members[other].is_up and frozenset((one, other)) not in self.broken

    def _fail(self) -> None:
        address = self.random.choice(self.row.members)
        member = self.members[address]
        kind = self.random.random()
        if kind < 0.30:
            ends = [*self.replicating, "1", "2"]
            self.broken.add(frozenset(self.random.sample(ends, 2)))
        elif kind < 0.55:
            self.broken.clear()
        elif kind < 0.75 and member.is_up:
            member.is_up = False
            member.detach()
        elif kind < 0.80 and self.may_lose_disk and member.is_up:
            self.may_lose_disk = False
            member.detach()
            member.copy(Member())
            member.promise = 0
        else:
            for other in self.members.values():
                other.is_up = True

    def _replicate(self) -> None:
        address = self.random.choice(self.replicating)
        member = self.members[address]
        if not member.is_up or member.follows is None:
            return
        primary = self.members[member.follows]
        if not primary.is_primary or not self.can_reach(address, member.follows):
            return
        length = len(member.log)
        if primary.log[:length] != member.log or not length:
            member.copy(primary)  # a full resync replaces the promise too
            member.promise = primary.promise
            member.incarnation += 1
            return
        for entry in primary.log[length : length + self.random.randint(1, 3)]:
            member.append(entry)

    async def _write(self) -> None:
        """Write to the store that the row of a moment ago names, as a flush does."""
        row = self.row
        if row.phase is not Phase.NORMAL:
            return
        primary = self.members[row.primary]
        if not primary.serves(row.epoch):
            return
        await step()
        incarnation = primary.incarnation
        if not primary.serves(row.epoch if self.rules.epoch_check else None):
            return
        self.writes += 1
        write = self.writes
        primary.append(write)
        length = len(primary.log)
        await step()
        await step()
        while True:
            if self.rules.epoch_check and primary.incarnation != incarnation:
                return
            received = self.received(row.primary, length, write)
            if received >= row.acknowledging_replicas and primary.serves():
                break
            await step()
        await step()
        if self.rules.epoch_check and (
            primary.incarnation != incarnation or primary.epoch != row.epoch
        ):
            return
        self.acknowledged.append((row.epoch, write))
        for epoch, log in self.primaries:
            if epoch > row.epoch and write not in log:
                raise Violation(f"{write} of epoch {row.epoch} is not in epoch {epoch}")

    def received(self, primary: str, length: int, entry: Any) -> int:
        """Return how many replicas have an entry, whoever they are, as WAIT does."""
        return sum(
            member.follows == primary
            and member.is_up
            and self.can_reach(address, primary)
            and member.log[length - 1 : length] == (entry,)
            for address, member in self.members.items()
        )

    async def _control(self, name: str) -> None:
        try:
            await self._act_once(_Members(self, name))
        finally:
            self.controllers -= 1

    async def _act_once(self, members: "_Members") -> None:
        """Act as a controller does, from a row that may be outdated by the next step."""
        seen = self.row
        await step()
        if seen.phase is Phase.NORMAL and self.random.random() < 0.4:
            facts = await members.observe(seen.members)
            await attach_members(_Rows(self, seen), members, seen, facts)
        elif self.may_raise and seen.phase is Phase.NORMAL and self.random.random() < 0.5:
            self.may_raise = False
            count = seen.min_insync_replicas + 1
            await switch_over(
                _Rows(self, seen), members, seen, seen.primary, min_insync_replicas=count
            )
        elif self.may_replace and seen.phase is Phase.NORMAL and self.random.random() < 0.5:
            self.may_replace = False
            old = self.random.choice([one for one in seen.members if one != seen.primary])
            rows: Any = _Rows(self, seen)
            engine = ReplicaSetEngine(rows, members)
            with suppress(ReplicaSetRefused):
                await engine.replace(old, SPARE)
        else:
            self.changes += 1
            result = await fail_over(_Rows(self, seen), members, seen)
            if result.highest >= result.term and self.row.term == result.term:
                await fail_over(_Rows(self, seen), members, self.row, result.highest)

    def promoted(self, member: Member) -> None:
        """Check D1 for a new primary."""
        log = frozenset(member.log)
        for epoch, write in self.acknowledged:
            if epoch < member.epoch and write not in log:
                raise Violation(f"{write} of epoch {epoch} is not in epoch {member.epoch}")
        self.primaries.append((member.epoch, log))


class _Rows:
    """The row; a step that is lost on its way has not happened."""

    def __init__(self, world: World, last: ReplicaSet) -> None:
        self._world = world
        self._last = last

    async def read(self) -> ReplicaSet:
        await step()
        return self._world.row if self._world.rules.row_read else self._last

    async def begin(self, term: int, *, after: ReplicaSet, phase: Phase) -> bool:
        await step()
        row = self._world.row
        is_same = row.epoch == after.epoch or not self._world.rules.row_unchanged
        if row.term != after.term or not is_same:
            return False
        self._world.row = msgspec.structs.replace(row, term=term, phase=phase)
        return True

    async def replace(self, term: int, old: str, new: str) -> bool:
        await step()
        row = self._world.row
        if row.term != term or row.phase is not Phase.NORMAL:
            return False
        members = tuple(new if member == old else member for member in row.members)
        self._world.row = msgspec.structs.replace(row, term=term + 1, members=members)
        return True

    async def promote(
        self, term: int, primary: str, *, min_insync_replicas: int | None = None
    ) -> bool:
        await step()
        row = self._world.row
        if row.term != term or row.phase not in (Phase.FENCE, Phase.SWITCH):
            return False
        count = min_insync_replicas or row.min_insync_replicas
        self._world.row = msgspec.structs.replace(
            row, primary=primary, epoch=term, phase=Phase.PROMOTE, min_insync_replicas=count
        )
        return True

    async def end(self, term: int) -> bool:
        await step()
        if self._world.row.term != term:
            return False
        self._world.row = msgspec.structs.replace(self._world.row, phase=Phase.NORMAL)
        return True


class _Members:
    """The members as one controller reaches them; steps at different members are interleaved."""

    def __init__(self, world: World, controller: str) -> None:
        self._world = world
        self._controller = controller

    def _reachable(self, addresses: Iterable[str]) -> list[str]:
        shuffled = list(addresses)
        self._world.random.shuffle(shuffled)
        return shuffled

    def _can_reach(self, address: str) -> bool:
        return self._world.can_reach(self._controller, address)

    def normalize(self, address: str) -> str:
        return address

    async def numeric_addresses(self, addresses: Iterable[str]) -> dict[str, str]:
        return {address: address for address in addresses}

    async def observe(self, addresses: Iterable[str]) -> dict[str, Any]:
        await step()
        return {address: self._facts(address) for address in addresses if self._can_reach(address)}

    def _facts(self, address: str) -> Any:
        member = self._world.members[address]
        attached = [
            SimpleNamespace(address=other)
            for other, replica in self._world.members.items()
            if replica.follows == address and self._world.can_reach(address, other)
        ]
        return SimpleNamespace(
            follows=member.follows,
            is_primary=member.is_primary,
            has_data=bool(member.log),
            run_id=address,
            replicas=attached,
        )

    async def store_min_insync(self, address: str, epoch: int, count: int) -> None:
        await step()

    async def confirm(self, address: str, epoch: int, replicas: int, wait_ms: int) -> WriteOutcome:
        world, primary = self._world, self._world.members[address]
        await step()
        if not self._can_reach(address) or not primary.serves(epoch):
            return WriteOutcome.NOT_PRIMARY
        incarnation = primary.incarnation
        world.writes += 1
        entry = (BEAT, world.writes)
        primary.append(entry)
        length = len(primary.log)
        for _ in range(6):
            await step()
            if primary.incarnation != incarnation or not primary.serves(epoch):
                break
            if world.received(address, length, entry) >= replicas:
                return WriteOutcome.CONFIRMED
        return WriteOutcome.UNCONFIRMED

    async def promise(
        self, addresses: Iterable[str], term: int, *, again: bool = False
    ) -> dict[str, Promise]:
        world, promises = self._world, {}
        early = {}
        if not world.rules.fence_first:
            for address in self._reachable(addresses):
                early[address] = world.members[address].furthest()
                await step()
        for address in self._reachable(addresses):
            await step()
            if not self._can_reach(address):
                continue
            member = world.members[address]
            highest = max(member.promise, member.epoch)
            if again and member.promise == term >= member.epoch:
                promises[address] = Promise(True, highest, member.furthest())
                continue
            if world.rules.promises and highest >= term + again:
                promises[address] = Promise(False, highest, member.furthest())
                continue
            if world.rules.promises:
                member.promise = term
            member.detach()
            await step()
            if self._can_reach(address):
                position = early.get(address, member.furthest())
                promises[address] = Promise(True, highest, position)
        return promises

    async def detach(self, addresses: Iterable[str], term: int) -> frozenset[str]:
        detached = set()
        for address in self._reachable(addresses):
            await step()
            member = self._world.members[address]
            if self._can_reach(address) and max(member.promise, member.epoch) <= term:
                member.promise = term
                member.detach()
                detached.add(address)
        return frozenset(detached)

    async def attach(self, addresses: Iterable[str], primary: str, term: int) -> frozenset[str]:
        world, attached = self._world, set()
        for address in self._reachable(addresses):
            await step()
            if not self._can_reach(address):
                continue
            member = world.members[address]
            if world.rules.conditional and not self._may_follow(member, term):
                continue
            if member.follows != primary:
                member.detach()
                member.follows = primary
            attached.add(address)
        return frozenset(attached)

    def _may_follow(self, member: Member, term: int) -> bool:
        if self._world.rules.promises:
            return member.promise == term
        return member.epoch <= term

    async def promote(self, address: str, term: int, min_insync: int) -> bool:
        world = self._world
        await step()
        member = world.members[address]
        if not self._can_reach(address) or (world.rules.promises and member.promise != term):
            return False
        member.follows, member.is_primary = None, True
        await step()
        if not self._can_reach(address) or (world.rules.promises and member.promise != term):
            return False
        if not member.is_primary:
            return False
        member.append((EPOCH, term))
        world.promoted(member)
        return True
