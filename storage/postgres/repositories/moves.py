"""Repository of moves."""

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Row, func, insert, update
from sqlalchemy.exc import IntegrityError
from sqlmodel import col

from storage.domain.names import QueueName
from storage.domain.queues.message import WhichDead
from storage.domain.queues.moves import Move, MoveState
from storage.postgres.repository import Repository
from storage.postgres.rows import rows_of, struct_of
from storage.postgres.tables import MoveRow

_OPEN = (MoveState.RUNNING.value, MoveState.CANCELLING.value)


class MoveRows(Repository):
    """Stored moves. Every method raises StorageUnavailable."""

    async def insert(self, move: Move) -> bool:
        """Store a new move. False when another one from the same queue is open."""
        try:
            async with self._database.writing() as session:
                await session.execute(insert(MoveRow), [_values(move)])
        except IntegrityError:
            return False
        return True

    async def find(self, move_id: str) -> Move | None:
        """Return the move, or None."""
        moves = await self._select(col(MoveRow.move_id) == move_id, limit=1)
        return moves[0] if moves else None

    async def of(self, source: QueueName, limit: int) -> list[Move]:
        """Return the moves from a queue, the newest first."""
        return await self._select(
            col(MoveRow.namespace) == source.namespace,
            col(MoveRow.source) == source.name,
            limit=limit,
        )

    async def open(self) -> list[Move]:
        """Return the moves that are not over."""
        return await self._select(col(MoveRow.state).in_(_OPEN), limit=1_000)

    async def change_state(self, move_id: str, before: MoveState, after: MoveState) -> bool:
        """Change the move from `before` to `after`; return whether it was in the state `before`."""
        return await self._update(
            [col(MoveRow.move_id) == move_id, col(MoveRow.state) == before.value],
            state=after.value,
        )

    async def add_moved(self, move_id: str, count: int, examined_to: int = -1) -> None:
        """Add `count` to the moved messages; those up to `examined_to` have been examined."""
        if count or examined_to >= 0:
            await self._update(
                [col(MoveRow.move_id) == move_id],
                moved=col(MoveRow.moved) + count,
                looked_at=func.greatest(col(MoveRow.looked_at), examined_to),
            )

    async def end(self, move_id: str, state: MoveState, failure: str = "") -> None:
        """End the move, unless it has ended before."""
        await self._update(
            [col(MoveRow.move_id) == move_id, col(MoveRow.state).in_(_OPEN)],
            state=state.value,
            failure=failure,
        )

    async def _select(self, *conditions: Any, limit: int) -> list[Move]:
        newest_first = (col(MoveRow.started_at_ms).desc(), col(MoveRow.move_id))
        statement = rows_of(MoveRow).where(*conditions).order_by(*newest_first).limit(limit)
        async with self._database.reading() as session:
            return [_move(row) for row in await session.execute(statement)]

    async def _update(self, conditions: Sequence[Any], **values: Any) -> bool:
        # Doing it twice is harmless, so an unanswered commit is treated as a failed one.
        async with self._database.autocommitting() as session:
            changed = await session.execute(update(MoveRow).where(*conditions).values(**values))
            return bool(changed.rowcount)  # type: ignore[attr-defined]


def _values(move: Move) -> dict[str, Any]:
    which = move.which_dead
    return {
        "move_id": move.move_id,
        "namespace": move.source.namespace,
        "source": move.source.name,
        "destination": None if move.destination is None else move.destination.name,
        "per_second": move.per_second,
        "state": move.state.value,
        "moved": move.moved,
        "to_move": move.to_move,
        "failure": move.failure,
        "started_at_ms": move.started_at_ms,
        "which_dead": None if which is None else msgspec.to_builtins(which),
        "looked_at": move.examined_to,
    }


def _move(row: Row[Any]) -> Move:
    destination, which = row.destination, row.which_dead
    return struct_of(
        Move,
        row,
        source=QueueName(row.source, row.namespace),
        destination=None if destination is None else QueueName(destination, row.namespace),
        state=MoveState(row.state),
        which_dead=None if which is None else msgspec.convert(which, WhichDead),
        examined_to=row.looked_at,
    )
