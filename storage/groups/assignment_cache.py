"""Assignments read last, by which members go on reading in an outage of Postgres.

    a rebalance     group's row locked ──▶ generation written to the hot store ──▶ committed
    in an outage    is the hot store's generation the cached one? ──yes──▶ nobody has rebalanced since: read on
                                                                  ──no───▶ StorageUnavailable

The hot store's generation is never below the committed one, unless the hot store was away during a rebalance, so a
process that alone is cut off from Postgres does not read shards that others were granted. Commits are decided by
Postgres alone, so a stale assignment could repeat records but lose none (G2). docs/adr/0083 has the decision.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

import attrs
from msgspec.structs import replace

from storage.concurrency.bounded_cache import BoundedCache
from storage.domain import limits
from storage.domain.errors import MillstreamError, StorageBusy, StorageUnavailable
from storage.domain.groups.assignment import MemberId
from storage.domain.groups.group import Commit, Group, MemberShard, Membership
from storage.domain.names import GroupName
from storage.hot_store.servers import HotServers
from storage.postgres.definition_table import CHANNEL
from storage.postgres.listener import Listener

logger = logging.getLogger(__name__)

_RETRY_SECONDS = limits.POSTGRES_REPLY_MS_MAX / limits.SECOND_MS
_WITNESS_SECONDS = limits.CATALOG_WITNESS_MS / limits.SECOND_MS
_AWAY = "Postgres is away, and this process does not know the member's assignment."


@attrs.define(eq=False)
class _CachedMembership:
    """A membership as Postgres returned it, and the offsets committed since."""

    membership: Membership
    committed: dict[int, int] = attrs.Factory(dict)

    def current(self) -> Membership:
        return replace(
            self.membership,
            assigned=self._with_commits(self.membership.assigned),
            revoked=self._with_commits(self.membership.revoked),
            is_cached=True,
        )

    def _with_commits(self, places: tuple[MemberShard, ...]) -> tuple[MemberShard, ...]:
        return tuple(
            replace(place, committed=self.committed.get(place.shard, place.committed))
            for place in places
        )


class AssignmentCache:
    """Memberships of this process's members, for reads in an outage of Postgres."""

    def __init__(self, servers: HotServers, listener: Listener) -> None:
        self._servers = servers
        self._listener = listener
        self._memberships: BoundedCache[tuple[GroupName, MemberId], _CachedMembership] = (
            BoundedCache(limits.GROUP_ASSIGNMENTS_CACHED_MAX)
        )
        self._generations: BoundedCache[GroupName, int] = BoundedCache(
            limits.GROUP_ASSIGNMENTS_CACHED_MAX
        )  # that the hot store has, or a later one
        self._retry_s = 0.0  # until then Postgres is not asked again, while it is known to be away
        listener.subscribe(CHANNEL, self._on_change, self._memberships.clear)

    def _on_change(self, payload: str) -> None:
        """Drop the members of a group whose definition was changed or deleted."""
        kind, _, path = payload.partition(":")
        if kind == "group":
            for key in [key for key in self._memberships if str(key[0]) == path]:
                del self._memberships[key]

    # Changes

    async def announce(self, group: Group) -> None:
        """Write the group's next generation to the hot store, before it is committed.

        A failure does not stop the rebalance: nobody reads without the hot store.
        """
        try:
            async with asyncio.timeout(_WITNESS_SECONDS):
                await self._servers.write_group_generation(group.name, group.generation)
            self._generations[group.name] = group.generation
        except (MillstreamError, TimeoutError) as error:
            logger.warning("group_generation_not_written", extra={"reason": str(error)})

    async def delete(self, name: GroupName) -> None:
        """Remove a deleted group's generation from the hot store, if that is possible."""
        with suppress(MillstreamError, TimeoutError):
            async with asyncio.timeout(_WITNESS_SECONDS):
                await self._servers.delete_group_generation(name)

    async def store(self, membership: Membership) -> Membership:
        """Cache a membership that was just read, and return it.

        A group that was rebalanced by an earlier version has no generation in the hot store yet.
        """
        key = (membership.group.name, membership.member_id)
        self._memberships.pop(key, None)  # the one that was read longest ago leaves first
        self._memberships[key] = _CachedMembership(membership)
        if self._generations.get(membership.group.name) != membership.generation:
            self._generations[membership.group.name] = membership.generation
            with suppress(MillstreamError, TimeoutError):
                async with asyncio.timeout(_WITNESS_SECONDS):
                    await self._servers.add_group_generation(
                        membership.group.name, membership.generation
                    )
        return membership

    def observe_commit(self, name: GroupName, commit: Commit, offset: int) -> None:
        """Record a commit that Postgres has accepted."""
        cached = self._memberships.get((name, commit.member_id))
        if cached is not None:
            cached.committed[commit.shard] = offset

    # Reads

    async def read(
        self,
        name: GroupName,
        member_id: MemberId,
        generation: int | None,
        load: Callable[[], Awaitable[Membership]],
    ) -> Membership:
        """Return the membership that `load` reads from Postgres, or in an outage the cached one.

        A silent Postgres delays one call every five seconds, not each of them. `generation`: the member's own, if it sends
        it. Raises what `load` raises, StorageUnavailable.
        """
        loop = asyncio.get_running_loop()
        if loop.time() < self._retry_s and self._listener.is_vouched:
            return await self._cached(name, member_id, generation)
        if self._retry_s:
            self._retry_s = loop.time() + _RETRY_SECONDS  # other calls do not wait for this one
        try:
            membership = await load()
        except (StorageUnavailable, StorageBusy):
            if not self._listener.is_vouched:
                raise
            self._retry_s = loop.time() + _RETRY_SECONDS
            return await self._cached(name, member_id, generation)
        self._retry_s = 0.0
        return membership

    async def _cached(
        self, name: GroupName, member_id: MemberId, generation: int | None
    ) -> Membership:
        """Return a cached membership if its group was not rebalanced since.

        A call of another generation than the cached one may be of an earlier instance of the member.
        """
        written = await self._written_generation(name)
        cached = self._memberships.get((name, member_id))
        if cached is None or not self._listener.is_vouched:
            raise StorageUnavailable(_AWAY)
        current = cached.membership.generation
        if written != current or generation not in (None, current):
            raise StorageUnavailable(_AWAY)
        return cached.current()

    async def _written_generation(self, name: GroupName) -> int:
        try:
            async with asyncio.timeout(_WITNESS_SECONDS):
                return await self._servers.group_generation(name)
        except TimeoutError:
            raise StorageUnavailable("The store timed out.") from None
