"""Single engines, for an operator on the machine."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from storage.access.credentials import Credentials
from storage.access.secret_box import SecretBox
from storage.audit.log import AuditLog
from storage.concurrency.isolation import Isolation
from storage.domain.clock import SystemClock
from storage.postgres.database import open_database
from storage.postgres.listener import Listener
from storage.settings import StorageSettings


@asynccontextmanager
async def open_credentials(settings: StorageSettings) -> AsyncGenerator[Credentials]:
    """Open only the credentials, for an operator on the machine.

    Announcements of other processes are not received; they receive those of this one. To create credentials: a change has
    to raise the catalog's version in the hot store, too (`storage.catalog.witness`).
    """
    async with open_database(settings) as database:
        box = SecretBox(settings.secret_keys)
        credentials = Credentials(database, Listener(settings.database_url), SystemClock(), box)
        try:
            yield credentials
        finally:
            await credentials.close()


@asynccontextmanager
async def open_audit(settings: StorageSettings) -> AsyncGenerator[AuditLog]:
    """Open only the audit log, for an operator on the machine."""
    clock = SystemClock()
    async with open_database(settings) as database:
        yield AuditLog(database, clock, Isolation(clock))
