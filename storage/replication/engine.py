"""Replica set: its status, and operations on its primary and its members."""

import asyncio
from collections.abc import Callable, Mapping

import attrs

from storage.domain import limits
from storage.domain.errors import (
    ReplicaSetRefused,
    StorageBusy,
    StorageUnavailable,
    ValidationFailed,
)
from storage.domain.replication.replica_set import (
    MemberRole,
    MemberState,
    MemberStatus,
    Phase,
    PrimaryChange,
    ReplicaSet,
    ReplicaSetStatus,
    StorePosition,
)
from storage.hot_store.members import MemberFacts, ReplicaLink, StoreMembers, WriteOutcome
from storage.postgres.repositories.replica_set import ReplicaSetRows
from storage.replication.decisions import highest_term, next_term
from storage.replication.initialization import check_min_insync
from storage.replication.primary_change import TermResult, attach_members, settle, switch_over

_CHANGED = (
    "The replica set was changed meanwhile, or its primary: look at its status, and try again."
)


@attrs.define(eq=False, slots=False)
class ReplicaSetEngine:
    """The replica set of a deployment. Every method raises StorageUnavailable.

    Operations raise ReplicaSetRefused when nothing was changed, ValidationFailed for what is no address.
    `on_primary_change` is called with the kind of each change of the primary that one has made.
    """

    _rows: ReplicaSetRows
    _members: StoreMembers
    _on_primary_change: Callable[[PrimaryChange], object] = lambda kind: None
    _cached: ReplicaSet | None = attrs.field(default=None, init=False)

    async def status(self) -> ReplicaSetStatus:
        """Return the replica set and the state of its members, as far as they answer.

        While Postgres is away, the replica set is the one that this process read last.
        """
        return await self._observe(await self.current())

    async def current(self) -> ReplicaSet:
        """Return the replica set, while Postgres is away as it was read last."""
        try:
            return await self._read()
        except (StorageUnavailable, StorageBusy):
            if self._cached is None:
                raise
            return self._cached

    async def _observe(self, replica_set: ReplicaSet) -> ReplicaSetStatus:
        facts, numeric = await asyncio.gather(
            self._members.observe(replica_set.members),
            self._members.numeric_addresses(replica_set.members),
        )
        links = _links(replica_set, facts, numeric)
        return ReplicaSetStatus(
            replica_set=replica_set,
            members=tuple(
                _member_status(address, replica_set, facts.get(address), links.get(address))
                for address in replica_set.members
            ),
            unknown_replicas=tuple(sorted(set(links) - set(replica_set.members))),
        )

    async def confirm_write(self) -> WriteOutcome:
        """Write to the primary, and wait until enough replicas have it on disk."""
        return await self._confirm(await self._read())

    async def _confirm(self, replica_set: ReplicaSet) -> WriteOutcome:
        return await self._members.confirm(
            replica_set.primary,
            replica_set.epoch,
            replica_set.acknowledging_replicas,
            limits.CONFIRM_WAIT_MS,
        )

    async def switch_over(self, to: str | None = None) -> ReplicaSet:
        """Make a member that is in sync the primary, the furthest one if none is named.

        Processes hold their writes back meanwhile, so that no caller sees it.
        """
        status = await self._observe(await self._read())
        replica_set = _normal(status.replica_set)
        target = _switch_target(status, None if to is None else self._address(to))
        result = await switch_over(
            self._rows,
            self._members,
            replica_set,
            target,
            when_held=lambda: self._has_caught_up(replica_set.primary, target),
        )
        if result.primary != target:
            raise ReplicaSetRefused(f"{target} did not become the primary: {_CHANGED}")
        self._on_primary_change(PrimaryChange.SWITCH_OVER)
        return await self._read()

    async def _has_caught_up(self, primary: str, target: str) -> bool:
        """Wait until the target has what the primary has, and the primary gets no more.

        That must last a while: a flush raises the position before it is confirmed, and its connection is dropped later.
        """
        before: StorePosition | None = None
        attempts = limits.SWITCH_OVER_WAIT_MS // limits.SWITCH_OVER_POLL_MS
        unchanged, required = 0, limits.SWITCH_OVER_QUIET_MS // limits.SWITCH_OVER_POLL_MS
        for _ in range(attempts):
            facts = await self._members.observe((primary, target))
            positions = {state.position for state in facts.values()}
            is_same = len(facts) == 2 and len(positions) == 1
            unchanged = unchanged + 1 if is_same and positions == {before} else 0
            if unchanged >= required:
                return True
            before = positions.pop() if is_same else None
            await asyncio.sleep(limits.SWITCH_OVER_POLL_MS / limits.SECOND_MS)
        return False

    async def replace(self, old: str, new: str) -> ReplicaSet:
        """Put a new, empty store in the place of a member that is not the primary."""
        replica_set = _normal(await self._read())
        old, new = self._address(old), self._address(new)
        _check_leaves(replica_set, old)
        await self._check_joins(replica_set, new)
        await self._exclude(replica_set, old)
        return await self._changed(await self._rows.replace(replica_set.term, old, new))

    async def add(self, address: str) -> ReplicaSet:
        """Add a new, empty store. A write needs as many members as before."""
        replica_set = _normal(await self._read())
        address = self._address(address)
        if len(replica_set.members) >= limits.REPLICA_SET_MEMBERS_MAX:
            raise ReplicaSetRefused(
                f"A replica set has at most {limits.REPLICA_SET_MEMBERS_MAX} members."
            )
        await self._check_joins(replica_set, address)
        return await self._changed(await self._rows.add(replica_set.term, address))

    async def remove(self, address: str) -> ReplicaSet:
        """Remove a member that is not the primary."""
        replica_set = _normal(await self._read())
        address = self._address(address)
        _check_leaves(replica_set, address)
        check_min_insync(replica_set.min_insync_replicas, len(replica_set.members) - 1)
        await self._exclude(replica_set, address)
        return await self._changed(await self._rows.remove(replica_set.term, address))

    async def set_min_insync(self, count: int) -> ReplicaSet:
        """Set how many members must have a write before it is acknowledged.

        A higher count begins with a new epoch, so that no process continues with the lower one. Processes hold their writes
        back meanwhile, as in a switch-over.
        """
        status = await self._observe(await self._read())
        replica_set = _normal(status.replica_set)
        check_min_insync(count, len(replica_set.members))
        if count <= replica_set.min_insync_replicas:
            changed = await self._changed(await self._rows.set_min_insync(replica_set.term, count))
            await self._members.store_min_insync(changed.primary, changed.epoch, count)
            return changed
        if status.insync_replicas < count:
            raise ReplicaSetRefused(
                f"Only {status.insync_replicas} members are in sync: no write would be acknowledged."
            )
        replica = _switch_target(status, None)
        result = await switch_over(
            self._rows,
            self._members,
            replica_set,
            replica_set.primary,
            min_insync_replicas=count,
            when_held=lambda: self._has_caught_up(replica_set.primary, replica),
        )
        return await self._promoted(result, PrimaryChange.RENEWAL)

    async def recover(self, source: str, *, accept_loss: bool) -> ReplicaSet:
        """Make a member the primary without a quorum; those that do not answer are removed.

        What only they had is lost. Add new stores afterwards.
        """
        replica_set, source = await self._read(), self._address(source)
        if not accept_loss:
            raise ReplicaSetRefused(
                "Recovery loses what only other members have: call it with accept_loss."
            )
        if source not in replica_set.members:
            raise ReplicaSetRefused(f"{source} is not a member of the replica set.")
        facts = await self._members.observe(replica_set.members)
        if source not in facts or not facts[source].position.epoch:
            raise ReplicaSetRefused(f"{source} does not answer, or has no data.")
        highest = max(max(state.promise, state.position.epoch) for state in facts.values())
        term = next_term(replica_set, highest)
        if not await self._rows.begin(term, after=replica_set, phase=Phase.FENCE):
            raise ReplicaSetRefused(_CHANGED)
        promises = await self._members.promise(replica_set.members, term)
        is_fenced = source in promises and highest_term(promises) < term
        if not is_fenced or not await self._rows.recover(term, source, list(promises)):
            raise ReplicaSetRefused(_CHANGED)
        result = await settle(
            self._rows,
            self._members,
            term,
            source,
            fenced=promises,
            min_insync=replica_set.min_insync_replicas,
        )
        return await self._promoted(result, PrimaryChange.RECOVERY)

    async def _read(self) -> ReplicaSet:
        replica_set = await self._rows.read()
        if replica_set is None:
            raise StorageUnavailable("The replica set was not created yet.")
        self._cached = replica_set
        return replica_set

    async def _promoted(self, result: TermResult, kind: PrimaryChange) -> ReplicaSet:
        if result.primary is not None:
            self._on_primary_change(kind)
        return await self._changed(result.primary is not None)

    async def _changed(self, is_changed: bool) -> ReplicaSet:
        """Return the changed replica set, whose members are attached at once."""
        if not is_changed:
            raise ReplicaSetRefused(_CHANGED)
        replica_set = await self._read()
        if replica_set.phase is Phase.NORMAL:
            facts = await self._members.observe(replica_set.members)
            await attach_members(self._rows, self._members, replica_set, facts)
        return replica_set

    async def _check_joins(self, replica_set: ReplicaSet, address: str) -> None:
        if address in replica_set.members:
            raise ReplicaSetRefused(f"{address} is already a member of the replica set.")
        facts = await self._members.observe((*replica_set.members, address))
        if address not in facts:
            raise ReplicaSetRefused(f"{address} does not answer, or refuses the password.")
        joining = facts[address]
        if joining.is_primary and joining.has_data:
            raise ReplicaSetRefused(
                f"{address} has data and follows nobody: it would be deleted. Empty it first."
            )
        for member in replica_set.members:
            if member in facts and facts[member].run_id == joining.run_id:
                raise ReplicaSetRefused(f"{address} and {member} are the same store.")

    async def _exclude(self, replica_set: ReplicaSet, leaving: str) -> None:
        """Ensure that members that stay have all that was acknowledged.

        The one that leaves promises the next term, so that nobody attaches it in this one, or is away. A write that is
        confirmed then was acknowledged by others, with all before it.
        """
        await self._members.promise([leaving], next_term(replica_set))
        await self._refuse_attached(replica_set, leaving)
        outcome = await self._confirm(replica_set)
        await self._refuse_attached(replica_set, leaving)
        if outcome is not WriteOutcome.CONFIRMED:
            raise ReplicaSetRefused(
                f"Without {leaving} too few members are in sync: a write was not confirmed."
            )

    async def _refuse_attached(self, replica_set: ReplicaSet, leaving: str) -> None:
        numeric = await self._members.numeric_addresses([leaving])
        facts = await self._members.observe([replica_set.primary])
        if replica_set.primary not in facts:
            raise ReplicaSetRefused(f"The primary {replica_set.primary} does not answer.")
        if leaving in _links(replica_set, facts, numeric):
            raise ReplicaSetRefused(f"{leaving} still follows the primary: stop it first.")

    def _address(self, text: str) -> str:
        try:
            return self._members.normalize(text)
        except ValueError as error:
            raise ValidationFailed(str(error)) from None


