"""Decisions about a replica set: when its primary has failed, and which member follows it.

A write is acknowledged by the primary and k others. Whoever chooses the next primary has fenced members and read their
positions afterwards, so no more is acknowledged than it has read. N - k fenced members other than the primary meet every
set of k; the primary alone has everything. Among them the furthest has all that was acknowledged.
"""

from collections.abc import Mapping

import msgspec

from storage.domain import limits
from storage.domain.replication.replica_set import ReplicaSet
from storage.hot_store.members import MemberFacts, Promise, WriteOutcome


def choose_primary(
    replica_set: ReplicaSet, votes: Mapping[str, Promise], target: str | None = None
) -> str | None:
    """Return the fenced member that is furthest, `target` if it is; None without a quorum.

    A member without an epoch is empty and has no vote. If none has the present epoch, writes of it were acknowledged by
    none of them, and earlier ones under a count that may have been lower than today's: then every other member is needed.
    Of several the one with the highest offset is chosen: the others can continue from it without a full resync.
    """
    voters = {address: vote for address, vote in votes.items() if vote.position.epoch > 0}
    if not voters:
        return None
    furthest = max(vote.position for vote in voters.values())
    if replica_set.primary not in voters:
        others = len(replica_set.members) - 1
        has_epoch = furthest.epoch >= replica_set.epoch
        if len(voters) < (replica_set.fence_quorum if has_epoch else others):
            return None
    candidates = {
        address: vote.offset for address, vote in voters.items() if vote.position == furthest
    }
    return target if target in candidates else max(candidates, key=candidates.__getitem__)


def next_term(replica_set: ReplicaSet, highest: int = 0) -> int:
    """Return a term above the row's and the highest that a member is known to have met."""
    return max(replica_set.term, replica_set.epoch, highest) + 1


def highest_term(promises: Mapping[str, Promise]) -> int:
    """Return the highest term that the members knew before they were asked."""
    return max((promise.highest for promise in promises.values()), default=0)


def misses_primary(facts: MemberFacts, primary: str) -> bool:
    """Return whether a replica has no working link to its primary.

    One that receives a full copy has: a fail-over would make it begin anew, and again while the copy takes its time.
    """
    if facts.follows != primary or not (facts.is_linked or facts.is_syncing):
        return True
    return facts.silent_ms >= limits.MEMBER_SILENT_MS_MAX


def can_find_quorum(replica_set: ReplicaSet, facts: Mapping[str, MemberFacts]) -> bool:
    """Return whether enough members answer for a fail-over to begin; they may still refuse."""
    voters = {address for address, state in facts.items() if state.position.epoch > 0}
    return replica_set.primary in voters or len(voters) >= replica_set.fence_quorum > 0


class _Failure(msgspec.Struct, frozen=True):
    """Failure of the primary of a term: since when it confirmed no write."""

    term: int
    since_ms: int


class FailureDetector:
    """Decides from probes of the primary when a new one is needed; starts anew at each term.

    A primary that only lacks replicas is given longer: it may have been promoted just now.
    """

    def __init__(self) -> None:
        self._failure: _Failure | None = None

    def note(
        self,
        term: int,
        outcome: WriteOutcome,
        *,
        is_missed: bool,
        began_ms: int,
        now_ms: int,
    ) -> bool:
        """Note a probe that began at `began_ms`; return whether to fail over now.

        `is_missed`: another member misses the primary.
        """
        if outcome is WriteOutcome.CONFIRMED:
            self._failure = None
            return False
        if self._failure is None or self._failure.term != term:
            self._failure = _Failure(term, began_ms)
        failed_ms = now_ms - self._failure.since_ms
        if outcome is WriteOutcome.NOT_PRIMARY:
            return failed_ms >= limits.PRIMARY_FAILED_MS
        is_alive = outcome is WriteOutcome.UNCONFIRMED
        patience_ms = limits.PRIMARY_ALONE_MS if is_alive else limits.PRIMARY_FAILED_MS
        return failed_ms >= patience_ms and is_missed
