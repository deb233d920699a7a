"""Column source: a stream's records as one bulk reader gets them, in columns.

What `storage.streams.record_source.RecordSource` is for readers of records.
"""

from collections.abc import Sequence

from storage.domain import limits
from storage.domain.errors import OffsetExpired
from storage.domain.names import LogId, StreamName
from storage.domain.streams.record_columns import NO_RECORDS, ColumnRead, RecordColumns
from storage.domain.streams.record_filter import Filter, selects
from storage.domain.streams.stream import Gap, GapReason
from storage.streams.arrow_reader import ArrowReader


class ColumnSource:
    """The records of one stream that a filter selects.

    `stream_id`: the stream that positions belong to. If another one has the name, reads raise StreamRecreated.
    """

    __slots__ = ("_matches", "_reader", "name", "stream_id")

    def __init__(
        self, reader: ArrowReader, name: StreamName, stream_id: LogId, record_filter: Filter
    ) -> None:
        self._reader = reader
        self._matches = selects(record_filter, name)
        self.name = name
        self.stream_id = stream_id

    async def read(
        self, shard: int, offset: int, *, end: int, bytes_max: int = limits.READ_BYTES_MAX
    ) -> ColumnRead:
        """Read a shard's records with offsets [offset, end), without the filter.

        Expired records are reported as a gap. Raises ShardNotFound, OffsetOutOfRange, StreamNotFound, StreamRecreated.
        """
        start = offset
        while True:
            try:
                read = await self._reader.read_columns(
                    self.name,
                    shard,
                    offset=start,
                    end=end,
                    bytes_max=bytes_max,
                    stream_id=self.stream_id,
                )
            except OffsetExpired as expired:
                start = int(expired.facts["earliest_offset"])
                if start >= end:
                    return _expired(offset, end)
            else:
                return read if start == offset else _with_expired(read, offset)

    def selected(self, shard: int, columns: RecordColumns) -> Sequence[int] | None:
        """Return the positions of the records that the filter selects; None for all of them."""
        matches = self._matches
        if matches is None:
            return None
        records = columns.records()
        return [number for number, record in enumerate(records) if matches(shard, record)]


def _expired(first: int, end: int) -> ColumnRead:
    return ColumnRead(NO_RECORDS, end, Gap(first, end, GapReason.EXPIRED))


def _with_expired(read: ColumnRead, first: int) -> ColumnRead:
    """Return a read behind expired records, with a gap from `first` on."""
    after = read.columns.offsets[0] if read.columns.offsets else read.next_offset
    return ColumnRead(read.columns, read.next_offset, Gap(first, after, GapReason.EXPIRED))
