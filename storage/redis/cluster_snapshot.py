"""Snapshots of all primaries of a cluster, at one moment.

    connect ─▶ pause writes at each primary ─▶ SYNC ─▶ each has forked ─▶ same primaries? ─▶ resume writes ─▶ read

From the last pause to the first resumption no primary changes, so that all forks show the state of that time: what crosses
slots is in the copy as one server would have it. A pause ends by itself, also if this process dies; snapshots that began
later than it could end are not used. Writers wait as long as the forks take, and reads go on.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from time import monotonic, sleep
from typing import Any

from redis.exceptions import RedisError

from storage.domain import limits
from storage.domain.backup_manifest import BackupError
from storage.redis.restore import SLOTS_MOVE, as_backup_error, changed_settings
from storage.redis.slot_map import SlotMap, is_migrating, open_client, read_slot_map
from storage.redis.snapshot import SnapshotLine

_FORK_AT_ONCE = {"repl-diskless-sync": "yes", "repl-diskless-sync-delay": "0"}
"""Otherwise a server waits for more replicas, or writes its disk before it sends the first byte."""
_CHILDREN = ("rdb_bgsave_in_progress", "aof_rewrite_in_progress")
_POLL_S = 0.05


@contextmanager
def cluster_snapshots(slots: SlotMap) -> Iterator[Sequence[SnapshotLine]]:
    """Yield one snapshot for each primary, in their order, all of one moment.

    They must be read concurrently, since a server that cannot send ends its snapshot. Raises BackupError if the primaries
    or their slots change, or do not fork in time; StorageUnavailable.
    """
    with ExitStack() as stack:
        with as_backup_error():
            lines = _begun(slots, stack)
        yield lines


def _begun(slots: SlotMap, stack: ExitStack) -> Sequence[SnapshotLine]:
    """Return snapshots that have begun at one moment; `stack` ends them."""
    clients = {
        one.url: stack.enter_context(open_client(one.url, limits.REDIS_REPLY_MS_MAX))
        for one in slots.primaries
    }
    for client in clients.values():
        stack.enter_context(changed_settings(client, _FORK_AT_ONCE))
    for _ in range(limits.CLUSTER_SNAPSHOT_ATTEMPTS_MAX):
        _wait_for_children(clients.values())
        if lines := _attempt(clients, slots, stack):
            return lines
    raise BackupError(
        f"the primaries of the cluster did not all fork within {limits.CLUSTER_PAUSE_MS_MAX // limits.SECOND_MS} s, for which"
        " writes were paused; try again, with repl-diskless-sync yes and repl-diskless-sync-delay 0"
    )


def _attempt(
    clients: Mapping[str, Any], slots: SlotMap, stack: ExitStack
) -> Sequence[SnapshotLine]:
    """Return snapshots that have begun at one moment; none if a primary did not fork in time."""
    with ExitStack() as attempt:
        lines = [attempt.enter_context(closing(SnapshotLine(url))) for url in clients]
        until_s = monotonic() + limits.CLUSTER_PAUSE_MS_MAX / limits.SECOND_MS
        with _paused(clients.values()):
            if any(map(_has_child, clients.values())):  # SYNC would join a snapshot that is older
                return ()
            for line in lines:
                line.request()
            if not all(line.has_begun(until_s) for line in lines):
                return ()
            for url, client in clients.items():
                _check_unchanged(client, url, slots)
            if monotonic() > until_s:
                return ()
        stack.push(attempt.pop_all())
        return lines


@contextmanager
def _paused(clients: Iterable[Any]) -> Iterator[None]:
    """Let writes wait at every primary while the block runs, or until the limit."""
    with ExitStack() as stack:
        for client in clients:
            stack.callback(_resume, client)
            client.execute_command("CLIENT", "PAUSE", limits.CLUSTER_PAUSE_MS_MAX, "WRITE")
        yield


def _resume(client: Any) -> None:
    with suppress(RedisError):  # its pause ends by itself
        client.execute_command("CLIENT", "UNPAUSE")


def _check_unchanged(client: Any, url: str, slots: SlotMap) -> None:
    if read_slot_map(client, url) != slots:
        raise BackupError(
            "a primary of the cluster was replaced, or slots were moved, during the backup; try again"
        )
    if is_migrating(client):
        raise BackupError(SLOTS_MOVE)


def _wait_for_children(clients: Iterable[Any]) -> None:
    """Wait until no primary writes a snapshot or a new append-only file.

    A server forks for one of them at a time.
    """
    until_s = monotonic() + limits.SNAPSHOT_WAIT_MS_MAX / limits.SECOND_MS
    for client in clients:
        while _has_child(client):
            if monotonic() > until_s:
                raise BackupError("a primary of the cluster still writes its own files; try again")
            sleep(_POLL_S)


def _has_child(client: Any) -> bool:
    info = client.info("persistence")
    return any(info.get(name) for name in _CHILDREN)
