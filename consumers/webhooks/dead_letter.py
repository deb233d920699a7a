"""Message that a record becomes in the dead-letter queue of its webhook."""

from storage.domain.log.record_batch import SOURCE_STREAM, Headers
from storage.domain.queues.dead_letter_origin import DeadLetterOrigin
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import QueueType
from storage.domain.replays.replay import (
    SOURCE_OFFSET,
    SOURCE_SHARD,
    SOURCE_TIME,
    group_for,
)
from storage.domain.webhooks import Event


def dead_letter_of(event: Event, origin: DeadLetterOrigin, queue_type: QueueType) -> NewMessage:
    """Return the dead letter of a record, with where it was and why it was given up."""
    assert event.location is not None
    is_fifo = queue_type is QueueType.FIFO
    return NewMessage(
        event.payload,
        event.headers,
        event.content_type,
        group_for(event.key, event.location.shard or 0, fifo=True) if is_fifo else "",
        event.event_id if is_fifo else "",
        system=(*_source_headers(event), origin.to_header()),
    )


def _source_headers(event: Event) -> Headers:
    """Return a dead letter's source headers, the ones that replays use."""
    assert event.location is not None
    facts = {
        SOURCE_STREAM: event.stream,
        SOURCE_SHARD: str(event.location.shard),
        SOURCE_OFFSET: str(event.location.offset),
        SOURCE_TIME: str(event.at_ms),
    }
    return tuple((name, "", word.encode()) for name, word in facts.items())
