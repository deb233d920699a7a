"""Repository of mirrors and of their progress; the keys of origins are stored encrypted."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

import msgspec
from sqlalchemy import Row, delete, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.domain.mirrors.groups import MirroredGroup, MirroredGroupState
from storage.domain.mirrors.mirror import Mirror, MirrorSpec
from storage.domain.mirrors.offsets import OffsetBound, OffsetChanges
from storage.domain.mirrors.progress import (
    MirrorStatus,
    QueueProgress,
    ShardKey,
    ShardProgress,
)
from storage.domain.names import MirrorName
from storage.postgres.database import Database
from storage.postgres.definition_table import DefinitionTable, LockedDefinition
from storage.postgres.queries import query
from storage.postgres.rows import rows_of, struct_of
from storage.postgres.tables import (
    LeaseRow,
    MirrorGroupRow,
    MirrorOffsetRow,
    MirrorQueueRow,
    MirrorRow,
    MirrorShardRow,
)


class MirrorCodec(Protocol):
    """Encryption of a mirror's key."""

    def encrypt(self, mirror: Mirror) -> bytes:
        """Return the encrypted key."""

    def decrypt(self, mirror: Mirror, sealed: bytes) -> Mirror:
        """Return the mirror with its key."""


LockedMirror = LockedDefinition[Mirror]


class MirrorRows(DefinitionTable[MirrorName, Mirror, LockedMirror]):
    """Mirrors of every namespace. Every method raises StorageUnavailable or StorageBusy.

    Without a codec, mirrors have empty keys, and changes leave the stored ones alone.
    """

    kind = "mirror"
    table = MirrorRow
    id = "mirror_id"

    def __init__(self, database: Database, codec: MirrorCodec | None = None) -> None:
        super().__init__(database)
        self._codec = codec

    def definition_of(self, row: Row[Any]) -> Mirror:
        name, spec = MirrorName(row.name, row.namespace), msgspec.convert(row.spec, MirrorSpec)
        mirror = struct_of(Mirror, row, name=name, spec=spec)
        return mirror if self._codec is None else self._codec.decrypt(mirror, row.sealed)

    def changes(self, definition: Mirror) -> dict[str, Any]:
        public = msgspec.structs.replace(definition.spec, key="")
        changes = super().changes(msgspec.structs.replace(definition, spec=public))
        changes["promoted_at_ms"] = definition.promoted_at_ms
        if self._codec is not None:
            changes["sealed"] = self._codec.encrypt(definition)
        return changes

    def locked(self, session: AsyncSession, name: MirrorName, row: Row[Any] | None) -> LockedMirror:
        return LockedDefinition(session, self, name, row)


