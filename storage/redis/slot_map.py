"""Slot map of a store, for programs without an event loop: its primaries and their slots.

One server has all slots. `storage.redis.transport.topology` has the same for processes that serve.
"""

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from redis import ConnectionPool, Redis
from redis.crc import key_slot
from redis.exceptions import ResponseError

from storage.domain import limits
from storage.domain.backup_manifest import BackupError
from storage.redis.snapshot import CONNECTION_OPTIONS
from storage.redis.transport.topology import Master, key_of_master, url_at

SLOTS = 16_384
_MIGRATIONS_OVER = ("success", "failed", "cancelled", "canceled")


class SlotRange(NamedTuple):
    """Consecutive slots of one primary, from the first to the last."""

    first: int
    last: int
    url: str


@dataclass(frozen=True)
class SlotMap:
    """All slots, in order."""

    ranges: tuple[SlotRange, ...]

    @property
    def primaries(self) -> tuple[Master, ...]:
        """Primaries in the order of their first slots."""
        firsts: dict[str, int] = {}
        for part in self.ranges:
            firsts.setdefault(part.url, part.first)
        return tuple(Master(url, first) for url, first in firsts.items())

    def url_of(self, key: bytes) -> str:
        """Return the URL of the primary that has a key."""
        return self.ranges[bisect_right(self._firsts, key_slot(key)) - 1].url

    @cached_property
    def _firsts(self) -> list[int]:
        return [part.first for part in self.ranges]

    def key_at(self, key: str, primary: Master) -> str:
        """Return a primary's own form of a key that each of them has."""
        return key_of_master(key, primary, self.url_of(key.encode()))


def open_client(url: str, wait_ms: int = limits.SNAPSHOT_WAIT_MS_MAX) -> Any:
    """Open a client of one server.

    `wait_ms`: for an answer, by default that of the largest key.
    """
    options = CONNECTION_OPTIONS | {"socket_timeout": wait_ms / limits.SECOND_MS}
    return Redis.from_pool(ConnectionPool.from_url(url, **options))


def read_slot_map(client: Any, url: str) -> SlotMap:
    """Return the slot map that a server has; `url` is its URL.

    Raises BackupError for a cluster in which no primary has some slots.
    """
    single = SlotMap((SlotRange(0, SLOTS - 1, url),))
    if not client.info("cluster").get("cluster_enabled"):
        return single
    host = client.connection_pool.connection_kwargs.get("host", "")
    rows = client.execute_command("CLUSTER", "SLOTS")
    ranges = sorted(
        SlotRange(int(first), int(last), url_at(url, _text(name) or host, int(port)))
        for first, last, (name, port, *_), *_ in rows
    )
    if sum(part.last - part.first + 1 for part in ranges) != SLOTS:
        raise BackupError("the cluster is not complete: no primary serves some of its slots")
    slots = SlotMap(tuple(ranges))
    return slots if len(slots.primaries) > 1 else single


def is_migrating(client: Any) -> bool:
    """Return whether a server gives slots to another, or receives some."""
    for line in _text(client.execute_command("CLUSTER", "NODES")).splitlines():
        if "myself" in line.split(" ")[2] and "[" in line:
            return True
    try:
        migrations = client.execute_command("CLUSTER", "GETSLOTMIGRATIONS")
    except ResponseError:  # before Valkey 9 they are all in CLUSTER NODES
        return False
    return any(_state(one) not in _MIGRATIONS_OVER for one in migrations)


def _state(migration: Any) -> str:
    fields = migration if isinstance(migration, dict) else _pairs(migration)
    return _text(fields[b"state"])


def _pairs(flat: list[Any]) -> dict[Any, Any]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value or "")