def _normal(replica_set: ReplicaSet) -> ReplicaSet:
    if replica_set.phase is not Phase.NORMAL:
        raise ReplicaSetRefused("The primary is being changed: try again in a few seconds.")
    return replica_set


def _check_leaves(replica_set: ReplicaSet, address: str) -> None:
    if address not in replica_set.members:
        raise ReplicaSetRefused(f"{address} is not a member of the replica set.")
    if address == replica_set.primary:
        raise ReplicaSetRefused(f"{address} is the primary: switch over first.")


def _switch_target(status: ReplicaSetStatus, to: str | None) -> str:
    replicas = {
        member.address: member
        for member in status.members
        if member.role is MemberRole.REPLICA and member.state is MemberState.INSYNC
    }
    if to == status.replica_set.primary:
        raise ReplicaSetRefused(f"{to} is the primary already.")
    if to is not None and to not in status.replica_set.members:
        raise ReplicaSetRefused(f"{to} is not a member of the replica set.")
    if to is not None and to not in replicas:
        raise ReplicaSetRefused(f"{to} is not in sync with the primary.")
    if not replicas:
        raise ReplicaSetRefused("No replica is in sync with the primary.")
    return to or min(replicas, key=lambda address: replicas[address].lag_bytes or 0)


def _links(
    replica_set: ReplicaSet, facts: Mapping[str, MemberFacts], numeric: Mapping[str, str]
) -> dict[str, ReplicaLink]:
    """Return the primary's replicas, by the members' addresses where they have one."""
    primary = facts.get(replica_set.primary)
    if primary is None:
        return {}
    return {numeric.get(link.address, link.address): link for link in primary.replicas}


