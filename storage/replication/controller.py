"""Controller of a replica set: watches the primary, attaches members, and fails over.

    every 150 ms   a confirmed write to the primary ┐
                   the state of each member         ┴─▶ members that do not follow are attached
                                                    └─▶ the primary has failed ─▶ `primary_change.fail_over`
    a phase that is not `normal` for 2 s            ──▶ `fail_over`, in the next term

Every process that serves or sweeps runs one; a lease picks the one that acts. Two that act at once are safe, since every
step is conditional on its term, and slower. A lease rather than an advisory lock: it ends in seconds, also when the machine
of its holder is lost with the primary, while the session of a lost machine would keep its lock until TCP gives it up.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Never

from storage.concurrency.leader_election import LeaderElection, LeaderLeases, LeaseTimes
from storage.domain import limits
from storage.domain.errors import MillstreamError, StorageUnavailable
from storage.domain.replication.replica_set import Phase, PrimaryChange, ReplicaSet
from storage.hot_store.members import MemberFacts, StoreMembers, WriteOutcome
from storage.postgres.listener import Listener
from storage.postgres.repositories.replica_set import REPLICA_SET_CHANNEL, ReplicaSetRows
from storage.replication.decisions import FailureDetector, can_find_quorum, misses_primary
from storage.replication.initialization import initialize
from storage.replication.primary_change import TermResult, attach_members, fail_over, switch_over

logger = logging.getLogger(__name__)

_LEASE = "replica_set"
_TIMES = LeaseTimes(
    limits.CONTROLLER_LEASE_MS, limits.CONTROLLER_RENEWAL_MS, limits.CONTROLLER_MARGIN_MS
)


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class MembersUnreachable(StorageUnavailable):
    """This process reaches no majority of the members; another one may."""


class _Stopwatch:
    """Time since a state was first seen; another state starts it anew."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._state: object = None
        self._since_ms = 0

    def elapsed_ms(self, state: object) -> int:
        """Return how long the state has lasted."""
        if self._state != state:
            self._state, self._since_ms = state, self._now_ms()
        return self._now_ms() - self._since_ms


