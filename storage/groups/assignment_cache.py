"""Assignments read last, by which members go on reading in an outage of Postgres.

    a rebalance     group's row locked ──▶ frozen in the hot store ──▶ committed ──▶ seeded with the next generation
    in an outage    is the hot store's generation the cached one? ──yes──▶ nobody has rebalanced since: read on
                                                                  ──no───▶ StorageUnavailable

A process that alone is cut off from Postgres does not read shards that others were granted, and a member reads on from
what it has committed, as commits need no Postgres either. docs/adr/0083 and docs/adr/0085 have the decisions.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from msgspec.structs import replace

from storage.concurrency.bounded_cache import BoundedCache
from storage.domain import limits
from storage.domain.errors import StorageBusy, StorageUnavailable
from storage.domain.groups.assignment import MemberId
from storage.domain.groups.committed_offsets import GroupOffsets
from storage.domain.groups.group import Group, Membership
from storage.domain.names import GroupName
from storage.groups.offset_store import OffsetStore
from storage.postgres.definition_table import CHANNEL
from storage.postgres.listener import Listener

T = TypeVar("T")

_WITNESS_SECONDS = limits.CATALOG_WITNESS_MS / limits.SECOND_MS
_AWAY = "Postgres is away, and this process does not know the member's assignment."
_NO_JOIN = "Postgres is away: only members that have joined read on, with their last token."


class AssignmentCache:
    """Memberships of this process's members, for reads in an outage of Postgres."""

    def __init__(self, hot: OffsetStore, listener: Listener) -> None:
        self._hot = hot
        self._listener = listener
        self._memberships: BoundedCache[tuple[GroupName, MemberId], Membership] = BoundedCache(
            limits.GROUP_ASSIGNMENTS_CACHED_MAX
        )
        listener.subscribe(CHANNEL, self._on_change, self._memberships.clear)

    def _on_change(self, payload: str) -> None:
        """Drop the members of a group whose definition was changed or deleted."""
        kind, _, path = payload.partition(":")
        if kind == "group":
            for key in [key for key in self._memberships if str(key[0]) == path]:
                del self._memberships[key]

    def store(self, membership: Membership) -> Membership:
        """Cache a membership that was just read, and return it."""
        key = (membership.group.name, membership.member_id)
        self._memberships.pop(key, None)  # the one that was read longest ago leaves first
        self._memberships[key] = membership
        return membership

    async def read(
        self,
        name: GroupName,
        member_id: MemberId,
        generation: int | None,
        load: Callable[[], Awaitable[Membership]],
    ) -> Membership:
        """Return the membership that `load` reads from Postgres, or in an outage the cached one.

        `generation`: the member's own, if it sends it. Raises what `load` raises, StorageUnavailable.
        """
        membership = await self.unless_away(load)
        return membership or await self._cached(name, member_id, generation)

    async def join(self, load: Callable[[], Awaitable[Membership]]) -> Membership:
        """Return the membership with which an instance joins, by `load`.

        Raises what `load` raises, and StorageUnavailable in an outage.
        """
        membership = await self.unless_away(load)
        if membership is None:
            raise StorageUnavailable(_NO_JOIN)
        return membership

    async def unless_away(self, load: Callable[[], Awaitable[T]]) -> T | None:
        """Return what `load` gets from Postgres, or None in an outage. Raises what `load` raises."""
        try:
            return await load()
        except (StorageUnavailable, StorageBusy):
            if not self._listener.is_vouched:
                raise
            return None

    async def _cached(
        self, name: GroupName, member_id: MemberId, generation: int | None
    ) -> Membership:
        """Return a cached membership if its group was not rebalanced since.

        A call of another generation than the cached one may be of an earlier instance of the member.
        """
        cached = self._memberships.get((name, member_id))
        if cached is None or generation not in (None, cached.generation):
            raise StorageUnavailable(_AWAY)
        offsets = await self._offsets(cached.group)
        if offsets.generation != cached.generation or not self._listener.is_vouched:
            raise StorageUnavailable(_AWAY)
        return replace(
            cached,
            assigned=offsets.latest(cached.assigned),
            revoked=offsets.latest(cached.revoked),
            is_cached=True,
        )

    async def _offsets(self, group: Group) -> GroupOffsets:
        try:
            async with asyncio.timeout(_WITNESS_SECONDS):
                return await self._hot.read(group)
        except TimeoutError:
            raise StorageUnavailable("The store timed out.") from None
