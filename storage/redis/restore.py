"""Copy of Millstream's keys from a snapshot's server to a store, by DUMP and RESTORE."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple

from redis.exceptions import AskError, MovedError, RedisError, ResponseError, TryAgainError

from storage.domain.backup_manifest import RESTORING, BackupError, StoreInUse
from storage.redis.keys import LAYOUT, VERSION_KEY
from storage.redis.slot_map import SlotMap, open_client, read_slot_map
from storage.redis.transport.client import unreachable

_OURS = "ms:*"
_OF_PRIMARY = re.compile(rb"ms:version|ms:\{\d+\}:(version|store)")
"""Keys that a primary has of its own (`storage.redis.transport.topology.key_of_master`), but the plain ms:store."""
SLOTS_MOVE = "slots of the cluster are being moved; try again when they have been"
_BATCH_KEYS_MAX = 500
_BATCH_BYTES_MAX = 32 << 20
_BULK = "proto-max-bulk-len"
_BULK_BYTES = 64 << 30  # size of one key; the server's own limit is 512 MiB


class _KeyEntry(NamedTuple):
    """A key, its time to live in milliseconds or -1, and its bytes of memory."""

    name: bytes
    ttl_ms: int
    bytes: int


class SnapshotStore:
    """The hot store for backup and restore: one server, or the primaries of a cluster.

    All methods raise StorageUnavailable, and BackupError for what a server refuses.
    """

    def __init__(self, clients: Mapping[str, Any], slots: SlotMap) -> None:
        self.slots = slots
        self._clients = clients
        self._servers = [
            _Server(clients[one.url], slots.key_at(VERSION_KEY, one)) for one in slots.primaries
        ]

    def server(self) -> str:
        """Return the name and version of one of the servers."""
        info = self._servers[0].client.info("server")
        return f"{info.get('server_name', 'redis')} {info.get('valkey_version') or info['redis_version']}"

    def layout(self, *, may_be_replica: bool = False) -> str:
        """Return the layout, ours for an unused store.

        `may_be_replica`: for a replica that was found to have everything. Raises BackupError for a store that cannot be backed up.
        """
        if not may_be_replica and any(server.is_replica() for server in self._servers):
            raise BackupError("the store is a replica, which can lag: use its primary")
        layouts = {server.mark() or LAYOUT for server in self._servers}
        if RESTORING in layouts:
            raise BackupError("a restore into the store is in progress or was interrupted")
        if len(layouts) > 1:
            raise BackupError("the primaries of the cluster have different layouts")
        return layouts.pop()

    def take(self) -> None:
        """Mark an empty store as being restored into, exclusively. Raises StoreInUse."""
        for server in self._servers:
            server.check_empty()
        for number, server in enumerate(self._servers):
            if not server.take():
                for marked in self._servers[:number]:
                    marked.leave()
                raise StoreInUse("another client has started to use the store")

    def leave(self) -> None:
        """Remove the mark from a store that nothing was restored into."""
        for server in self._servers:
            server.leave()

    def finish(self, layout: str) -> None:
        """Mark the store as complete: services may use it."""
        for server in self._servers:
            server.finish(layout)

    def fill(self, source: "SnapshotStore") -> int:
        """Copy every key of ours, each to the primary of its slot; return their number.

        The marks and epochs of primaries stay behind: those of a cluster of another size are of no use.
        """
        with ExitStack() as stack:
            for client in self._clients.values():
                stack.enter_context(changed_settings(client, {_BULK: str(_BULK_BYTES)}))
            [server] = source._servers
            return sum(self._put(piece, server) for piece in server.pieces())

    def _put(self, piece: "Sequence[_KeyEntry]", source: "_Server") -> int:
        with source.client.pipeline(transaction=False) as dumps:
            for entry in piece:
                dumps.dump(entry.name)
            bodies = dumps.execute()
        existing = [(entry, body) for entry, body in zip(piece, bodies, strict=True) if body]
        by_url: dict[str, list[tuple[_KeyEntry, bytes]]] = {}
        for entry, body in existing:
            by_url.setdefault(self.slots.url_of(entry.name), []).append((entry, body))
        for url, entries in by_url.items():
            with self._clients[url].pipeline(transaction=False) as restores:
                for entry, body in entries:
                    restores.restore(entry.name, max(0, entry.ttl_ms), body)
                restores.execute()
        return len(existing)


class _Server(NamedTuple):
    """One server, and the key of its mark."""

    client: Any
    version_key: str

    def is_replica(self) -> bool:
        return bool(self.client.info("replication")["role"] != "master")

    def mark(self) -> str | None:
        value: bytes | None = self.client.get(self.version_key)
        return None if value is None else value.decode()

    def check_empty(self) -> None:
        if self.mark() == RESTORING:
            raise StoreInUse(
                "an earlier restore into the store was interrupted: empty both stores first"
            )
        names = self.client.scan_iter(match=_OURS, count=_BATCH_KEYS_MAX)
        if (name := next(names, None)) is not None:
            raise StoreInUse(f"the store is not empty: it contains key {name.decode()}")

    def take(self) -> bool:
        return bool(self.client.set(self.version_key, RESTORING, nx=True))

    def leave(self) -> None:
        self.client.delete(self.version_key)

    def finish(self, layout: str) -> None:
        self.client.set(self.version_key, layout)

    def pieces(self) -> Iterator[list[_KeyEntry]]:
        """Yield all keys but the primaries' own, in batches that fit into memory."""
        piece: list[_KeyEntry] = []
        for entry in self._every_key():
            if piece and (
                len(piece) == _BATCH_KEYS_MAX
                or sum(other.bytes for other in piece) + entry.bytes > _BATCH_BYTES_MAX
            ):
                yield piece
                piece = []
            piece.append(entry)
        if piece:
            yield piece

    def _every_key(self) -> Iterator[_KeyEntry]:
        """Yield each key once.

        Nothing writes to the source; SCAN returns each key at least once, and duplicates are skipped here.
        """
        cursor, seen = 0, set[bytes]()
        while True:
            cursor, names = self.client.scan(cursor, match=_OURS, count=_BATCH_KEYS_MAX)
            fresh = [name for name in names if name not in seen and not _OF_PRIMARY.fullmatch(name)]
            seen.update(fresh)
            yield from self._measured(fresh)
            if cursor == 0:
                return

    def _measured(self, names: Sequence[bytes]) -> Iterator[_KeyEntry]:
        with self.client.pipeline(transaction=False) as pipeline:
            for name in names:
                pipeline.pttl(name)
                pipeline.memory_usage(name)
            replies = pipeline.execute()
        for name, ttl_ms, size in zip(names, replies[::2], replies[1::2], strict=True):
            yield _KeyEntry(name, ttl_ms, size or 0)


