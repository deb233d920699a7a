"""Committed offsets of groups: one hash for each group, which expires by itself."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from storage.domain import limits
from storage.domain.clock import ScriptTime
from storage.domain.errors import MillstreamError
from storage.domain.groups.committed_offsets import CommittedShard, GroupOffsets, OffsetEntry
from storage.domain.groups.group import Commit, Group, GroupKind
from storage.domain.replication.acknowledgement import acknowledged_by_replicas
from storage.hot_store.retry import retry_store_changes
from storage.redis.keys import group_offsets_key
from storage.redis.transport.client import Reply
from storage.redis.transport.command import Argument
from storage.redis.transport.pipeline import Pipeline

_GENERATION, _EPOCH, _FENCE, _RENEWED = b"generation", b"epoch", b"fence", b"renewed"


class RedisGroupOffsets:
    """Committed offsets of groups. `store_epoch` returns the one that this process knows.

    Every method raises StorageUnavailable or StorageBusy; those that write also OutcomeUnknown.
    """

    def __init__(self, pipeline: Pipeline, store_epoch: Callable[[], int]) -> None:
        self._pipeline = pipeline
        self._store_epoch = store_epoch

    async def commit(
        self, group: Group, commits: Sequence[Commit], now: ScriptTime
    ) -> list[CommittedShard | None]:
        """Commit offsets, each shard once; None where Postgres must decide."""
        arguments: list[Argument] = [int(group.spec.kind is GroupKind.SIMPLE)]
        for commit in commits:
            generation = "" if commit.generation is None else commit.generation
            arguments += (commit.shard, commit.member_id, generation, commit.offset)
        reply = await self._write("commit_group_offsets", group, now, *arguments)
        return [CommittedShard(one[1], one[0], reply[1]) if one else None for one in reply[2:]]

    async def freeze(self, group: Group, fence: str) -> GroupOffsets:
        """Accept no commits until the group is seeded by the same fence; return its offsets."""
        with acknowledged_by_replicas():
            return self._offsets_of(await self._write("freeze_group_offsets", group, fence))

    async def seed(self, group: Group, fence: str, entries: Mapping[int, OffsetEntry]) -> bool:
        """Replace the offsets and accept commits, unless another one has frozen the group since."""
        pairs: list[Argument] = []
        for shard, entry in entries.items():
            pairs += (shard, _encode(entry))
        with acknowledged_by_replicas():
            reply = await self._write("seed_group_offsets", group, fence, group.generation, *pairs)
        return bool(reply[1])

    async def read(self, group: Group) -> GroupOffsets:
        """Return the group's offsets."""
        return self._offsets_of(await self._pipeline.read("get_group_offsets", [_key(group)]))

    async def read_many(self, groups: Sequence[Group]) -> list[GroupOffsets | MillstreamError]:
        """Return the offsets of each group, or the error."""
        return await asyncio.gather(*map(self._read_or_error, groups))

    async def _read_or_error(self, group: Group) -> GroupOffsets | MillstreamError:
        try:
            return await self.read(group)
        except MillstreamError as error:
            return error

    async def _write(self, name: str, group: Group, *arguments: Argument) -> Reply:
        """Run a script with the present store epoch."""

        def write() -> Awaitable[Reply]:
            epoch, ttl_ms = self._store_epoch(), limits.GROUP_OFFSETS_TTL_MS
            return self._pipeline.write(name, [_key(group)], epoch, ttl_ms, *arguments)

        return await retry_store_changes(write)

    def _offsets_of(self, reply: Reply) -> GroupOffsets:
        fields: dict[bytes, bytes] = dict(zip(reply[::2], reply[1::2], strict=True))
        generation, epoch = fields.pop(_GENERATION, None), int(fields.pop(_EPOCH, 0))
        is_frozen = fields.pop(_FENCE, None) is not None
        fields.pop(_RENEWED, None)
        is_seeded = generation is not None and epoch >= self._store_epoch()
        return GroupOffsets(
            int(generation) if generation is not None and is_seeded and not is_frozen else None,
            {int(shard): _decode(entry) for shard, entry in fields.items()},
        )


def _key(group: Group) -> bytes:
    return group_offsets_key(group.name.namespace, group.group_id)


def _encode(entry: OffsetEntry) -> str:
    committed, at_ms = entry.committed, entry.committed_at_ms
    words = (entry.lease_generation, entry.owner, committed, at_ms)
    return "|".join("" if word is None else str(word) for word in words)


def _decode(entry: bytes) -> OffsetEntry:
    lease, owner, committed, at_ms = entry.decode().split("|")
    return OffsetEntry(int(lease), owner or None, _number(committed), _number(at_ms))


def _number(word: str) -> int | None:
    return int(word) if word else None
