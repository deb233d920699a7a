"""Account settings: stored by namespace, for the protocol endpoints."""

from typing import Any

from storage.postgres.database import Database
from storage.postgres.repositories.account_settings import AccountSettings, AccountSettingsRows


class AccountSettingsStore:
    """Settings of accounts.

    Every method raises StorageUnavailable or StorageBusy; `put`, OutcomeUnknown.
    """

    def __init__(self, database: Database) -> None:
        self._rows = AccountSettingsRows(database)

    async def get(self, namespace: str) -> AccountSettings:
        """Return the settings of an account."""
        return await self._rows.settings(namespace)

    async def put(self, namespace: str, name: str, value: Any) -> None:
        """Set one setting of an account; the others stay."""
        await self._rows.put_setting(namespace, name, value)
