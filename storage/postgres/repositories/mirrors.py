"""Repository of mirrors and of their progress; the keys of origins are stored encrypted."""

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec
from sqlalchemy import Row, delete, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.domain.mirrors.mirror import Mirror, MirrorSpec
from storage.domain.mirrors.progress import MirrorStatus, ShardProgress
from storage.domain.names import MirrorName
from storage.postgres.database import Database
from storage.postgres.definition_table import DefinitionTable, LockedDefinition
from storage.postgres.rows import rows_of, struct_of
from storage.postgres.tables import LeaseRow, MirrorRow, MirrorShardRow


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
        """Return the progress of a mirror, by stream and shard."""
        shards = rows_of(MirrorShardRow).where(col(MirrorShardRow.mirror_id) == mirror_id)
        order = (col(MirrorShardRow.stream), col(MirrorShardRow.shard))
        failure = rows_of(MirrorRow).where(col(MirrorRow.mirror_id) == mirror_id)
        async with self._database.reading() as session:
            rows = (await session.execute(shards.order_by(*order))).all()
            mirror = (await session.execute(failure)).one_or_none()
        return MirrorStatus(
            shards=tuple(struct_of(ShardProgress, row) for row in rows),
            failure="" if mirror is None else mirror.failure,
        )

    async def write(self, mirror_id: str, shards: Sequence[ShardProgress], failure: str) -> bool:
        """Store progress; return False, and store nothing, if the mirror was deleted or promoted.

        The row lock of the mirror decides between this and a promotion.
        """
        fail = (
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
            stored = await session.execute(fail.values(failure=failure))
            is_open: bool = stored.rowcount > 0  # type: ignore[attr-defined]
            if values and is_open:
                await session.execute(upsert, values)
            return is_open

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


_KEY = ("mirror_id", "stream", "origin_id", "shard")
_PROGRESS = ShardProgress.__struct_fields__
