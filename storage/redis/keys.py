"""Key layout of the hot store, defined here and nowhere else.

    ms:version                        the layout: 3 (2 had no parked groups, and no sizes of messages)
    ms:store                          hash: epoch, beacon (storage.domain.log.store_epoch), position (in a replica set),
                                      catalog (storage.catalog.witness)
    ms:fence                          the term that a member of a replica set has promised itself to; not replicated
    ms:<namespace>:{<log id>}:<part>  a log; the braces put it into one slot of a cluster
    ms:<namespace>:{<name>}:pace      a rate that processes share; it expires by itself
    ms:<namespace>:{<policy>}:rate    the bucket of a policy, such as key/<id> or queue/<name>; it expires by itself
    ms:<namespace>:{places}:held      number of connections of each process
    ms:{presence}:<part>              running processes, and their sockets (storage.redis.counters.presence)
    ms:<namespace>:{series}:<kind>    last samples: a hash by name (storage.domain.timeseries)
    ms:<namespace>:{<id>}:series:<ring>:<chunk>   samples of a queue, stream or group over time; they expire by themselves
    ms:<namespace>:{<source id>}:<part>   the outbox of a source
    ms:<namespace>:{<group id>}:offsets   a group's committed offsets (scripts/lib/group_offsets.lua); it expires by itself
    ms:<namespace>:{<nonce>}:reply replies to a request (scripts/requests/put_reply.lua); it expires by itself
    ms::{series}:tick                 the last sampled slot of all series, and the sampler that claimed it

`storage/redis/scripts/lib/queue.lua` describes the parts of a queue.
"""

from functools import lru_cache

from storage.domain.names import LogId

LAYOUT = "3"
VERSION_KEY = "ms:version"
STORE_KEY = "ms:store"
FENCE_KEY = "ms:fence"
WAKE_CHANNEL = "ms:wake"

_WRITER_WATERMARK_PARTS = ("rising", "rising_over", "rising_over_old")
_LOG_PARTS = (
    "log",
    "meta",
    "prod",
    "prod_old",
    "idem",
    "idem_old",
    "keys",
    *_WRITER_WATERMARK_PARTS,
    "dedup",
    "dedup_old",
)
_QUEUE_PARTS = (
    *("log", "meta", "idem", "idem_old", "records", "leases", "returned", "delayed", "kept"),
    *("dead", "dead_due", "dead_letters", "turns", "groups", "dedup", "dedup_old", "attempts"),
    *("attempts_old", "expiring", "moving", "arrived", "arrived_old", "aged"),
    *("parked", "parked_why", "view", "view_meta", *_WRITER_WATERMARK_PARTS, "history"),
)
_CONSUMER_PARTS = ("consumers", "consumer_reports", "ack_times")
_VIEW_PARTS = ("view", "view_meta", "prod", "prod_old")  # a view has no producers
_OUTBOX_PARTS = ("outbox_meta", "outbox", "seen", "seen_old", "rejected")
_COPY_PARTS = ("changes", "copies", "dead_copies")
_EVERY_PART = tuple(
    dict.fromkeys(("meta", *_LOG_PARTS, *_QUEUE_PARTS, *_CONSUMER_PARTS, *_COPY_PARTS))
)
_REMEMBERED_MAX = 20_000  # logs whose keys are cached, per process


def key(namespace: str, log_id: LogId, part: str) -> str:
    """Return one key of a log."""
    return f"ms:{namespace}:{{{log_id}}}:{part}"


@lru_cache(_REMEMBERED_MAX)
def log_keys(namespace: str, log_id: LogId) -> tuple[bytes, ...]:
    """Return the keys of a stream's scripts, in the scripts' order."""
    return _encode_keys(namespace, log_id, _LOG_PARTS)


@lru_cache(_REMEMBERED_MAX)
def queue_keys(namespace: str, log_id: LogId) -> tuple[bytes, ...]:
    """Return the keys of a queue's scripts, in the scripts' order."""
    return _encode_keys(namespace, log_id, _QUEUE_PARTS)


def reader_keys(
    namespace: str, log_id: LogId, *, is_view: bool = False, count: int = 2
) -> tuple[bytes, ...]:
    """Return the first keys of a stream's scripts, those that a script which reads expects.

    With `is_view` they are those of a queue's stream view. They are not cached: most logs are read rarely, in several processes,
    and their keys would take a kilobyte in each.
    """
    return _encode_keys(namespace, log_id, (_VIEW_PARTS if is_view else _LOG_PARTS)[:count])


def consumer_keys(namespace: str, log_id: LogId) -> tuple[bytes, ...]:
    """Return the keys of the consumers of a queue."""
    return _encode_keys(namespace, log_id, _CONSUMER_PARTS)


def writer_watermark_keys(namespace: str, log_id: LogId) -> tuple[bytes, ...]:
    """Return the keys of a log's state of monotonic producers; meta first.

    The log is a stream's or a queue's.
    """
    return _encode_keys(namespace, log_id, ("meta", *_WRITER_WATERMARK_PARTS))


def pace_key(namespace: str, name: str) -> bytes:
    """Return the key of a shared rate."""
    return key(namespace, name, "pace").encode()


def rate_key(namespace: str, bucket: str) -> bytes:
    """Return the key of a policy's bucket."""
    return key(namespace, bucket, "rate").encode()


def slots_key(namespace: str) -> bytes:
    """Return the key of a namespace's connection slots."""
    return key(namespace, "places", "held").encode()


def presence_keys() -> tuple[bytes, ...]:
    """Return the keys of presence: the processes, their sockets, and the close requests."""
    return tuple(b"ms:{presence}:%s" % part for part in (b"seen", b"sockets", b"asked"))


def group_offsets_key(namespace: str, group_id: str) -> bytes:
    """Return the key of a group's committed offsets."""
    return key(namespace, LogId(group_id), "offsets").encode()


def replies_key(namespace: str, address: LogId) -> bytes:
    """Return the key of the replies to a request."""
    return key(namespace, address, "reply").encode()


def outbox_keys(namespace: str, owner_id: str) -> tuple[bytes, ...]:
    """Return the keys of an outbox, in the scripts' order."""
    return _encode_keys(namespace, owner_id, _OUTBOX_PARTS)


def lease_key(name: str) -> bytes:
    """Return the key of a leader's lease."""
    return b"ms:{leases}:%s" % name.encode()


def latest_key(namespace: str, kind: str) -> bytes:
    """Return the key of the last samples of a kind of resource."""
    return key(namespace, "series", kind).encode()


def chunk_key(namespace: str, resource_id: str, ring: str, chunk: int) -> bytes:
    """Return the key of a chunk of a resource's samples."""
    return key(namespace, resource_id, f"series:{ring}:{chunk}").encode()


def tick_key() -> bytes:
    """Return the key of the sampler's claim, in one slot of a cluster with the last samples."""
    return key("", "series", "tick").encode()


def every_key(namespace: str, log_id: LogId) -> tuple[bytes, ...]:
    """Return all keys of a log, meta first."""
    return _encode_keys(namespace, log_id, _EVERY_PART)


def _encode_keys(namespace: str, log_id: LogId, parts: tuple[str, ...]) -> tuple[bytes, ...]:
    return tuple(key(namespace, log_id, part).encode() for part in parts)
