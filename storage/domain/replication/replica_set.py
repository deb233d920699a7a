"""Replica set: the stores that hold the same data, and the primary that Postgres names.

    Postgres    members and their addresses; term, epoch, primary, phase, min_insync_replicas
    each store  epoch and position (replicated data), and its promise: the term it is fenced for (its own)

A term numbers the attempts to change the primary, an epoch the primaries: a primary's epoch is the term that promoted it.
"""

from enum import StrEnum

import msgspec


class Phase(StrEnum):
    """Phase of a change of the primary; stores are used in `NORMAL` alone."""

    NORMAL = "normal"
    FENCE = "fence"
    PROMOTE = "promote"
    SWITCH = "switch"


class PrimaryChange(StrEnum):
    """Kind of a change of the primary; `RENEWAL` keeps the primary, in a new epoch."""

    FAIL_OVER = "fail_over"
    SWITCH_OVER = "switch_over"
    RECOVERY = "recovery"
    RENEWAL = "renewal"


class ReplicaSet(msgspec.Struct, frozen=True, kw_only=True):
    """The replica set as Postgres has it.

    `members`: addresses, `host:port`, in the order of their addition. `primary`: one of them.
    `min_insync_replicas`: how many members, the primary counted, must have a write on disk before it is acknowledged.
    """

    members: tuple[str, ...]
    primary: str
    term: int
    epoch: int
    phase: Phase
    min_insync_replicas: int

    @property
    def acknowledging_replicas(self) -> int:
        """Return how many replicas must have a write before it is acknowledged."""
        return self.min_insync_replicas - 1

    @property
    def fence_quorum(self) -> int:
        """Return how many members, the primary not counted, meet every acknowledging set."""
        return len(self.members) - self.acknowledging_replicas


def majority(members: int) -> int:
    """Return the smallest number of members that is more than half of them."""
    return members // 2 + 1


class StorePosition(msgspec.Struct, frozen=True, order=True):
    """Progress of a copy of the data, comparable across restarts: epoch, then position.

    `position` rises with each write flush. A store with epoch 0 is empty, and has no vote.
    """

    epoch: int
    position: int


class MemberRole(StrEnum):
    """Role of a member, as far as it answers."""

    PRIMARY = "primary"
    REPLICA = "replica"
    AWAY = "away"


class MemberState(StrEnum):
    """State of a member's copy of the data."""

    INSYNC = "insync"
    BEHIND = "behind"
    AWAY = "away"


class MemberStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Status of a member, for operators; figures of one that is away are None.

    `lag_bytes`: what the primary's replication has sent and it has not acknowledged. `full_resyncs`: complete copies that it has sent. `time_ms`: of its clock.
    """

    address: str
    role: MemberRole
    state: MemberState
    position: StorePosition | None = None
    lag_bytes: int | None = None
    version: str | None = None
    run_id: str | None = None
    memory_used_bytes: int | None = None
    memory_max_bytes: int | None = None
    full_resyncs: int | None = None
    time_ms: int | None = None


class ReplicaSetStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The replica set and the status of its members.

    `unknown_replicas`: addresses of replicas of the primary that are no members; they would be counted as acknowledging.
    """

    replica_set: ReplicaSet
    members: tuple[MemberStatus, ...]
    unknown_replicas: tuple[str, ...] = ()

    @property
    def insync_replicas(self) -> int:
        """Return how many members, the primary counted, are in sync."""
        return sum(member.state is MemberState.INSYNC for member in self.members)
