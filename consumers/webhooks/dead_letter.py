"""Message that a record becomes in the dead-letter queue of its webhook."""

from storage.domain.queues.dead_letter_origin import DeadLetterOrigin
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import QueueType
from storage.domain.replays.replay import group_for, source_headers
from storage.domain.webhooks import Event


def dead_letter_of(event: Event, origin: DeadLetterOrigin, queue_type: QueueType) -> NewMessage:
    """Return the dead letter of a record, with where it was and why it was given up."""
    assert event.location is not None
    shard, offset = event.location.shard or 0, event.location.offset
    is_fifo = queue_type is QueueType.FIFO
    return NewMessage(
        event.payload,
        event.headers,
        event.content_type,
        group_for(event.key, shard, fifo=True) if is_fifo else "",
        event.event_id if is_fifo else "",
        system=(*source_headers(event.stream, shard, offset, event.at_ms), origin.to_header()),
    )
