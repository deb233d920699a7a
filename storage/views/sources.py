"""Sources of a row: the ranges that it stores, and its records in them."""

from collections.abc import Callable, Sequence
from hashlib import sha256

import attrs
import msgspec
from msgspec.structs import replace

from storage.concurrency.tasks import gather_all
from storage.domain import limits
from storage.domain.definitions import page_limit
from storage.domain.errors import (
    ShardNotFound,
    StreamNotFound,
    StreamRecreated,
    ViewSourcesUntracked,
)
from storage.domain.names import StreamName, ViewName
from storage.domain.replays.replay import OffsetRange
from storage.domain.streams.stream import Gap, LogRecord
from storage.domain.views.progress import ViewProgress, ViewRevision
from storage.domain.views.source_search import RecordLocation, SearchResult, SearchSpec
from storage.domain.views.sources import SourceMode, Sources
from storage.streams.read import RecordReader
from storage.streams.record_source import RecordSource
from storage.views.rows import ViewRowReader
from storage.views.worker_results import WorkerResults

_READS_AT_ONCE = 16


class RowSources(msgspec.Struct, frozen=True, kw_only=True):
    """A row with the ranges of its sources, and a page of its records.

    `row` is JSON, None if there is none. `next`: where the next page begins, None after the last record. `gaps`: offsets of the ranges that
    cannot be read, by shard.
    """

    revision: ViewRevision
    row: bytes | None = None
    ranges: Sources = {}
    records: Sequence[tuple[int, LogRecord]] = ()
    gaps: Sequence[tuple[int, Gap]] = ()
    next: RecordLocation | None = None


@attrs.define(eq=False, slots=False)
class ViewSourceReader:
    """Reader of the records that contributed to a row. A worker finds them, by the query."""

    _rows: ViewRowReader
    _searches: WorkerResults
    _reader: RecordReader

    async def read(
        self,
        name: ViewName,
        key: Sequence[str],
        *,
        limit: int = limits.PAGE_ITEMS_DEFAULT,
        after: RecordLocation | None = None,
        authorise: Callable[[StreamName], object],
    ) -> RowSources:
        """Return the sources of the row with a key, and its records from a location on.

        `authorise` is called with the stream of the records, which is not that of the definition while another revision is built.
        At most `limit` records and VIEW_SOURCES_BYTES_MAX bytes, among VIEW_SOURCES_SEARCHED_MAX records. Raises ViewNotFound,
        ValidationFailed for another key than that of one row, ViewSourcesUntracked, ViewSourcesPending.
        """
        revision, row = await self._rows.read_one(name, key)
        stream = StreamName(revision.query.input.stream, name.namespace)
        authorise(stream)
        if revision.query.sources is SourceMode.NONE:
            raise ViewSourcesUntracked(
                f"View '{name.name}' does not track the sources of its rows; set `sources` to `range`."
            )
        if row is None:
            return RowSources(revision=revision)
        ranges = row.sources or {}
        result = await self._search(name.namespace, revision, row.key, _from(ranges, after), limit)
        source = RecordSource(self._reader, stream, revision.stream_id)
        records = await _read(source, result.records)
        is_cut = len(records) < len(result.records)
        return RowSources(
            revision=revision,
            row=row.output,
            ranges=ranges,
            records=[(shard, record) for shard, record in records if record is not None],
            gaps=result.gaps,
            next=result.records[len(records)] if is_cut else result.next,
        )

    async def _search(
        self,
        namespace: str,
        revision: ViewRevision,
        key: bytes,
        ranges: Sequence[OffsetRange],
        limit: int,
    ) -> SearchResult:
        if not ranges:
            return SearchResult(())
        query = replace(revision, progress=ViewProgress())
        spec = msgspec.to_builtins(SearchSpec(query, key, ranges, page_limit(limit)))
        subject = sha256(msgspec.json.encode(spec, order="deterministic")).hexdigest()
        return msgspec.convert(await self._searches.get(namespace, subject, spec), SearchResult)


def _from(sources: Sources, start: RecordLocation | None) -> list[OffsetRange]:
    """Return the ranges of sources from a location on, by shard."""
    first_shard, first_offset = start or (0, 0)
    return [
        OffsetRange(
            shard, max(one.first, first_offset if shard == first_shard else 0), one.last + 1
        )
        for shard, one in sorted(sources.items())
        if shard > first_shard or (shard == first_shard and one.last >= first_offset)
    ]


async def _read(
    source: RecordSource, locations: Sequence[RecordLocation]
) -> list[tuple[int, LogRecord | None]]:
    """Read records with their shards, until VIEW_SOURCES_BYTES_MAX; None for one that is gone."""
    records, size_bytes = list[tuple[int, LogRecord | None]](), 0
    for first in range(0, len(locations), _READS_AT_ONCE):
        for shard, record in await gather_all(
            [_read_one(source, location) for location in locations[first : first + _READS_AT_ONCE]]
        ):
            size_bytes += len(record.record.data) if record else 0
            if records and size_bytes > limits.VIEW_SOURCES_BYTES_MAX:
                return records
            records.append((shard, record))
    return records


async def _read_one(source: RecordSource, location: RecordLocation) -> tuple[int, LogRecord | None]:
    shard, offset = location
    try:
        read = await source.read(shard, offset, records_max=1, bytes_max=1)
    except (ShardNotFound, StreamNotFound, StreamRecreated):
        return shard, None
    return shard, next((one for one in read.records if one.offset == offset), None)
