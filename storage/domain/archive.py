"""Archive: the part of a log that is in Parquet, and the rules for archiving.

    offsets   0 ──── start ──────── archived ───────── next
                      │               │                 │
                      │ files of the  │ only hot        │
                      │ archive       ├─────────────────┤
                      └───────────────┤                 │
                              hot start ────────────────┤  kept hot for a while, or until memory is needed

A file is immutable and holds the records of one shard that arrived within one hour (UTC), by offset.
`archived` moves only together with the rows of the files that end there, in one transaction, so files are adjacent
with no gap and no overlap (S3), except for offsets that no record ever had. docs/internals/tiering.md explains each step.
"""

import zlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from storage.domain import limits
from storage.domain.names import LogId
from storage.domain.streams.stream import StreamSpec

ShardKey = tuple[LogId, int]
"""A stream's id and a shard's index."""


class LogRange(msgspec.Struct, frozen=True):
    """Offsets [first, next) of a shard's log, to be archived.

    `stream` is the stream's name; `view`: the log is that of a queue's stream view.
    """

    namespace: str
    stream_id: LogId
    shard: int
    log_id: LogId
    first: int
    next: int
    view: bool = False
    stream: str = ""


class FileSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Records of a shard in an archive file, with offsets [first_offset, next_offset).

    Some of these may be holes. `log_bytes` is the size of its records as retention counts it, `file_bytes` the file's size.
    """

    first_offset: int
    next_offset: int
    records: int
    log_bytes: int
    file_bytes: int
    first_arrival_ms: int
    last_arrival_ms: int


class ArchivedFile(FileSummary, frozen=True, kw_only=True):
    """Archive file of a shard.

    `path` is relative to the archive's root. `digest` is the SHA-256 of the file's footer, which holds that of its content
    and, by page checksums, covers every byte: see `storage.parquet.file_writer`.
    """

    file_id: str
    stream_id: LogId
    shard: int
    path: str
    digest: bytes


class ArchiveState(msgspec.Struct, frozen=True, kw_only=True):
    """Archive progress of a shard. `files` are the live ones between `start` and `archived`.

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
    """Part of a log that is not archived yet.

    Offsets [first, next), their size in `bytes`, and how long the oldest has waited.
    """

    first: int
    next: int
    bytes: int
    waited_ms: int


def is_due(backlog: Backlog, lag_ms: int, budget: int | None, *, closed: bool) -> bool:
    """Return whether a log is to be archived now.

    It is if it has enough for a file, its oldest record has waited long enough, the shard is closed, or a good part of
    the budget for unarchived bytes is used up.
    """
    if backlog.first >= backlog.next:
        return False
    enough = limits.ARCHIVE_FILE_BYTES
    if budget is not None:
        enough = min(enough, budget // limits.ARCHIVE_BUDGET_PARTS)
    return closed or backlog.bytes >= enough or backlog.waited_ms >= lag_ms


def ranges_of(log: LogRange) -> list[LogRange]:
    """Divide the log's range into the pieces of one task each, as many as one job accepts."""
    step = limits.ARCHIVE_RANGE_RECORDS
    firsts = range(log.first, log.next, step)[: limits.ARCHIVE_RANGES_PER_LOG]
    return [replace(log, first=first, next=min(first + step, log.next)) for first in firsts]


def lane_of(stream_id: LogId) -> int:
    """Return the number of the namespace's archive job for the stream: always the same one."""
    return zlib.crc32(stream_id.encode()) % limits.ARCHIVE_JOBS_PER_NAMESPACE


def unarchived_bytes_max(hot_bytes_max: int | None) -> int | None:
    """Return how much of a shard may be unarchived before it rejects appends.

    Half of what it may have in the hot store.
    """
    return None if hot_bytes_max is None else max(1, hot_bytes_max // 2)


Span = tuple[int, int]
"""Offsets [first, next)."""


class CopyResult(msgspec.Struct, frozen=True):
    """Result of archiving a range.

    Its files, by offset, and the offsets of it that the log did not have; or the reason for its failure.
    """

    range: LogRange
    files: tuple[ArchivedFile, ...] = ()
    missing: tuple[Span, ...] = ()
    failure: str = ""


def unexplained(missing: Iterable[Span], holes: Sequence[Span]) -> list[Span]:
    """Return the missing offsets that no known hole explains.

    `holes` are in order and disjoint.
    """
    left: list[Span] = []
    for first, next_ in missing:
        position = first
        for hole_first, hole_next in holes:
            if hole_next <= position or hole_first >= next_:
                continue
            if hole_first > position:
                left.append((position, hole_first))
            position = max(position, hole_next)
        if position < next_:
            left.append((position, next_))
    return left


class LogBounds(NamedTuple):
    """Bounds of a log in the hot store: age, bytes and records; None is no bound.

    With an archive, nothing from `archived` on is deleted, and with `unarchived_bytes_max` the log rejects appends while
    more of it waits for its archive.
    """

    ms: int | None
    bytes: int | None
    records: int | None
    archived: int | None = None
    unarchived_bytes_max: int | None = None


def hot_bounds(spec: StreamSpec, *, archived: bool) -> LogBounds:
    """Return the bounds of a shard in the hot store."""
    if not archived:
        return LogBounds(spec.retention_ms, spec.retention_bytes, spec.retention_records)
    return LogBounds(
        _least(spec.hot_retention_ms, spec.retention_ms),
        _least(spec.hot_bytes_max, spec.retention_bytes),
        spec.retention_records,
    )


def _least(*bounds: int | None) -> int | None:
    return min((bound for bound in bounds if bound is not None), default=None)


def retired(
    files: Sequence[ArchivedFile],
    *,
    spec: StreamSpec,
    start: int,
    next_offset: int,
    now_ms: int,
    waiting_bytes: int = 0,
) -> list[ArchivedFile]:
    """Return the oldest files of a shard that retention no longer covers.

    `files` are in order, from the oldest on. A file is retired if it lies below the shard's `start`, or outside its
    retention, which counts the bytes of younger files, and the `waiting_bytes` that are not archived yet.
    """
    gone: list[ArchivedFile] = []
    younger = waiting_bytes + sum(file.log_bytes for file in files)
    for file in files:
        younger -= file.log_bytes
        if not (
            file.next_offset <= start
            or _is_past(spec.retention_ms, now_ms - file.last_arrival_ms)
            or _is_past(spec.retention_bytes, younger)
            or _is_past(spec.retention_records, next_offset - file.next_offset)
        ):
            break
        gone.append(file)
    return gone


def _is_past(bound: int | None, value: int) -> bool:
    return bound is not None and value >= bound


def to_compact(files: Sequence[ArchivedFile], now_ms: int) -> list[list[ArchivedFile]]:
    """Return the runs of adjacent files, by offset, each of which should become one new file.

    A run has several small files of one hour that ended a while ago, together within the limits of one file.
    """
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
    """Return whole hours since the Unix epoch; a file never spans two."""
    return arrival_ms // limits.HOUR_MS
