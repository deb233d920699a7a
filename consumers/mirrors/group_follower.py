"""Follower of the origin's consumer groups: creates them here, and moves their offsets.

    position there ──▶ offset table of each shard ──▶ smallest offset ──▶ committed offset here
                       (storage.domain.mirrors.offsets)                   never back, and not with members

A position is read before the shards of its stream, so every shard that it speaks of is among these. A group is reported before
it is created or moved: so a mirror knows what is its own, and a promoted one moves nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from consumers.mirrors.origin import (
    GroupPosition,
    OriginClient,
    OriginFailed,
    failure_text,
    group_spec_of,
)
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.errors import AlreadyExists, GroupNotFound, MillstreamError
from storage.domain.groups.group import Group, GroupSpec
from storage.domain.mirrors.groups import MirroredGroup, MirroredGroupState
from storage.domain.mirrors.mirror import Mirror
from storage.domain.mirrors.offsets import OffsetTable, ShardPosition, TargetShard, safe_offsets
from storage.domain.mirrors.progress import ShardKey, ShardProgress
from storage.domain.names import GroupName, StreamName

_EMPTY = OffsetTable()


class GroupFollower:
    """Follower of the groups that read mirrored streams.

    `progress` and `offsets` are those of the puller.
    """

    def __init__(
        self,
        mirror: Mirror,
        client: OriginClient,
        storage: Storage,
        progress: Mapping[ShardKey, ShardProgress],
        offsets: Mapping[ShardKey, OffsetTable],
    ) -> None:
        self._mirror = mirror
        self._client = client
        self._storage = storage
        self._progress = progress
        self._offsets = offsets
        self._groups: dict[str, MirroredGroup] = {}

    def begin(self, groups: Iterable[MirroredGroup]) -> None:
        """Continue with the groups that were found before."""
        self._groups = {group.group_name: group for group in groups}

    async def follow(self) -> None:
        """Create and move the groups once.

        Raises OriginFailed, MillstreamError if they cannot be listed.
        """
        streams = {key.stream for key in self._progress}
        listed = [one async for one in self._client.groups() if one["stream"] in streams]
        if len(listed) > limits.MIRROR_GROUPS_MAX:
            most = limits.MIRROR_GROUPS_MAX
            raise OriginFailed(f"The streams have {len(listed)} groups; a mirror follows {most}")
        await self._drop(self._groups.keys() - {one["name"] for one in listed})
        for fields in listed:
            group = await self._registered(fields)
            try:
                await self._follow(group, fields)
            except (OriginFailed, MillstreamError) as error:
                await self._note(group.group_name, failure=failure_text(error))

    async def _drop(self, names: set[str]) -> None:
        if names:
            await self._storage.mirrors.report_groups(self._mirror, (), names)
            for name in names:
                del self._groups[name]

    async def _registered(self, fields: Mapping[str, Any]) -> MirroredGroup:
        """Return a group as it is registered; one that is new, as it is to be created."""
        name, created = fields["name"], fields["created_at"]
        mirrored = self._groups.get(name)
        if mirrored is not None and mirrored.origin_created_at == created:
            return mirrored
        exists = await self._copy(name) is not None
        state = MirroredGroupState.FOREIGN if exists else MirroredGroupState.CREATED
        group = MirroredGroup(
            group_name=name,
            stream=fields["stream"],
            origin_created_at=created,
            noted_at_ms=self._storage.mirrors.now_ms(),
            state=state,
        )
        return await self._store(group)

    async def _follow(self, mirrored: MirroredGroup, fields: dict[str, Any]) -> None:
        """Create a group, or move it to where the origin's is."""
        copy = await self._copy(mirrored.group_name)
        spec = group_spec_of(fields)
        if copy is not None and not await self._is_own(mirrored, copy, spec):
            return
        positions = await self._client.positions(mirrored.group_name)
        offsets = None
        if any(one.committed is not None for one in positions):
            offsets = await self._translate(mirrored.stream, positions)
        if copy is None:
            await self._create(mirrored, spec, offsets)
        else:
            if self._mirror.spec.follow_definitions and replace(copy.spec, paused=False) != spec:
                await self._storage.groups.put(copy.name, spec)
            await self._move(self._groups[mirrored.group_name], copy, offsets or {})

    # ── Definitions ──

    async def _is_own(self, mirrored: MirroredGroup, copy: Group, spec: GroupSpec) -> bool:
        """Return whether a group here is the mirror's, and may be moved."""
        if mirrored.state is MirroredGroupState.IN_USE:
            return False
        if mirrored.group_id is None and _is_created_since(mirrored, copy, spec):
            await self._note(mirrored.group_name, group_id=copy.group_id)  # before a crash
            return True
        if mirrored.group_id != copy.group_id:
            await self._note(mirrored.group_name, state=MirroredGroupState.FOREIGN)
            return False
        return True

    async def _create(
        self, mirrored: MirroredGroup, spec: GroupSpec, offsets: Mapping[int, int] | None
    ) -> None:
        """Create a group with these offsets, so that it never reads from anywhere else."""
        fresh = MirroredGroup(
            group_name=mirrored.group_name,
            stream=mirrored.stream,
            origin_created_at=mirrored.origin_created_at,
            noted_at_ms=self._storage.mirrors.now_ms(),
        )
        await self._store(fresh)
        name = GroupName(mirrored.group_name, self._mirror.name.namespace)
        with suppress(AlreadyExists):  # by another, since the check: the next round sees which
            put = await self._storage.groups.put(name, spec, create_only=True, offsets=offsets)
            await self._note(name.name, group_id=put.definition.group_id)
            if offsets is not None:
                await self._note_moved(name.name, _by_text(offsets))

    async def _copy(self, name: str) -> Group | None:
        """Return the group of a name here, if there is one."""
        try:
            return await self._storage.groups.get(GroupName(name, self._mirror.name.namespace))
        except GroupNotFound:
            return None

    # ── Offsets ──

    async def _translate(self, stream: str, positions: Sequence[GroupPosition]) -> dict[int, int]:
        """Return the safe offset of each shard of the copy, for these positions at the origin."""
        origin_id, shards = await self._client.shards(stream)
        target = StreamName(stream, self._mirror.name.namespace)
        states = await self._storage.record_reader.shards(target)
        targets = [
            TargetShard(
                one.shard.index, one.shard.first_hash_key, one.shard.last_hash_key, one.next
            )
            for one in states
        ]
        by_shard = {one.shard: one.position for one in positions}
        parents = {parent for shard in shards for parent in shard.parents}
        sources = []
        for shard in shards:
            key = ShardKey(stream, origin_id, shard.index)
            position, progress = by_shard.get(shard.index, 0), self._progress.get(key)
            is_known = progress is not None and progress.target_id == states[0].stream_id
            is_read = progress is not None and progress.ended and position >= progress.next_offset
            sources.append(
                ShardPosition(
                    first_hash_key=int(shard.first_hash_key),
                    last_hash_key=int(shard.last_hash_key),
                    position=position,
                    offsets=self._offsets.get(key, _EMPTY) if is_known else _EMPTY,
                    is_complete=is_known and is_read and shard.index in parents,
                )
            )
        return safe_offsets(sources, targets)

    async def _move(
        self, mirrored: MirroredGroup, group: Group, offsets: Mapping[int, int]
    ) -> None:
        """Move the copy of a group, unless it is used here."""
        _, members, shards = await self._storage.groups.describe(group.name)
        earlier = mirrored.positions or {}
        is_in_use = bool(members) or any(
            (shards[int(shard)].committed or 0) > offset
            for shard, offset in earlier.items()
            if int(shard) in shards
        )
        positions = {
            **earlier,
            **{
                shard: max(offset, earlier.get(shard, 0))
                for shard, offset in _by_text(offsets).items()
            },
        }
        if not is_in_use and positions != earlier:
            # Noted before, so that it is never taken for the move of another.
            await self._note(mirrored.group_name, positions=positions)
            is_in_use = not await self._storage.groups.positions.advance(group, offsets)
        if is_in_use:
            await self._note(mirrored.group_name, state=MirroredGroupState.IN_USE, failure="")
        elif positions != earlier:
            await self._note_moved(mirrored.group_name, positions)
        else:
            await self._note(mirrored.group_name, failure="")

    # ── Reports ──

    async def _note_moved(self, name: str, positions: Mapping[str, int]) -> None:
        await self._note(
            name,
            state=MirroredGroupState.FOLLOWED,
            positions=positions,
            moved_at_ms=self._storage.mirrors.now_ms(),
            failure="",
        )

    async def _note(self, name: str, **changes: Any) -> None:
        group = replace(self._groups[name], **changes)
        if group != self._groups[name]:
            await self._store(group)

    async def _store(self, group: MirroredGroup) -> MirroredGroup:
        await self._storage.mirrors.report_groups(self._mirror, [group])
        self._groups[group.group_name] = group
        return group


def _by_text(offsets: Mapping[int, int]) -> dict[str, int]:
    return {str(shard): offset for shard, offset in offsets.items()}


def _is_created_since(mirrored: MirroredGroup, copy: Group, spec: GroupSpec) -> bool:
    """Return whether a group here is what the mirror was about to create."""
    is_new = copy.created_at_ms >= mirrored.noted_at_ms
    return mirrored.state is MirroredGroupState.CREATED and is_new and copy.spec == spec