def _member_status(
    address: str, replica_set: ReplicaSet, facts: MemberFacts | None, link: ReplicaLink | None
) -> MemberStatus:
    if facts is None:
        return MemberStatus(address=address, role=MemberRole.AWAY, state=MemberState.AWAY)
    is_primary = address == replica_set.primary and facts.is_primary
    if is_primary:
        is_insync = facts.position.epoch == replica_set.epoch
    else:
        is_insync = _is_insync(facts, link, replica_set)
    lag_bytes = None if link is None else link.lag_bytes
    return MemberStatus(
        address=address,
        role=MemberRole.PRIMARY if is_primary else MemberRole.REPLICA,
        state=MemberState.INSYNC if is_insync else MemberState.BEHIND,
        position=facts.position,
        lag_bytes=0 if is_primary else lag_bytes,
        version=facts.version,
        run_id=facts.run_id,
        memory_used_bytes=facts.memory_used_bytes,
        memory_max_bytes=facts.memory_max_bytes,
        full_resyncs=facts.full_resyncs,
        time_ms=facts.time_ms,
    )


def _is_insync(facts: MemberFacts, link: ReplicaLink | None, replica_set: ReplicaSet) -> bool:
    if link is None or facts.follows != replica_set.primary or not facts.is_linked:
        return False
    is_recent = link.silent_ms <= limits.MEMBER_SILENT_MS_MAX
    return link.is_online and is_recent and link.lag_bytes <= limits.MEMBER_LAG_BYTES_MAX
