"""Assembly of the webhooks and sources."""

from contextlib import AsyncExitStack
from typing import NamedTuple

from storage.access.secret_box import SecretBox
from storage.catalog.catalog import Catalog
from storage.concurrency.isolation import Isolation
from storage.concurrency.tasks import in_background
from storage.domain.access.egress import Egress
from storage.domain.clock import Clock
from storage.groups.engine import Groups
from storage.postgres.database import Database
from storage.postgres.listener import Listener
from storage.postgres.repositories.webhook_deliveries import DeliveryRows
from storage.queues.dead_letters import QueueDeadLetters
from storage.queues.engine import Queues
from storage.queues.inspection import QueueInspector
from storage.quotas.enforcer import QuotaEnforcer
from storage.quotas.memory_guard import MemoryGuard
from storage.redis.outbox.outboxes import RedisOutboxStore
from storage.redis.transport.pipeline import Pipeline
from storage.sources.backlog import SourceBacklogReader
from storage.sources.engine import Sources
from storage.sources.receiver import SourceReceiver
from storage.sources.transfer import SourceTransfer
from storage.streams.engine import Streams
from storage.streams.read import RecordReader
from storage.webhooks.changes import WebhookChanges
from storage.webhooks.deliveries import WebhookDeliveries
from storage.webhooks.engine import Webhooks
from storage.webhooks.secrets import WebhookSecrets


class WebhookEngines(NamedTuple):
    """Webhooks, and the log of their deliveries."""

    webhooks: Webhooks
    deliveries: WebhookDeliveries


def build_webhooks(
    *,
    database: Database,
    catalog: Catalog,
    changes: WebhookChanges,
    inspector: QueueInspector,
    dead_letters: QueueDeadLetters,
    reader: RecordReader,
    groups: Groups,
    egress: Egress,
    box: SecretBox,
    isolation: Isolation,
    clock: Clock,
) -> WebhookEngines:
    """Build the webhooks, whose secrets and headers `box` encrypts."""
    return WebhookEngines(
        webhooks=Webhooks(
            database=database, catalog=catalog, groups=groups, box=box, egress=egress, clock=clock
        ),
        deliveries=WebhookDeliveries(
            rows=DeliveryRows(database),
            inspector=inspector,
            dead_letters=dead_letters,
            reader=reader,
            groups=groups,
            secrets=WebhookSecrets(box),
            clock=clock,
            isolation=isolation,
            changes=changes,
        ),
    )


class SourceEngines(NamedTuple):
    """Sources, the receiver of their events, and the transfer to their targets."""

    sources: Sources
    receiver: SourceReceiver
    transfer: SourceTransfer
    backlog: SourceBacklogReader


async def open_sources(
    stack: AsyncExitStack,
    *,
    pipeline: Pipeline,
    database: Database,
    listener: Listener,
    catalog: Catalog,
    queues: Queues,
    streams: Streams,
    quotas: QuotaEnforcer,
    memory_guard: MemoryGuard,
    box: SecretBox,
    isolation: Isolation,
    clock: Clock,
) -> SourceEngines:
    """Open the sources, and run what keeps their definitions in memory."""
    outboxes = RedisOutboxStore(pipeline)
    sources = Sources(
        database=database,
        listener=listener,
        catalog=catalog,
        queues=queues,
        streams=streams,
        outboxes=outboxes,
        box=box,
        clock=clock,
    )
    stack.push_async_callback(sources.close)
    await stack.enter_async_context(in_background(sources.keep_warm(), "warm-sources"))
    transfer = SourceTransfer(
        sources=sources,
        outboxes=outboxes,
        catalog=catalog,
        queues=queues,
        streams=streams,
        isolation=isolation,
        clock=clock,
    )
    stack.push_async_callback(transfer.close)
    receiver = SourceReceiver(
        sources=sources,
        outboxes=outboxes,
        catalog=catalog,
        transfer=transfer,
        quotas=quotas,
        memory_guard=memory_guard,
        clock=clock,
    )
    backlog = SourceBacklogReader(sources, outboxes, isolation, clock)
    return SourceEngines(sources=sources, receiver=receiver, transfer=transfer, backlog=backlog)
