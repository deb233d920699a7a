"""Deduplication ids of requests to FIFO queues and topics."""

from storage.catalog.catalog import Catalog
from storage.domain.errors import StreamNotFound
from storage.domain.names import QueueName, TopicName
from storage.domain.queues.queue import QueueType
from storage.domain.requests.token import RequestId


async def unique_dedup_id(catalog: Catalog, name: QueueName, request: RequestId) -> str:
    """Return a deduplication id that no other request has; "" if the queue is not FIFO.

    A repeat with the same idempotency key has the same id. Raises QueueNotFound.
    """
    queue = catalog.cached_queue(name) or await catalog.queue(name)
    return request.nonce.hex() if queue.spec.type is QueueType.FIFO else ""


async def unique_topic_dedup_id(catalog: Catalog, name: TopicName, request: RequestId) -> str:
    """Return a deduplication id as `unique_dedup_id` does; "" also if there is no topic."""
    try:
        topic = (await catalog.stream(name.stream)).spec.topic
    except StreamNotFound:
        return ""
    return request.nonce.hex() if topic is not None and topic.is_fifo else ""