class ReplicationController:
    """One process's controller, which acts while it has the lease.

    `addresses` and `min_insync_replicas` are those of a replica set that is created by its first start.
    `on_primary_change` is called with the kind of each change that it has made.
    """

    def __init__(
        self,
        *,
        rows: ReplicaSetRows,
        members: StoreMembers,
        leases: LeaderLeases,
        holder: str,
        addresses: Sequence[str],
        min_insync_replicas: int,
        listener: Listener | None = None,
        on_primary_change: Callable[[PrimaryChange], object] = lambda kind: None,
        now_ms: Callable[[], int] = _monotonic_ms,
    ) -> None:
        self._rows = rows
        self._members = members
        self._leases = leases
        self._holder = holder
        self._addresses = tuple(addresses)
        self._min_insync_replicas = min_insync_replicas
        self._on_primary_change = on_primary_change
        self._now_ms = now_ms
        self._replica_set: ReplicaSet | None = None
        self._read_at_ms: int | None = None
        self._highest = 0
        self._reason = ""
        self._reported_term = 0
        self._links: frozenset[str] = frozenset()
        self._member_links: frozenset[str] = frozenset()
        self._links_checked_ms = 0
        self._detector = FailureDetector()
        self._unfinished = _Stopwatch(now_ms)
        self._unreached = _Stopwatch(now_ms)
        self._ahead = _Stopwatch(now_ms)
        if listener is not None:
            listener.subscribe(REPLICA_SET_CHANNEL, lambda _: self._invalidate(), self._invalidate)

    async def run(self) -> Never:
        """Act whenever this process has the lease, until cancelled."""
        while True:
            election = LeaderElection(self._leases, _LEASE, self._holder, _TIMES)
            try:
                await election.run(self._lead)
            except MillstreamError as error:
                if error.detail != self._reason:
                    logger.warning("replication_controller_paused", extra={"reason": error.detail})
                self._reason = error.detail
            except Exception:
                logger.exception("replication_controller_failed")
            await asyncio.sleep(limits.CONTROLLER_ALONE_MS / limits.SECOND_MS)

    async def _lead(self, _: int) -> Never:
        self._invalidate()
        logger.info("replication_controller_acts")
        while True:
            await self.step()
            self._reason = ""
            await asyncio.sleep(limits.PROBE_PERIOD_MS / limits.SECOND_MS)

    def _invalidate(self) -> None:
        self._read_at_ms = None

    async def step(self) -> None:
        """Look once, and do what is due. Raises StorageUnavailable, ReplicaSetRefused."""
        replica_set = await self._read()
        if replica_set is None:
            await initialize(self._rows, self._members, self._addresses, self._min_insync_replicas)
            self._invalidate()
        elif replica_set.phase is not Phase.NORMAL:
            await self._continue(replica_set)
        else:
            await self._watch(replica_set)

    async def _read(self) -> ReplicaSet | None:
        now_ms = self._now_ms()
        is_fresh = (
            self._read_at_ms is not None and now_ms - self._read_at_ms < limits.REPLICA_SET_READ_MS
        )
        if not is_fresh:
            self._read_at_ms = now_ms
            self._replica_set = await self._rows.read()
        return self._replica_set

    async def _continue(self, replica_set: ReplicaSet) -> None:
        """Follow an unfinished phase; at once if it failed for a term that the row does not know."""
        self._invalidate()
        elapsed_ms = self._unfinished.elapsed_ms((replica_set.term, replica_set.phase))
        if elapsed_ms >= limits.TERM_UNFINISHED_MS or self._highest >= replica_set.term:
            await self._fail_over(replica_set)

    async def _watch(self, replica_set: ReplicaSet) -> None:
        began_ms = self._now_ms()
        facts, outcome = await asyncio.gather(
            self._members.observe(replica_set.members), self._probe(replica_set)
        )
        self._check_reach(replica_set, facts)
        if outcome is not WriteOutcome.NOT_PRIMARY:
            await attach_members(self._rows, self._members, replica_set, facts)
            await self._detach_others(replica_set, facts)
        is_missed = any(
            misses_primary(state, replica_set.primary)
            for address, state in facts.items()
            if address != replica_set.primary
        )
        has_failed = self._detector.note(
            replica_set.term,
            outcome,
            is_missed=is_missed,
            began_ms=began_ms,
            now_ms=self._now_ms(),
        )
        if not has_failed:
            await self._overtake(replica_set, facts)
        elif can_find_quorum(replica_set, facts):
            await self._fail_over(replica_set)
        else:
            self._report_missing_quorum(replica_set, facts)

    def _report_missing_quorum(
        self, replica_set: ReplicaSet, facts: Mapping[str, MemberFacts]
    ) -> None:
        """Log once per term that too few members answer: an attempt would only disturb them."""
        if self._reported_term != replica_set.term:
            self._reported_term = replica_set.term
            counts = {"answering": len(facts), "members": len(replica_set.members)}
            logger.warning("fail_over_without_quorum", extra=counts)

    async def _detach_others(
        self, replica_set: ReplicaSet, facts: Mapping[str, MemberFacts]
    ) -> None:
        """Have replicas of the primary that are no members follow nobody: WAIT would count them.

        A member that was cut off when it was replaced still follows the primary when it returns. Stores are compared by the
        ids of their processes, as a member may have other addresses. One that does not answer, or that a full copy keeps from
        its promise, is tried again.
        """
        primary = facts.get(replica_set.primary)
        if primary is None:
            return
        links = frozenset(link.address for link in primary.replicas) - set(replica_set.members)
        if not self._must_check(links):
            return
        numeric = await self._members.numeric_addresses(replica_set.members)
        answers = await self._members.observe(links - set(numeric))
        run_ids = {state.run_id for state in facts.values()}
        others = {address for address, state in answers.items() if state.run_id not in run_ids}
        self._member_links = links & (set(numeric) | (set(answers) - others))
        detached = await self._members.detach(others, replica_set.term)
        if detached:
            logger.warning("replica_detached", extra={"replicas": sorted(detached)})

    def _must_check(self, links: frozenset[str]) -> bool:
        """Return whether links changed, or some are not of members and were checked a while ago."""
        now_ms = self._now_ms()
        is_due = now_ms - self._links_checked_ms >= limits.LINKS_CHECK_MS
        if links == self._links and (links == self._member_links or not is_due):
            return False
        self._links, self._links_checked_ms = links, now_ms
        return True

    async def _probe(self, replica_set: ReplicaSet) -> WriteOutcome:
        return await self._members.confirm(
            replica_set.primary,
            replica_set.epoch,
            replica_set.acknowledging_replicas,
            limits.PROBE_WAIT_MS,
        )

    def _check_reach(self, replica_set: ReplicaSet, facts: Mapping[str, MemberFacts]) -> None:
        is_majority = 2 * len(facts) > len(replica_set.members)
        if (
            self._unreached.elapsed_ms(is_majority) >= limits.CONTROLLER_ALONE_MS
            and not is_majority
        ):
            self._unreached.elapsed_ms(None)
            raise MembersUnreachable(
                f"Only {len(facts)} of {len(replica_set.members)} members of the replica set answer."
            )

    async def _overtake(self, replica_set: ReplicaSet, facts: Mapping[str, MemberFacts]) -> None:
        """Begin a term above a promise that the row does not know, so that its member can follow.

        The promise is of an operation that ended midway, or of a term that Postgres has lost.
        """
        highest = max((state.promise for state in facts.values()), default=0)
        is_ahead = highest > replica_set.term
        elapsed_ms = self._ahead.elapsed_ms((is_ahead, replica_set.term))
        if is_ahead and elapsed_ms >= limits.TERM_UNFINISHED_MS:
            result = await switch_over(
                self._rows, self._members, replica_set, replica_set.primary, highest=highest
            )
            self._note(result, PrimaryChange.RENEWAL)

    async def _fail_over(self, replica_set: ReplicaSet) -> None:
        logger.warning(
            "fail_over_started",
            extra={"primary": replica_set.primary, "term": replica_set.term},
        )
        result = await fail_over(self._rows, self._members, replica_set, self._highest)
        self._note(result, PrimaryChange.FAIL_OVER)

    def _note(self, result: TermResult, kind: PrimaryChange) -> None:
        self._invalidate()
        self._highest = max(self._highest, result.highest)
        if result.primary is None:
            logger.warning("primary_not_changed", extra={"term": result.term})
            return
        self._on_primary_change(kind)
        facts = {"primary": result.primary, "epoch": result.term, "kind": kind.value}
        logger.warning("primary_changed", extra=facts)
