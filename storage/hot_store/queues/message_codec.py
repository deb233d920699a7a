"""Encoding of a message for its queue's log, with its options."""

import hashlib

import msgspec

from storage.domain.log.record_batch import (
    CONTENT_TYPE,
    DEDUP_ID,
    GROUP,
    Header,
    Record,
    encode_one,
)
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import DedupScope, QueueSpec, QueueType

_encoder = msgspec.msgpack.Encoder()


def encode_message(message: NewMessage, spec: QueueSpec) -> tuple[bytes, bytes]:
    """Encode a message as the log stores it, and its options for the script."""
    dedup_id = message.dedup_id
    if spec.deduplicate_by_content and not dedup_id:
        dedup_id = hashlib.sha256(message.body).hexdigest()
    reserved: list[Header] = list(message.system)
    if message.content_type:
        reserved.append((CONTENT_TYPE, "", message.content_type.encode()))
    if message.group:
        reserved.append((GROUP, "", message.group.encode()))
    if dedup_id:
        reserved.append((DEDUP_ID, "", dedup_id.encode()))
    batch = encode_one(Record(message.body, "", (*message.headers, *reserved)))
    delay_ms = spec.delay_ms if message.delay_ms is None else message.delay_ms
    ttl_ms = message.ttl_ms or spec.ttl_ms
    if spec.type is QueueType.FIFO:
        scope = message.group if spec.dedup_scope is DedupScope.GROUP else ""
        key = f"{scope}\0{dedup_id}" if dedup_id and scope else dedup_id
        return batch, _encoder.encode((spec.delay_ms, message.group, key, ttl_ms, 0))
    if not (delay_ms or message.group or ttl_ms or message.priority):
        return batch, b""
    return batch, _encoder.encode((delay_ms, message.group, "", ttl_ms, message.priority))
