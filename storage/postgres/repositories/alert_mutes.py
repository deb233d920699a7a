"""Repository of mutes of alerts."""

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlmodel import col

from storage.domain import limits
from storage.domain.alerts.kinds import AlertKind, AlertSubject
from storage.domain.alerts.mutes import AlertMute
from storage.domain.errors import QuotaReached
from storage.postgres.queries import query
from storage.postgres.repository import Repository
from storage.postgres.rows import rows_of, struct_of
from storage.postgres.tables import AlertMuteRow

_KEY = ("namespace", "kind", "object")


class AlertMuteRows(Repository):
    """Stored mutes.

    Every method raises StorageUnavailable; those that write, OutcomeUnknown.
    """

    async def put(self, mute: AlertMute) -> None:
        """Store a mute in place of the subject's earlier one, and delete expired ones.

        Raises QuotaReached. The lock serializes the mutes of a namespace, so that the limit holds.
        """
        values = msgspec.structs.asdict(mute)
        table = AlertMuteRow
        mutes = col(table.namespace) == mute.namespace
        expired = delete(table).where(mutes, col(table.until_ms) <= mute.muted_at_ms)
        others = select(func.count()).where(mutes, ~_is(mute.subject))
        async with self._database.writing() as session:
            await session.execute(query("hold_name"), {"name": f"alert_mutes:{mute.namespace}"})
            await session.execute(expired)
            if int(await session.scalar(others) or 0) >= limits.ALERT_MUTES_MAX:
                raise QuotaReached(
                    f"The limit of {limits.ALERT_MUTES_MAX} muted alerts is reached."
                )
            changed = {name: value for name, value in values.items() if name not in _KEY}
            statement = upsert(table).values(**values)
            await session.execute(
                statement.on_conflict_do_update(index_elements=_KEY, set_=changed)
            )

    async def delete(self, namespace: str, subject: AlertSubject) -> None:
        """Delete a mute, if it exists."""
        mutes = col(AlertMuteRow.namespace) == namespace
        async with self._database.writing() as session:
            await session.execute(delete(AlertMuteRow).where(mutes, _is(subject)))

    async def page(
        self, namespace: str, now_ms: int, after: tuple[str, str], limit: int
    ) -> Sequence[AlertMute]:
        """Return the unexpired mutes by kind and object, strictly after `after`."""
        table = AlertMuteRow
        kind, name = after
        later = (col(table.kind) > kind) | ((col(table.kind) == kind) & (col(table.object) > name))
        statement = (
            rows_of(table)
            .where(col(table.namespace) == namespace, col(table.until_ms) > now_ms, later)
            .order_by(col(table.kind), col(table.object))
            .limit(limit)
        )
        async with self._database.reading() as session:
            return [
                struct_of(AlertMute, row, kind=AlertKind(row.kind))
                for row in await session.execute(statement)
                if row.kind in _KINDS
            ]


_KINDS = frozenset(AlertKind)  # a later version may have stored others


def _is(subject: AlertSubject) -> Any:
    return (col(AlertMuteRow.kind) == subject.kind.value) & (
        col(AlertMuteRow.object) == subject.object
    )