class MirrorProgressRows:
    """Progress of mirrors, which their pullers report. Every method raises StorageUnavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, mirror_id: str) -> MirrorStatus:
        """Return the progress of a mirror, by stream and shard, and by queue."""
        shards = rows_of(MirrorShardRow).where(col(MirrorShardRow.mirror_id) == mirror_id)
        order = (col(MirrorShardRow.stream), col(MirrorShardRow.shard))
        groups = rows_of(MirrorGroupRow).where(col(MirrorGroupRow.mirror_id) == mirror_id)
        queues = rows_of(MirrorQueueRow).where(col(MirrorQueueRow.mirror_id) == mirror_id)
        failure = rows_of(MirrorRow).where(col(MirrorRow.mirror_id) == mirror_id)
        async with self._database.reading() as session:
            rows = (await session.execute(shards.order_by(*order))).all()
            named = (await session.execute(groups.order_by(col(MirrorGroupRow.group_name)))).all()
            copied = (await session.execute(queues.order_by(col(MirrorQueueRow.queue)))).all()
            mirror = (await session.execute(failure)).one_or_none()
        return MirrorStatus(
            shards=tuple(struct_of(ShardProgress, row) for row in rows),
            groups=tuple(
                struct_of(MirroredGroup, row, state=MirroredGroupState(row.state)) for row in named
            ),
            queues=tuple(struct_of(QueueProgress, row) for row in copied),
            failure="" if mirror is None else mirror.failure,
            created_at_ms=0 if mirror is None else mirror.created_at_ms,
            listed_at_ms=None if mirror is None else mirror.listed_at_ms,
        )

    async def read_offsets(self, mirror_id: str) -> dict[ShardKey, list[OffsetBound]]:
        """Return the offset tables of a mirror, by shard of the origin."""
        offsets = rows_of(MirrorOffsetRow).where(col(MirrorOffsetRow.mirror_id) == mirror_id)
        tables: dict[ShardKey, list[OffsetBound]] = {}
        async with self._database.reading() as session:
            for row in await session.execute(offsets):
                entry = OffsetBound(row.target_shard, row.origin_offset, row.target_offset)
                tables.setdefault(ShardKey(row.stream, row.origin_id, row.shard), []).append(entry)
        return tables

    async def write(
        self,
        mirror_id: str,
        shards: Sequence[ShardProgress],
        failure: str,
        offsets: Mapping[ShardKey, OffsetChanges],
        listed_at_ms: int | None,
    ) -> bool:
        """Store progress; return False, and store nothing, if the mirror was deleted or promoted.

        The row lock of the mirror decides between this and a promotion.
        """
        changes: dict[str, Any] = {"failure": failure}
        if listed_at_ms is not None:
            changes["listed_at_ms"] = listed_at_ms
        note = (
            update(MirrorRow)
            .where(col(MirrorRow.mirror_id) == mirror_id)
            .where(col(MirrorRow.promoted_at_ms).is_(None))
        )
        upsert = insert(MirrorShardRow)
        upsert = upsert.on_conflict_do_update(
            index_elements=_KEY,
            set_={name: upsert.excluded[name] for name in _PROGRESS if name not in _KEY},
        )
        values = [{"mirror_id": mirror_id, **msgspec.structs.asdict(shard)} for shard in shards]
        async with self._database.writing() as session:
            stored = await session.execute(note.values(changes))
            is_open: bool = stored.rowcount > 0  # type: ignore[attr-defined]
            if values and is_open:
                await session.execute(upsert, values)
            if offsets and is_open:
                await _write_offsets(session, mirror_id, offsets)
            return is_open

    async def write_groups(
        self, mirror_id: str, groups: Sequence[MirroredGroup], gone: Collection[str]
    ) -> bool:
        """Store groups, and drop those that are `gone`.

        Returns False, and stores nothing, if the mirror was deleted or promoted.
        """
        upsert = insert(MirrorGroupRow)
        upsert = upsert.on_conflict_do_update(
            index_elements=_GROUP_KEY,
            set_={name: upsert.excluded[name] for name in _GROUP if name not in _GROUP_KEY},
        )
        drop = (
            delete(MirrorGroupRow)
            .where(col(MirrorGroupRow.mirror_id) == mirror_id)
            .where(col(MirrorGroupRow.group_name).in_(gone))
        )
        values = [{"mirror_id": mirror_id, **msgspec.structs.asdict(group)} for group in groups]
        async with self._database.writing() as session:
            if (await session.execute(_locked(mirror_id))).one_or_none() is None:
                return False
            if gone:
                await session.execute(drop)
            if values:
                await session.execute(upsert, values)
            return True

    async def write_queues(self, mirror_id: str, queues: Sequence[QueueProgress]) -> bool:
        """Store progress on queues.

        Returns False, and stores nothing, if the mirror was deleted or promoted.
        """
        upsert = insert(MirrorQueueRow)
        upsert = upsert.on_conflict_do_update(
            index_elements=_QUEUE_KEY,
            set_={name: upsert.excluded[name] for name in _QUEUE if name not in _QUEUE_KEY},
        )
        values = [{"mirror_id": mirror_id, **msgspec.structs.asdict(queue)} for queue in queues]
        async with self._database.writing() as session:
            if (await session.execute(_locked(mirror_id))).one_or_none() is None:
                return False
            await session.execute(upsert, values)
            return True

    async def other_mirror_of(self, mirror: Mirror, queue: str) -> str | None:
        """Return the name of another mirror of the namespace that copies a queue, if there is one."""
        other = (
            rows_of(MirrorRow)
            .join(MirrorQueueRow, col(MirrorQueueRow.mirror_id) == col(MirrorRow.mirror_id))
            .where(col(MirrorRow.namespace) == mirror.name.namespace)
            .where(col(MirrorRow.mirror_id) != mirror.mirror_id)
            .where(col(MirrorRow.promoted_at_ms).is_(None))
            .where(col(MirrorQueueRow.queue) == queue)
        )
        async with self._database.reading() as session:
            row = (await session.execute(other.limit(1))).one_or_none()
        return None if row is None else str(row.name)

    async def delete(self, mirror_id: str, shard: ShardProgress) -> None:
        """Delete the progress on a shard that the origin no longer has."""
        row = (
            delete(MirrorShardRow)
            .where(col(MirrorShardRow.mirror_id) == mirror_id)
            .where(col(MirrorShardRow.stream) == shard.stream)
            .where(col(MirrorShardRow.origin_id) == shard.origin_id)
            .where(col(MirrorShardRow.shard) == shard.shard)
        )
        async with self._database.writing() as session:
            await session.execute(row)

    async def delete_lease(self, session: AsyncSession, lease: str) -> None:
        """Delete the lease of a deleted mirror."""
        await session.execute(delete(LeaseRow).where(col(LeaseRow.name) == lease))


def _locked(mirror_id: str) -> Any:
    """Return the query of a mirror that was not promoted, which locks its row."""
    return (
        rows_of(MirrorRow)
        .where(col(MirrorRow.mirror_id) == mirror_id)
        .where(col(MirrorRow.promoted_at_ms).is_(None))
        .with_for_update()
    )


async def _write_offsets(
    session: AsyncSession, mirror_id: str, offsets: Mapping[ShardKey, OffsetChanges]
) -> None:
    """Store changes of offset tables."""
    removed = [(*key, *entry) for key, changes in offsets.items() for entry in changes.removed]
    added = [(*key, *entry) for key, changes in offsets.items() for entry in changes.added]
    for name, rows in (("delete_mirror_offsets", removed), ("put_mirror_offsets", added)):
        if rows:
            columns = zip(_OFFSET, zip(*rows, strict=True), strict=True)
            parameters = {f"{column}s": list(values) for column, values in columns}
            await session.execute(query(name), {"mirror_id": mirror_id, **parameters})


_KEY = ("mirror_id", "stream", "origin_id", "shard")
_OFFSET = (*_KEY[1:], *OffsetBound._fields)
_GROUP_KEY = ("mirror_id", "group_name")
_GROUP = MirroredGroup.__struct_fields__
_QUEUE_KEY = ("mirror_id", "queue")
_QUEUE = QueueProgress.__struct_fields__
_PROGRESS = ShardProgress.__struct_fields__
