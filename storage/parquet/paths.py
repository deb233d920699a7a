"""Where files lie below the archive's root.

    {namespace}/{stream id}/v1/dt=2026-11-20/hr=23/shard=000000000003/{first}-{next}-{attempt}.parquet

By the hour (UTC) in which its records arrived, then by shard, so that other engines see partitions. `first`
and `next` have twenty digits and sort as they count; `attempt` tells two attempts at one range apart, so no file
is ever written twice. The manifest names files; nobody finds them by listing but who collects orphans.
"""

import re
import secrets
from datetime import UTC, datetime

from storage.domain.archive import hour_of
from storage.domain.limits import HOUR_MS, SECOND_MS
from storage.domain.names import LogId

SUFFIX = ".parquet"
STAGED_FOLDER = "_staged"
"""Of what writers put aside; no namespace begins so."""
_NAME = re.compile(r"(\d{20})-(\d{20})-[0-9a-f]{8}\.parquet")


def stream_prefix(namespace: str, stream_id: LogId) -> str:
    """The folder of everything that a stream has in the archive."""
    return f"{namespace}/{stream_id}/"


def new_attempt() -> str:
    """Eight hexadecimal digits that no other attempt at the same range has."""
    return secrets.token_hex(4)


def file_path(
    namespace: str,
    stream_id: LogId,
    shard: int,
    arrival_ms: int,
    first: int,
    next_: int,
    attempt: str,
) -> str:
    """The path, below the root, of a file of the records [first, next_) that arrived in the hour of `arrival_ms`."""
    hour = datetime.fromtimestamp(hour_of(arrival_ms) * HOUR_MS // SECOND_MS, UTC)
    folder = f"dt={hour:%Y-%m-%d}/hr={hour:%H}/shard={shard:012d}"
    name = f"{first:020d}-{next_:020d}-{attempt}{SUFFIX}"
    return f"{stream_prefix(namespace, stream_id)}v1/{folder}/{name}"


def offsets_in(path: str) -> tuple[int, int] | None:
    """The offsets (first, next) that a file's name says; None for what is no file of the archive."""
    match = _NAME.fullmatch(path.rsplit("/", 1)[-1])
    return (int(match[1]), int(match[2])) if match else None
