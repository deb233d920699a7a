"""Events of sources: encoding in an outbox, and conversion to messages and records."""

import msgspec

from storage.domain import limits
from storage.domain.log.json_body import at_pointer
from storage.domain.log.record_batch import CONTENT_TYPE, Header, Record
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import Queue, QueueType
from storage.domain.sources.source import InboundSource, SourceEvent, SourceTarget

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(SourceEvent)
EVENT_ID_HEADER = "event-id"


def encode_event(event: SourceEvent) -> bytes:
    """Encode an event for its outbox."""
    return _encoder.encode(event)


def decode_event(payload: bytes) -> SourceEvent:
    """Decode an event of an outbox."""
    return _decoder.decode(payload)


def message_of(event: SourceEvent, source: InboundSource, queue: Queue) -> NewMessage:
    """Return an event as a message: raw body, content type, chosen headers and id.

    In a FIFO queue the group of an event without a key is the name of the source.
    """
    group = event.key[: limits.GROUP_CHARACTERS_MAX]
    if not group and queue.spec.type is QueueType.FIFO:
        group = source.name.name
    return NewMessage(
        event.body, headers=_headers(event), content_type=event.content_type, group=group
    )


def record_of(event: SourceEvent) -> Record:
    """Return an event as a record."""
    headers = _headers(event)
    if event.content_type:
        headers = (*headers, (CONTENT_TYPE, "", event.content_type.encode()))
    return Record(event.body, event.key[: limits.KEY_CHARACTERS_MAX], headers)


def _headers(event: SourceEvent) -> tuple[Header, ...]:
    chosen = tuple((name, "", value.encode()) for name, value in event.headers)
    return (*chosen, (EVENT_ID_HEADER, "", event.event_id.encode())) if event.event_id else chosen


def key_of(body: bytes, into: SourceTarget) -> str:
    """Return the text at the target's pointer in a JSON body; empty if there is none."""
    if into.key is None:
        return ""
    try:
        value = at_pointer(msgspec.json.decode(body), into.key)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""
