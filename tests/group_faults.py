"""Faults between the steps of a rebalance, and what a process of the former release does to groups."""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import psycopg

from storage.bootstrap import Storage
from storage.domain.errors import StorageUnavailable
from storage.domain.groups.committed_offsets import GroupOffsets, OffsetEntry
from storage.domain.groups.group import Commit, Group
from storage.domain.names import GroupName
from storage.groups.offset_store import OffsetStore
from storage.redis.keys import group_offsets_key


class WithheldSeed(NamedTuple):
    """A seed that a process did not send, because it was suspended."""

    group: Group
    fence: str
    entries: Mapping[int, OffsetEntry]


class InterruptedOffsets:
    """A group's offsets in the hot store, for a process that dies or is suspended in a rebalance."""

    def __init__(self, hot: OffsetStore) -> None:
        self._hot = hot
        self.dies_after_freeze = False
        """The next rebalance ends before its transaction is committed."""
        self.withholds_seeds = False
        """Rebalances end after their commit, before the seed."""
        self.withheld: list[WithheldSeed] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._hot, name)

    async def freeze(self, group: Group, fence: str) -> GroupOffsets:
        offsets = await self._hot.freeze(group, fence)
        if self.dies_after_freeze:
            self.dies_after_freeze = False
            raise StorageUnavailable("The process died.")
        return offsets

    async def seed(self, group: Group, fence: str, entries: Mapping[int, OffsetEntry]) -> bool:
        if not self.withholds_seeds:
            return await self._hot.seed(group, fence, entries)
        self.withheld.append(WithheldSeed(group, fence, entries))
        raise StorageUnavailable("The process is suspended.")

    async def send_withheld(self) -> bool:
        """Send the seed that was withheld first; return whether it had an effect."""
        return await self._hot.seed(*self.withheld.pop(0))


def interrupt(storage: Storage) -> InterruptedOffsets:
    """Return the switches for faults in the rebalances of a process."""
    coordinator = storage.groups._coordinator
    interrupted = InterruptedOffsets(coordinator._hot)
    coordinator._hot = interrupted
    return interrupted


async def lose_offsets(storage: Storage, name: GroupName) -> None:
    """Delete a group's offsets from the hot store."""
    pipeline: Any = storage.groups._hot._pipeline  # type: ignore[attr-defined]
    group = await storage.groups.get(name)
    key = group_offsets_key(name.namespace, group.group_id)
    await pipeline._route_of(key).writes.call((b"UNLINK", key))


_COMMIT = """
    update group_shards s set committed = greatest(s.committed, %(next)s), committed_at_ms = 1
      from groups g
     where s.group_id = g.group_id and g.name = %(group)s and s.shard = %(shard)s and s.owner = %(member)s
       and s.generation <= %(generation)s and g.generation >= %(generation)s
"""
_REGRANT = """
    with raised as (
      update groups set generation = generation + 1 where name = %(group)s returning group_id, generation
    )
    update group_shards s set generation = r.generation, owner = %(member)s
      from raised r where s.group_id = r.group_id and s.shard = any(%(shards)s)
"""


class FormerRelease:
    """A process of the release in which commits were decided by rows, and nothing else knew of them."""

    def __init__(self, database_url: str, group: GroupName) -> None:
        self._url = database_url
        self._group = group.name

    def _run(self, statement: Any, **parameters: object) -> int:
        with psycopg.connect(self._url) as connection:
            return connection.execute(statement, {"group": self._group, **parameters}).rowcount

    def commit(self, commit: Commit) -> bool:
        """Commit an offset as its statement did; return whether it was accepted."""
        return bool(
            self._run(
                _COMMIT,
                shard=commit.shard,
                next=commit.offset,
                member=commit.member_id,
                generation=commit.generation,
            )
        )

    def grant(self, member: str, shards: Sequence[int]) -> None:
        """Grant shards in a new generation, as its rebalance did."""
        self._run(_REGRANT, member=member, shards=list(shards))

    def committed(self) -> list[int | None]:
        """Return the offsets that it knows."""
        with psycopg.connect(self._url) as connection:
            rows = connection.execute(
                "select s.committed from group_shards s join groups g using (group_id)"
                " where g.name = %s order by s.shard",
                [self._group],
            )
            return [*map(itemgetter(0), rows.fetchall())]
