"""Paths of files below the archive's root.

    {namespace}/{stream id}/v1/dt=2026-11-20/hr=23/shard=000000000003/{first}-{next}-{attempt}.parquet

By the hour (UTC) in which its records arrived, then by shard, so that other engines see partitions. `first`
and `next` have twenty digits and sort numerically; `attempt` distinguishes two attempts at one range, so no file
is ever written twice. The manifest references files; only the collection of orphans lists them.
"""

import re
import secrets
from datetime import UTC, datetime

from storage.domain.archive import hour_of
from storage.domain.limits import HOUR_MS, SECOND_MS
from storage.domain.names import LogId

SUFFIX = ".parquet"
STAGED_FOLDER = "_staged"
"""Folder of staged files of writers; no namespace begins like this."""
_NAME = re.compile(r"(\d{20})-(\d{20})-[0-9a-f]{8}\.parquet")


def stream_prefix(namespace: str, stream_id: LogId) -> str:
    """Return the folder of everything that a stream has in the archive."""
    return f"{namespace}/{stream_id}/"


def new_attempt() -> str:
    """Return eight hexadecimal digits that no other attempt at the same range has."""
    return secrets.token_hex(4)


def file_path(
    namespace: str,
    stream_id: LogId,
    shard: int,
    *,
    arrival_ms: int,
    first: int,
    next_: int,
    attempt: str,
) -> str:
    """Return the path of a file of the records [first, next_), relative to the root.

    The records arrived in the hour of `arrival_ms`.
    """
    hour = datetime.fromtimestamp(hour_of(arrival_ms) * HOUR_MS // SECOND_MS, UTC)
    folder = f"dt={hour:%Y-%m-%d}/hr={hour:%H}/shard={shard:012d}"
    name = f"{first:020d}-{next_:020d}-{attempt}{SUFFIX}"
    return f"{stream_prefix(namespace, stream_id)}v1/{folder}/{name}"


def offsets_in(path: str) -> tuple[int, int] | None:
    """Parse the offsets (first, next) in a file's name; None for another file."""
    match = _NAME.fullmatch(path.rsplit("/", 1)[-1])
    return (int(match[1]), int(match[2])) if match else None
