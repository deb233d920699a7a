"""Repository of account settings."""

from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlmodel import col

from storage.postgres.repository import Repository
from storage.postgres.tables import AccountSettingsRow

AccountSettings = dict[str, Any]
"""Settings of a namespace, by name; each API endpoint has its own names."""


class AccountSettingsRows(Repository):
    """Stored account settings.

    Every method raises StorageUnavailable; those that write, OutcomeUnknown.
    """

    async def settings(self, namespace: str) -> AccountSettings:
        """Return the namespace's settings."""
        statement = select(col(AccountSettingsRow.settings)).where(
            col(AccountSettingsRow.namespace) == namespace
        )
        async with self._database.reading() as session:
            return await session.scalar(statement) or {}

    async def put_setting(self, namespace: str, name: str, value: Any) -> None:
        """Store one setting; the others stay."""
        statement = upsert(AccountSettingsRow).values(namespace=namespace, settings={name: value})
        merged = col(AccountSettingsRow.settings).op("||")(statement.excluded.settings)
        async with self._database.writing() as session:
            await session.execute(
                statement.on_conflict_do_update(
                    index_elements=["namespace"], set_={"settings": merged}
                )
            )
