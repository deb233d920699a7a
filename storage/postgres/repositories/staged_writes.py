"""Repository of writes: the staged records of a writer's batch, fixed by its first commit."""

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Row, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col

from storage.domain.errors import StorageUnavailable
from storage.domain.names import LogId, StreamName
from storage.postgres.queries import query
from storage.postgres.repository import Repository
from storage.postgres.rows import rows_of, struct_of
from storage.postgres.tables import WriteRow


class Write(msgspec.Struct, frozen=True):
    """A batch of a writer and its progress.

    `staged`: its parts, in order; `parts` of them are appended, with `records` records; `done`: all are.
    """

    stream_id: LogId
    writer_id: str
    batch_id: int
    staged: tuple[str, ...]
    parts: int
    records: int
    done: bool


class WriteRows(Repository):
    """Stored writes. Every method raises StorageUnavailable, and may be repeated."""

    async def decide(
        self, stream_id: LogId, writer_id: str, batch_id: int, staged: Sequence[str], now_ms: int
    ) -> Write:
        """Fix the staged parts of the batch to these, unless they were fixed before; return it."""
        values = {
            "stream_id": stream_id,
            "writer_id": writer_id,
            "batch_id": batch_id,
            "staged": list(staged),
            "parts": 0,
            "records": 0,
            "done": False,
            "decided_at_ms": now_ms,
        }
        async with self._database.autocommitting() as session:
            await session.execute(insert(WriteRow).on_conflict_do_nothing(), [values])
        write = await self.find(stream_id, writer_id, batch_id)
        if write is None:
            raise StorageUnavailable("The staged write has expired; try again.")
        return write

    async def find(self, stream_id: LogId, writer_id: str, batch_id: int) -> Write | None:
        """Return the batch, if its parts were fixed."""
        statement = rows_of(WriteRow).where(*_is(stream_id, writer_id, batch_id))
        async with self._database.reading() as session:
            row = (await session.execute(statement)).one_or_none()
            return None if row is None else _write(row)

    async def advance(self, write: Write) -> None:
        """Store the batch's progress, which never goes back."""
        key = _is(write.stream_id, write.writer_id, write.batch_id)
        async with self._database.autocommitting() as session:
            await session.execute(
                update(WriteRow)
                .where(*key, col(WriteRow.parts) <= write.parts)
                .values(
                    parts=write.parts,
                    records=func.greatest(col(WriteRow.records), write.records),
                    done=col(WriteRow.done) | write.done,
                )
            )

    async def open(self, decided_before_ms: int, limit: int) -> list[tuple[StreamName, Write]]:
        """Return unfinished batches that were fixed by then, the oldest first, with their streams."""
        parameters = {"decided_before_ms": decided_before_ms, "limit": limit}
        async with self._database.reading() as session:
            rows = await session.execute(query("open_writes"), parameters)
            return [(StreamName(row.name, row.namespace), _write(row)) for row in rows]

    async def staged_in_use(self) -> set[str]:
        """Return the staged parts of batches that are not yet appended."""
        statement = select(col(WriteRow.staged)).where(col(WriteRow.done).is_(False))
        async with self._database.reading() as session:
            return {part for staged in await session.scalars(statement) for part in staged}

    async def delete_finished(self, decided_before_ms: int) -> int:
        """Delete batches that were finished long ago; return how many."""
        old = col(WriteRow.decided_at_ms) < decided_before_ms
        async with self._database.autocommitting() as session:
            deleted = await session.execute(
                delete(WriteRow).where(old, col(WriteRow.done).is_(True))
            )
            return int(deleted.rowcount)  # type: ignore[attr-defined]


def _is(stream_id: LogId, writer_id: str, batch_id: int) -> tuple[Any, ...]:
    return (
        col(WriteRow.stream_id) == stream_id,
        col(WriteRow.writer_id) == writer_id,
        col(WriteRow.batch_id) == batch_id,
    )


def _write(row: Row[Any]) -> Write:
    return struct_of(Write, row, staged=tuple(row.staged))
