"""Arguments of the queue scripts, and the reserved headers of messages."""

from collections.abc import Hashable
from functools import lru_cache

import msgspec

from storage.domain import limits
from storage.domain.clock import ScriptTime
from storage.domain.log.record_batch import (
    CONTENT_TYPE,
    DEAD_LETTER_SOURCE,
    DEDUP_ID,
    GROUP,
    MESSAGE_ID,
    RESERVED,
    Header,
    Headers,
    Record,
)
from storage.domain.names import LogId
from storage.domain.queues.message import message_id
from storage.domain.queues.policies import GroupWeight, PoisonPolicy
from storage.domain.queues.queue import Queue, QueueType
from storage.domain.streams.stream import LogRecord
from storage.domain.trace_context import with_noted
from storage.redis.keys import queue_keys

_encoder = msgspec.msgpack.Encoder()


def queue_keys_of(queue: Queue) -> tuple[bytes, ...]:
    """Return the keys of a queue, in the scripts' order."""
    return queue_keys(queue.name.namespace, queue.log_id)


class QueueCoalescingKey:
    """Coalescing key of operations on a queue.

    It is equal for the same operation, queue definition, time, and further `arguments` of the shared script call.
    """

    __slots__ = ("alike", "now", "queue")

    def __init__(self, queue: Queue, now: ScriptTime, *arguments: Hashable) -> None:
        self.alike: tuple[object, ...] = (type(self), id(queue), now, *arguments)
        self.queue = queue
        self.now = now

    @property
    def key(self) -> bytes:
        """One of the log's keys."""
        return queue_keys_of(self.queue)[0]


def fifo_arg(queue: Queue) -> str:
    """Return the script argument for a queue's type."""
    return "1" if queue.spec.type is QueueType.FIFO else "0"


def letters_arg(queue: Queue) -> str:
    """Return the script argument that says that dead letters go to a topic."""
    target = queue.spec.dead_letters
    return "1" if target is not None and target.topic is not None else "0"


def attempts_of(queue: Queue) -> int:
    """Return the script argument for a queue's attempts.

    0 for no limit, negative when they end with a parked group.
    """
    attempts_max = queue.spec.attempts_max or 0
    match queue.spec.on_poison:
        case PoisonPolicy.SKIP:
            return attempts_max
        case PoisonPolicy.BLOCK:
            return 0
        case PoisonPolicy.PARK_GROUP:
            return -(attempts_max or _NEVER)


_NEVER = 2**40  # more attempts than any message has: its group is parked only when it is rejected


@lru_cache(1024)
def encode_weights(weights: tuple[GroupWeight, ...]) -> bytes:
    return _encoder.encode([(one.match, one.weight) for one in weights]) if weights else b""


def view_arg(queue: Queue) -> str:
    """Return the script argument for a queue's stream view."""
    return "1" if queue.spec.stream_view else "0"


def history_arg(queue: Queue) -> str:
    """Return the script argument for a queue's history: its maximum number of events."""
    return str(limits.HISTORY_EVENTS_MAX) if queue.spec.history else "0"


class ParsedHeaders(msgspec.Struct, gc=False):
    """Reserved headers of a message, separated from its own headers."""

    headers: tuple[Header, ...]
    content_type: str = ""
    group: str = ""
    dedup_id: str = ""
    message_id: str = ""
    dead_letter_source: str = ""
    system: tuple[Header, ...] = ()


def parse_headers(headers: Headers) -> ParsedHeaders:
    """Separate a message's reserved headers from its own ones."""
    if not headers:
        return _NO_HEADERS
    if len(headers) == 1 and headers[0][0] == GROUP:  # most messages of a group
        return ParsedHeaders((), group=headers[0][2].decode())
    own = tuple([header for header in headers if not header[0].startswith(RESERVED)])
    if len(own) == len(headers):
        return ParsedHeaders(own)
    reserved = [header for header in headers if header[0].startswith(RESERVED)]
    values = {name: value.decode() for name, _, value in reserved if name in _OURS}
    return ParsedHeaders(
        own,
        values.get(CONTENT_TYPE, ""),
        values.get(GROUP, ""),
        values.get(DEDUP_ID, ""),
        values.get(MESSAGE_ID, ""),
        values.get(DEAD_LETTER_SOURCE, ""),
        tuple(header for header in reserved if header[0] not in _OURS),
    )


def as_stream_record(log_id: LogId, message: LogRecord) -> LogRecord:
    """Convert a message to a record of its queue's stream view.

    The record's key is the message's group, or its id without one.
    """
    parsed = parse_headers(message.record.headers)
    headers = with_noted(parsed.headers, parsed.system)
    if parsed.content_type:
        headers = (*headers, (CONTENT_TYPE, "", parsed.content_type.encode()))
    id_ = parsed.message_id or message_id(log_id, message.offset)
    record = Record(message.record.data, parsed.group or id_, headers)
    return LogRecord(message.offset, message.arrival_ms, record)


_OURS = frozenset((CONTENT_TYPE, GROUP, DEDUP_ID, MESSAGE_ID, DEAD_LETTER_SOURCE))
_NO_HEADERS = ParsedHeaders(())
