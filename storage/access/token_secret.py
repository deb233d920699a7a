"""Token secret: signs the tokens of protocol endpoints, in all processes alike."""

from storage.postgres.database import Database
from storage.postgres.repositories.offset_reservations import StoreIdentities


class TokenSecret:
    """Cache of the deployment's token secret, which never changes."""

    def __init__(self, database: Database) -> None:
        self._identities = StoreIdentities(database)
        self.cached: bytes | None = None
        """The secret if it has been read."""

    async def get(self) -> bytes:
        """Return the 32 random bytes; read once. Raises StorageUnavailable or StorageBusy."""
        if self.cached is None:
            self.cached = await self._identities.secret()
        return self.cached
