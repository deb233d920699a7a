"""Assembly of the catalog, the credentials and what is defined beside them."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import NamedTuple

from storage.access.credentials import Credentials
from storage.access.secret_box import SecretBox
from storage.access.token_secret import TokenSecret
from storage.catalog.account_settings import AccountSettingsStore
from storage.catalog.catalog import Catalog, WriteTombstones, open_catalog
from storage.catalog.search import CatalogSearch
from storage.concurrency.tasks import in_background
from storage.domain.clock import Clock
from storage.domain.log.address import LogAddress
from storage.domain.names import LogId
from storage.postgres.database import Database
from storage.postgres.listener import Listener
from storage.redis.placement import spread_log_ids
from storage.redis.streams.logs import RedisLogStore
from storage.streams.registered_consumers import RegisteredConsumers
from storage.views.progress_waiters import ProgressWaiters
from storage.webhooks.changes import WebhookChanges


class DefinitionEngines(NamedTuple):
    """Definitions and credentials, and the engines that read them."""

    catalog: Catalog
    search: CatalogSearch
    credentials: Credentials
    webhook_changes: WebhookChanges
    view_waiters: ProgressWaiters
    token_secret: TokenSecret
    account_settings: AccountSettingsStore
    registered_consumers: RegisteredConsumers


async def open_definitions(
    stack: AsyncExitStack,
    *,
    database: Database,
    listener: Listener,
    logs: RedisLogStore,
    box: SecretBox,
    clock: Clock,
) -> DefinitionEngines:
    """Open the catalog and the credentials, and run the listener behind all its subscribers."""
    credentials = Credentials(database, listener, clock, box)
    webhook_changes, view_waiters = WebhookChanges(listener), ProgressWaiters(listener)
    catalog = await stack.enter_async_context(
        open_catalog(database, listener, clock, _tombstone_writer(logs), spread_log_ids)
    )
    stack.push_async_callback(credentials.close)
    await stack.enter_async_context(in_background(credentials.keep_warm(), "warm-credentials"))
    return DefinitionEngines(
        catalog=catalog,
        search=CatalogSearch(database),
        credentials=credentials,
        webhook_changes=webhook_changes,
        view_waiters=view_waiters,
        token_secret=TokenSecret(database),
        account_settings=AccountSettingsStore(database),
        registered_consumers=RegisteredConsumers(database, clock),
    )


def _tombstone_writer(logs: RedisLogStore) -> WriteTombstones:
    async def write(namespace: str, log_ids: Sequence[LogId]) -> None:
        for log_id in log_ids:
            await logs.tombstone(LogAddress(namespace, log_id))

    return write
