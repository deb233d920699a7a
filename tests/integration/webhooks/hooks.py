"""Webhooks of queues, and messages for them."""

import psycopg

from storage.domain.names import QueueName, WebhookName
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import QueueSpec
from storage.domain.webhooks import Source, WebhookSpec
from tests.integration.webhooks.conftest import ORDERS


async def send(storage, *bodies: bytes, queue: QueueName = ORDERS) -> list[str]:
    sent = await storage.queues.send(queue, [NewMessage(body) for body in bodies])
    return [message.message_id for message in sent]


async def many_hooks(bench, storage, count: int) -> None:
    for number in range(count):
        await storage.catalog.put_queue(QueueName(f"q{number}"), QueueSpec())
        spec = WebhookSpec(source=Source.of(f"queue:q{number}"), url=bench.url)
        await storage.webhooks.put(WebhookName(f"hook{number}"), spec)


async def spoil_url(database_url: str, name: str, url: str) -> None:
    """Store a URL that an earlier version accepted."""
    statement = (
        "update webhooks set spec = jsonb_set(spec, '{url}', to_jsonb(%s::text)) where name = %s"
    )
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        await connection.execute(statement, (url, name))
