"""Fingerprint that is stored with an idempotency key: a repeat must have the same content."""

import hashlib
from collections.abc import Sequence

import msgspec

from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import DedupScope, QueueSpec, QueueType
from storage.domain.requests.token import REPLY_TO
from storage.domain.trace_context import OF_TRACES, without_context
from storage.hot_store.queues.message_codec import encode_message

_NO_DEFAULTS = {queue_type: QueueSpec(type=queue_type) for queue_type in QueueType}
_OF_CALLS = OF_TRACES | {REPLY_TO}
"""Headers that differ between a call and its retry."""


def fingerprint_of(
    messages: Sequence[NewMessage], encoded: Sequence[tuple[bytes, bytes]], spec: QueueSpec
) -> str:
    """Return the fingerprint of messages that are `encoded` with the defaults of their queue.

    What the sender gave counts, and not the defaults of the queue, which may change before a retry; nor does trace context, as
    a retry is made in another span than the first call, nor the token of a request, which has the time of the call.
    """
    if _changes_messages(spec) or any(map(_names_call, messages)):
        encoded = [encode_message(_without_call(one), _NO_DEFAULTS[spec.type]) for one in messages]
    digest = hashlib.blake2b(digest_size=8)
    for batch, options in encoded:
        digest.update(batch)
        digest.update(options)
    return digest.hexdigest()


def _changes_messages(spec: QueueSpec) -> bool:
    """Return whether a message is encoded otherwise than in a queue without defaults."""
    has_scope = spec.dedup_scope is not DedupScope.QUEUE
    return bool(spec.delay_ms or spec.ttl_ms) or spec.deduplicate_by_content or has_scope


def _names_call(message: NewMessage) -> bool:
    return any(name in _OF_CALLS for name, _, _ in (*message.headers, *message.system))


def _without_call(message: NewMessage) -> NewMessage:
    headers = without_context(message.headers)
    system = tuple(one for one in message.system if one[0] not in _OF_CALLS)
    return msgspec.structs.replace(message, headers=headers, system=system)
