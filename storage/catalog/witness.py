"""Witness of the catalog: a version in the hot store that every change raises.

A process that has lost Postgres cannot hear that a definition or a credential was changed by one that has not. Each
change of either therefore raises one number in both stores, in this order:

    1 lock the row of `catalog_version`: changes commit in the order of their versions
    2 raise the number in the hot store, above the row's
    3 write it into the row, with an announcement
    4 commit

So the hot store's number is at least the row's, and above it only while a change is in progress or was given up. As
long as it is the last one that a process heard of, nothing was taken away from what the process knows
(`storage.postgres.listener`). Only insertions do not raise it: nothing that was cached before becomes wrong by them.

If the hot store does not answer, the change goes on with the row's next number: nobody can use what the change
takes away without the hot store. `level`, which the sweeper calls, makes both numbers equal again.
"""

import asyncio
import logging

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.domain import limits
from storage.domain.errors import MillstreamError
from storage.hot_store.servers import HotServers
from storage.postgres.database import Database
from storage.postgres.listener import CATALOG_VERSION_CHANNEL
from storage.postgres.queries import query
from storage.postgres.tables import CatalogVersionRow

logger = logging.getLogger(__name__)

_TIMEOUT_S = limits.CATALOG_WITNESS_MS / limits.SECOND_MS


class CatalogWitness:
    """The version of the catalog in both stores, and the one place that raises it."""

    def __init__(self, store: HotServers, database: Database) -> None:
        self._store = store
        self._database = database

    async def raise_version(self, session: AsyncSession) -> None:
        """Raise the version, before the transaction of a change is committed."""
        recorded = await _lock(session)
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                version = await self._store.raise_catalog_version(recorded + 1)
        except (MillstreamError, TimeoutError) as error:
            version = recorded + 1
            logger.warning("catalog_version_deferred", extra={"reason": str(error)})
        await _record(session, version)

    async def level(self) -> None:
        """Make both numbers equal, after a change that was given up or a store that was away.

        Raises StorageUnavailable.
        """
        async with self._database.reading() as session:
            recorded = await session.scalar(select(col(CatalogVersionRow.version)))
        if recorded == await self._store.catalog_version():
            return
        async with self._database.writing() as session:
            recorded = await _lock(session)
            version = await self._store.catalog_version()
            if version < recorded:
                await self._store.raise_catalog_version(recorded)
            elif version > recorded:
                await _record(session, version)


async def _lock(session: AsyncSession) -> int:
    return int(await session.scalar(query("lock_catalog_version")) or 0)


async def _record(session: AsyncSession, version: int) -> None:
    await session.execute(query("store_catalog_version"), {"version": version})
    announcement = {"channel": CATALOG_VERSION_CHANNEL, "payload": str(version)}
    await session.execute(query("notify"), announcement)
