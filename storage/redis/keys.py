"""The keys of a log, spelled here and nowhere else.

    ms:version                        the layout: 3 (2 knew no parked groups, and not what messages weigh)
    ms:store                          hash: epoch, beacon (storage.domain.epochs)
    ms:<namespace>:{<log id>}:<part>  a log; the braces make it one slot of a cluster
    ms:<namespace>:{<name>}:pace      what processes do together at one rate; it ends by itself
    ms:<namespace>:{<policy>}:rate    what may pass of a policy, such as key/<id> or queue/<name>; it ends by itself
    ms:<namespace>:{places}:held      how many connections each process has
    ms:{presence}:<part>              which processes are there, and their sockets (storage.redis.presence)
    ms:<namespace>:{series}:<kind>    what was last measured: a hash by name (storage.domain.series)
    ms:<namespace>:{<id>}:series:<ring>:<chunk>   samples of a queue, stream or group over time; they end by themselves
    ms::{deployment}:tick             which step of all series was measured last, and by whom

`storage/redis/scripts/lib/queue.lua` says what the parts of a queue hold.
"""

from functools import lru_cache

import msgspec

from storage.domain.names import LogId

LAYOUT = "3"
VERSION_KEY = "ms:version"
STORE_KEY = "ms:store"
WAKE_CHANNEL = "ms:wake"

_RISING_PARTS = ("rising", "rising_over", "rising_over_old")
_LOG_PARTS = ("log", "meta", "prod", "prod_old", "idem", "idem_old", "keys", *_RISING_PARTS)
_QUEUE_PARTS = (
    *("log", "meta", "idem", "idem_old", "records", "leases", "returned", "delayed", "kept"),
    *("dead", "dead_due", "dead_letters", "turns", "groups", "dedup", "dedup_old", "attempts"),
    *("attempts_old", "expiring", "moving", "arrived", "arrived_old", "aged"),
    *("parked", "parked_why", "view", "view_meta", *_RISING_PARTS, "history"),
)
_VIEW_PARTS = ("view", "view_meta", "prod", "prod_old")  # nobody produces to a view
_EVERY_PART = tuple(dict.fromkeys(("meta", *_LOG_PARTS, *_QUEUE_PARTS)))
_REMEMBERED_MAX = 20_000  # logs whose keys are kept spelled out, per process


class LogAddress(msgspec.Struct, frozen=True, gc=False):
    """Where a log is kept; a queue's stream view lies beside its log."""

    namespace: str
    log_id: LogId
    is_view: bool = False

    @property
    def channel(self) -> str:
        """What a wake-up of its readers is called."""
        return f"{self.log_id}:view" if self.is_view else self.log_id


def key(namespace: str, log_id: LogId, part: str) -> str:
    """One key of a log."""
    return f"ms:{namespace}:{{{log_id}}}:{part}"


@lru_cache(_REMEMBERED_MAX)
def log_keys(namespace: str, log_id: LogId) -> tuple[bytes, ...]:
    """The keys that a stream's scripts work on, in the scripts' order."""
    return _spell(namespace, log_id, _LOG_PARTS)


@lru_cache(_REMEMBERED_MAX)
def queue_keys(namespace: str, log_id: LogId) -> tuple[bytes, ...]:
    """The keys that a queue's scripts work on, in the scripts' order."""
    return _spell(namespace, log_id, _QUEUE_PARTS)


@lru_cache(_REMEMBERED_MAX)
def view_keys(namespace: str, log_id: LogId) -> tuple[bytes, ...]:
    """The keys of a queue's stream view, in the order in which a stream's scripts take those of a log."""
    return _spell(namespace, log_id, _VIEW_PARTS)


def rising_keys(namespace: str, log_id: LogId) -> tuple[bytes, ...]:
    """The keys of what a log, of a stream or a queue, took of producers that rise; meta first."""
    return _spell(namespace, log_id, ("meta", *_RISING_PARTS))


def pace_key(namespace: str, name: str) -> bytes:
    """The key of a rate."""
    return key(namespace, name, "pace").encode()


def rate_key(namespace: str, bucket: str) -> bytes:
    """The key of a bucket of a policy."""
    return key(namespace, bucket, "rate").encode()


def places_key(namespace: str) -> bytes:
    """The key of a namespace's connections."""
    return key(namespace, "places", "held").encode()


def presence_keys() -> tuple[bytes, ...]:
    """The keys of who is there: the processes, their sockets, and what is asked of them."""
    return tuple(b"ms:{presence}:%s" % part for part in (b"seen", b"sockets", b"asked"))


def latest_key(namespace: str, kind: str) -> bytes:
    """The key of what was last measured of a kind of resource."""
    return key(namespace, "series", kind).encode()


def chunk_key(namespace: str, resource_id: str, ring: int, chunk: int) -> bytes:
    """The key of some samples of a resource."""
    return key(namespace, resource_id, f"series:{ring}:{chunk}").encode()


def tick_key() -> bytes:
    """The key of what is known of the measuring itself."""
    return key("", "deployment", "tick").encode()


def every_key(namespace: str, log_id: LogId) -> tuple[bytes, ...]:
    """All keys of a log, meta first."""
    return _spell(namespace, log_id, _EVERY_PART)


def _spell(namespace: str, log_id: LogId, parts: tuple[str, ...]) -> tuple[bytes, ...]:
    return tuple(key(namespace, log_id, part).encode() for part in parts)
