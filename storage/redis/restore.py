"""Copy of Millstream's keys from one server to another, by DUMP and RESTORE."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from redis import Redis
from redis.exceptions import RedisError, ResponseError

from storage.domain.backup_manifest import RESTORING, BackupError, StoreInUse
from storage.redis.keys import LAYOUT, VERSION_KEY
from storage.redis.snapshot import CONNECTION_OPTIONS
from storage.redis.transport.client import unreachable

_OURS = "ms:*"
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
    """The hot store for backup and restore.

    Reports its layout, and checks that it is a single server, and empty. All methods raise StorageUnavailable, and
    BackupError for what the server refuses.
    """

    def __init__(self, client: "Redis") -> None:
        self._client: Any = client

    def server(self) -> str:
        """Return the server's name and version."""
        info = self._client.info("server")
        return f"{info.get('server_name', 'redis')} {info.get('valkey_version') or info['redis_version']}"

    def layout(self, *, may_be_replica: bool = False) -> str:
        """Return the layout, ours for an unused store.

        `may_be_replica`: for a replica that was found to have everything. Raises BackupError for a store that cannot be backed up.
        """
        if not may_be_replica and self._client.info("replication")["role"] != "master":
            raise BackupError("the store is a replica, which can lag: use its primary")
        if self._client.info("cluster").get("cluster_enabled") and self._masters() > 1:
            raise BackupError(
                "the store is a cluster with several primaries, which have no common "
                "point in time: a backup requires a single server"
            )
        marked = (self._client.get(VERSION_KEY) or LAYOUT.encode()).decode()
        if marked == RESTORING:
            raise BackupError("a restore into the store is in progress or was interrupted")
        return marked

    def _masters(self) -> int:
        return int(self._client.execute_command("CLUSTER INFO")["cluster_size"])

    def take(self) -> None:
        """Mark an empty store as being restored into, exclusively. Raises StoreInUse."""
        if self._client.get(VERSION_KEY) == RESTORING.encode():
            raise StoreInUse(
                "an earlier restore into the store was interrupted: empty both stores first"
            )
        names = self._client.scan_iter(match=_OURS, count=_BATCH_KEYS_MAX)
        if (name := next(names, None)) is not None:
            raise StoreInUse(f"the store is not empty: it contains key {name.decode()}")
        if not self._client.set(VERSION_KEY, RESTORING, nx=True):
            raise StoreInUse("another client has started to use the store")

    def leave(self) -> None:
        """Remove the mark from a store that nothing was restored into."""
        self._client.delete(VERSION_KEY)

    def finish(self, layout: str) -> None:
        """Mark the store as complete: services may use it."""
        self._client.set(VERSION_KEY, layout)

    def fill(self, source: "SnapshotStore") -> int:
        """Copy every key of ours; return their number."""
        with self._large_keys():
            return sum(self._put(piece, source) for piece in source._pieces())

    def _put(self, piece: Sequence[_KeyEntry], source: "SnapshotStore") -> int:
        with source._client.pipeline(transaction=False) as dumps:
            for entry in piece:
                dumps.dump(entry.name)
            bodies = dumps.execute()
        with self._client.pipeline(transaction=False) as restores:
            existing = [(entry, body) for entry, body in zip(piece, bodies, strict=True) if body]
            for entry, body in existing:
                restores.restore(entry.name, max(0, entry.ttl_ms), body)
            restores.execute()
        return len(existing)

    def _pieces(self) -> Iterator[list[_KeyEntry]]:
        """Yield all keys but the layout's mark, in batches that fit into memory."""
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
            cursor, names = self._client.scan(cursor, match=_OURS, count=_BATCH_KEYS_MAX)
            fresh = [name for name in names if name not in seen and name != VERSION_KEY.encode()]
            seen.update(fresh)
            yield from self._measured(fresh)
            if cursor == 0:
                return

    def _measured(self, names: Sequence[bytes]) -> Iterator[_KeyEntry]:
        with self._client.pipeline(transaction=False) as pipeline:
            for name in names:
                pipeline.pttl(name)
                pipeline.memory_usage(name)
            replies = pipeline.execute()
        for name, ttl_ms, size in zip(names, replies[::2], replies[1::2], strict=True):
            yield _KeyEntry(name, ttl_ms, size or 0)

    @contextmanager
    def _large_keys(self) -> Iterator[None]:
        """Raise the server's limit on the size of a key temporarily, if it permits that."""
        try:
            before = self._client.config_get(_BULK)[_BULK]
            self._client.config_set(_BULK, _BULK_BYTES)
        except (ResponseError, KeyError):
            yield
            return
        try:
            yield
        finally:
            self._client.config_set(_BULK, before)


@contextmanager
def backed_store(url: str) -> Iterator[SnapshotStore]:
    """Open the hot store at a URL, converting its errors to ours."""
    client = Redis.from_url(url, **CONNECTION_OPTIONS)
    try:
        with client:
            yield SnapshotStore(client)
    except ResponseError as error:
        raise BackupError(f"the store rejected the command: {error}") from None
    except (RedisError, OSError) as error:
        raise unreachable(error) from None