@contextmanager
def changed_settings(client: Any, settings: Mapping[str, str]) -> Iterator[None]:
    """Change a server's settings while the block runs, if it permits that.

    They stay if the server is lost meanwhile.
    """
    before: dict[str, str] = {}
    try:
        with suppress(ResponseError):
            for name, value in settings.items():
                present = client.config_get(name)
                client.config_set(name, value)
                before |= present
        yield
    finally:
        with suppress(RedisError):
            for name, value in before.items():
                client.config_set(name, value)


@contextmanager
def backed_store(url: str) -> Iterator[SnapshotStore]:
    """Open the hot store at a URL, converting its errors to ours.

    The URL may be that of any server of a cluster.
    """
    with as_backup_error(), ExitStack() as stack:
        seed = stack.enter_context(open_client(url))
        slots = read_slot_map(seed, url)
        clients = {
            one.url: seed if one.url == url else stack.enter_context(open_client(one.url))
            for one in slots.primaries
        }
        yield SnapshotStore(clients, slots)


@contextmanager
def as_backup_error() -> Iterator[None]:
    """Convert errors of the servers to ours."""
    try:
        yield
    except (AskError, MovedError, TryAgainError):
        raise BackupError(SLOTS_MOVE) from None
    except ResponseError as error:
        raise BackupError(f"the store rejected the command: {error}") from None
    except (RedisError, OSError) as error:
        raise unreachable(error) from None
