"""End of a replica set: one store continues alone."""

from storage.domain.errors import ReplicaSetRefused, StorageUnavailable
from storage.hot_store.members import Promise, StoreMembers
from storage.postgres.repositories.replica_set import ReplicaSetRows
from storage.replication.decisions import choose_primary


async def dissolve(rows: ReplicaSetRows, members: StoreMembers, remaining: str) -> None:
    """End the replica set, if the store that remains has all that was acknowledged.

    Nothing else may run: the members follow nobody and take no writes, as if they were fenced. The row keeps the epoch, and that
    the store was one of several: used alone, it gets a new epoch. Does nothing if there is no replica set.
    Raises StorageUnavailable, ReplicaSetRefused.
    """
    replica_set = await rows.read()
    if replica_set is None:
        return
    facts = await members.observe(replica_set.members)
    if absent := [address for address in replica_set.members if address not in facts]:
        raise StorageUnavailable(f"The stores {', '.join(absent)} do not answer.")
    votes = {
        address: Promise(True, state.promise, state.position, 0) for address, state in facts.items()
    }
    if choose_primary(replica_set, votes, remaining) != remaining:
        furthest = max(votes, key=lambda address: votes[address].position)
        raise ReplicaSetRefused(
            f"{remaining} does not have all that was acknowledged, or too few stores have data: the furthest is {furthest},"
            f" {_described(votes[furthest])}, and {remaining} is at {_described(votes[remaining])}."
        )
    if not await rows.dissolve(replica_set.term):
        raise ReplicaSetRefused("The replica set was changed meanwhile.")


def _described(vote: Promise) -> str:
    return f"epoch {vote.position.epoch}, position {vote.position.position}"
