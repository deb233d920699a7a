"""First start of a replica set: its members, and which of them has the data."""

from collections.abc import Mapping, Sequence

from storage.domain import limits
from storage.domain.errors import ReplicaSetRefused, StorageUnavailable
from storage.domain.replication.replica_set import ReplicaSet
from storage.hot_store.members import MemberFacts, StoreMembers
from storage.postgres.repositories.replica_set import ReplicaSetRows
from storage.replication.decisions import highest_term


async def initialize(
    rows: ReplicaSetRows, members: StoreMembers, addresses: Sequence[str], min_insync: int
) -> ReplicaSet:
    """Create the replica set of these stores; the one that has data becomes its primary.

    The store has its epoch before the row names it: a controller that dies in between leaves one member with data, which
    the next one finds. The epoch is above all that Postgres and the members know, so no offset is used again.
    Raises StorageUnavailable, ReplicaSetRefused.
    """
    check_min_insync(min_insync, len(addresses))
    facts = await members.observe(addresses)
    if absent := [address for address in addresses if address not in facts]:
        raise StorageUnavailable(
            f"A replica set starts when each of its stores answers; {', '.join(absent)} did not."
        )
    _refuse_same_store(facts)
    primary = _choose_first(addresses, facts)
    terms = [max(state.promise, state.position.epoch) for state in facts.values()]
    term = max(await rows.last_term(), *terms) + 1
    promises = await members.promise(addresses, term)
    if len(promises) < len(addresses) or highest_term(promises) >= term:
        raise StorageUnavailable("The stores of the replica set changed while it was created.")
    if not await members.promote(primary, term, min_insync):
        raise StorageUnavailable(f"The store {primary} did not become the primary.")
    await members.attach([other for other in addresses if other != primary], primary, term)
    await rows.initialize(addresses, primary, term, min_insync)
    replica_set = await rows.read()
    if replica_set is None:
        raise StorageUnavailable("The replica set was not created: a later term has begun.")
    return replica_set


def check_min_insync(count: int, members: int) -> None:
    """Raise ReplicaSetRefused unless so many members can be required of a write."""
    if not limits.MIN_INSYNC_REPLICAS_MIN <= count <= members:
        raise ReplicaSetRefused(
            f"min_insync_replicas must be {limits.MIN_INSYNC_REPLICAS_MIN} to {members}, the number of members, not {count}."
        )


def _choose_first(addresses: Sequence[str], facts: Mapping[str, MemberFacts]) -> str:
    filled = [address for address in addresses if facts[address].has_data]
    if len(filled) > 1:
        raise ReplicaSetRefused(
            f"The stores {' and '.join(filled)} both have data: a replica set starts from one of them. Empty the others."
        )
    if filled and not facts[filled[0]].position.epoch:
        raise ReplicaSetRefused(f"The store {filled[0]} has data that is not Millstream's.")
    return filled[0] if filled else addresses[0]


def _refuse_same_store(facts: Mapping[str, MemberFacts]) -> None:
    addresses: dict[str, str] = {}
    for address, state in facts.items():
        other = addresses.setdefault(state.run_id, address)
        if other != address:
            raise ReplicaSetRefused(f"{other} and {address} are the same store.")
