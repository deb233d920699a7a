"""Repository of the audit log, and of the intents of calls that are not in it yet."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Row, delete, insert, or_, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.domain import limits
from storage.domain.access.audit import (
    FIRST_HASH,
    ApiProtocol,
    AuditedCall,
    AuditFilter,
    AuditRecord,
    Snapshot,
    canonical,
    sealed,
)
from storage.domain.errors import StorageUnavailable
from storage.postgres.queries import query
from storage.postgres.repository import Repository
from storage.postgres.rows import rows_of, struct_of
from storage.postgres.tables import AuditPendingRow, AuditRow

_TURN = 0x6175646974210000  # "audit!"
_TEXTS = (
    "namespace",
    "principal",
    "credential",
    "authenticated",
    "address",
    "operation",
    "action",
    "resource",
    "request_id",
)


class Intent(msgspec.Struct, frozen=True):
    """A call that has started. `before`: the definition before it."""

    intent_id: str
    call: AuditedCall
    before: Snapshot | None


class AuditRows(Repository):
    """The stored log. Every method raises StorageUnavailable."""

    async def intend(self, intent: Intent) -> None:
        """Record the start of a call.

        Repeating it has no use: a new intent has a new id.
        """
        values = {
            "intent_id": intent.intent_id,
            "at_ms": intent.call.at_ms,
            "asked": canonical(msgspec.to_builtins(intent.call)),
            "before": _text(intent.before),
        }
        async with self._database.autocommitting() as session:
            await session.execute(insert(AuditPendingRow), [values])

    async def conclude(
        self,
        intent_id: str | None,
        call: AuditedCall,
        outcome: str,
        before: Snapshot | None,
        after: Snapshot | None,
    ) -> AuditRecord:
        """Append the outcome of a call, and delete its intent, if there was one; both or neither."""
        async with self._database.writing(
            unknown=StorageUnavailable, limit_ms=limits.AUDIT_ENTRY_MS_MAX
        ) as session:
            await session.execute(query("take_turn_in_audit"), {"key": _TURN})
            if intent_id is not None:
                await _delete_intent(session, intent_id)
            return await _append(session, call, outcome, before, after)

    async def withdraw(self, intent_id: str) -> None:
        """Delete an intent."""
        async with self._database.writing(unknown=StorageUnavailable) as session:
            await _delete_intent(session, intent_id)

    async def give_up(self, intent_id: str, outcome: str) -> bool:
        """Append the outcome of an intent, if it still exists; return whether it did."""
        async with self._database.writing(unknown=StorageUnavailable) as session:
            await session.execute(query("take_turn_in_audit"), {"key": _TURN})
            row = AuditPendingRow
            statement = select(col(row.asked), col(row.before)).where(
                col(row.intent_id) == intent_id
            )
            pending = (await session.execute(statement)).first()
            if pending is None:
                return False
            call = msgspec.json.decode(pending.asked, type=AuditedCall)
            await _delete_intent(session, intent_id)
            await _append(session, call, outcome, _snapshot(pending.before), None)
            return True

    async def abandoned(self, before_ms: int, limit: int) -> list[str]:
        """Return the ids of intents from before a time, the oldest first."""
        row = AuditPendingRow
        statement = (
            select(col(row.intent_id))
            .where(col(row.at_ms) < before_ms)
            .order_by(col(row.at_ms))
            .limit(limit)
        )
        async with self._database.reading() as session:
            return list(await session.scalars(statement))

    async def page(
        self, filter_: AuditFilter, after: int | None, limit: int, *, oldest_first: bool
    ) -> list[AuditRecord]:
        """Return entries, the newest first unless `oldest_first`, strictly beyond number `after`."""
        seq = col(AuditRow.seq)
        statement = rows_of(AuditRow).where(*_conditions(filter_))
        if after is not None:
            statement = statement.where(seq > after if oldest_first else seq < after)
        statement = statement.order_by(seq if oldest_first else seq.desc()).limit(limit)
        async with self._database.reading() as session:
            return [_entry(row) for row in await session.execute(statement)]


async def _append(
    session: AsyncSession,
    call: AuditedCall,
    outcome: str,
    before: Snapshot | None,
    after: Snapshot | None,
) -> AuditRecord:
    """Append an entry; the caller has acquired its turn."""
    last = select(col(AuditRow.seq), col(AuditRow.hash)).order_by(col(AuditRow.seq).desc()).limit(1)
    last_entry = (await session.execute(last)).first()
    seq, prev_hash = (last_entry.seq + 1, last_entry.hash) if last_entry else (1, FIRST_HASH)
    entry = sealed(seq, prev_hash=prev_hash, call=call, outcome=outcome, before=before, after=after)
    values = {
        "seq": seq,
        "format": entry.format,
        **msgspec.to_builtins(call),
        "outcome": outcome,
        "before": _text(before),
        "after": _text(after),
        "prev_hash": prev_hash,
        "hash": entry.hash,
    }
    await session.execute(insert(AuditRow), [values])
    return entry


async def _delete_intent(session: AsyncSession, intent_id: str) -> None:
    await session.execute(
        delete(AuditPendingRow).where(col(AuditPendingRow.intent_id) == intent_id)
    )


def _conditions(filter_: AuditFilter) -> Sequence[ColumnElement[bool]]:
    row = AuditRow
    same = (
        (col(getattr(row, name)), getattr(filter_, name)) for name in ("namespace", "principal")
    )
    conditions = [column == value for column, value in same if value is not None]
    if filter_.action is not None:
        conditions.append(col(row.action) == filter_.action)
    if filter_.operation is not None:
        operation, (name, is_prefix) = col(row.operation), _prefix_of(filter_.operation)
        conditions.append(
            operation.istartswith(name, autoescape=True) if is_prefix else operation == name
        )
    if filter_.resource is not None:
        resource = col(row.resource)
        below = resource.startswith(f"{filter_.resource}/", autoescape=True)
        conditions.append(or_(resource == filter_.resource, below))
    if filter_.since_ms is not None:
        conditions.append(col(row.at_ms) >= filter_.since_ms)
    if filter_.until_ms is not None:
        conditions.append(col(row.at_ms) < filter_.until_ms)
    return conditions


def _prefix_of(operation: str) -> tuple[str, bool]:
    name = operation.removesuffix("*")
    return name, name != operation


def _entry(row: Row[Any]) -> AuditRecord:
    call = struct_of(AuditedCall, row, protocol=ApiProtocol(row.door))
    before, after = _snapshot(row.before), _snapshot(row.after)
    return struct_of(AuditRecord, row, call=call, before=before, after=after)


def _text(shown: Snapshot | None) -> str | None:
    return None if shown is None else canonical(shown)


def _snapshot(text: str | None) -> Snapshot | None:
    return None if text is None else json.loads(text)
