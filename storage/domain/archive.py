"""The archive: what of a log lies in Parquet, and the rules of what goes there.

    offsets   0 ──── start ──────── archived ───────── next
                      │               │                 │
                      │ files of the  │ only hot        │
                      │ archive       ├─────────────────┤
                      └───────────────┤                 │
                              hot start ────────────────┤  kept hot for a while, or until there is room

A file is immutable and holds the records of one shard that arrived within one hour (UTC), by offset.
`archived` moves only together with the rows of the files that end there, in one transaction, so files meet
with no gap and no overlap (S3), but for offsets that no record ever had.
"""

from collections.abc import Sequence

import msgspec

from storage.domain import limits
from storage.domain.names import LogId


class LogRange(msgspec.Struct, frozen=True):
    """Offsets [first, next) of a shard's log, to be archived. `view`: the log of a queue's stream view."""

    namespace: str
    stream_id: LogId
    shard: int
    log_id: LogId
    first: int
    next: int
    view: bool = False


class ArchivedFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file: the records of a shard with offsets [first_offset, next_offset), some of which may be holes.

    `path` lies below the archive's root. `log_bytes` is what its records count against a retention,
    `file_bytes` the file's size. `digest` is the SHA-256 of the file's footer, which holds that of its content
    and, by page checksums, answers for every byte: see `storage.archive.files`.
    """

    file_id: str
    stream_id: LogId
    shard: int
    first_offset: int
    next_offset: int
    records: int
    log_bytes: int
    file_bytes: int
    first_arrival_ms: int
    last_arrival_ms: int
    path: str
    digest: bytes


class ArchiveState(msgspec.Struct, frozen=True, kw_only=True):
    """How far a shard is archived: see the picture above. `files` are the live ones between.

    `archived_at_ms` is when `archived` last moved, or its log was first seen.
    """

    stream_id: LogId
    shard: int
    log_id: LogId
    start: int
    archived: int
    archived_at_ms: int
    files: int
    records: int
    file_bytes: int
    log_bytes: int


class Backlog(msgspec.Struct, frozen=True):
    """What of a log is not archived yet: [first, next), `bytes` of it, the oldest of which arrived then."""

    first: int
    next: int
    bytes: int
    oldest_arrival_ms: int


def is_due(backlog: Backlog, lag_ms: int, budget: int | None, *, closed: bool, now_ms: int) -> bool:
    """Whether a log is to be archived now: it has enough for a file, some of it has waited long enough, the
    shard is closed, or a good part of what may lie unarchived is used up."""
    if backlog.first >= backlog.next:
        return False
    enough = limits.ARCHIVE_FILE_BYTES
    if budget is not None:
        enough = min(enough, budget // limits.ARCHIVE_BUDGET_PARTS)
    waited_ms = now_ms - backlog.oldest_arrival_ms
    return closed or backlog.bytes >= enough or waited_ms >= lag_ms


def unarchived_bytes_max(hot_bytes_max: int | None) -> int | None:
    """How much of a shard may lie unarchived before it takes no more: half of what it may hold hot."""
    return None if hot_bytes_max is None else max(1, hot_bytes_max // 2)


def to_compact(files: Sequence[ArchivedFile], now_ms: int) -> list[list[ArchivedFile]]:
    """Runs of neighbouring files, by offset, each worth one new file: of one hour that is over for a while,
    several, small, and together no more than a file may be."""
    runs: list[list[ArchivedFile]] = []
    run: list[ArchivedFile] = []
    for file in files:
        if run and not _belongs(run, file):
            runs.append(run)
            run = []
        if _is_small(file) and _is_over(file, now_ms):
            run.append(file)
        elif run:
            runs.append(run)
            run = []
    runs.append(run)
    return [run for run in runs if len(run) >= limits.COMPACT_FILES_MIN]


def _belongs(run: Sequence[ArchivedFile], file: ArchivedFile) -> bool:
    size = sum(one.log_bytes for one in run) + file.log_bytes
    records = sum(one.records for one in run) + file.records
    fits = size <= limits.ARCHIVE_FILE_BYTES and records <= limits.ARCHIVE_FILE_RECORDS
    return fits and hour_of(file.first_arrival_ms) == hour_of(run[-1].first_arrival_ms)


def _is_small(file: ArchivedFile) -> bool:
    return file.log_bytes < limits.COMPACT_BELOW_BYTES


def _is_over(file: ArchivedFile, now_ms: int) -> bool:
    ends_ms = (hour_of(file.first_arrival_ms) + 1) * limits.HOUR_MS
    return now_ms >= ends_ms + limits.COMPACT_AFTER_MS


def hour_of(arrival_ms: int) -> int:
    """Whole hours since the Unix epoch: what a file never crosses."""
    return arrival_ms // limits.HOUR_MS
