"""Record source: a stream's records as one reader gets them, shard by shard.

Feeds, webhooks, replays and the Kinesis API read through it. What a position means once its records have expired, which
stream it belongs to, and which records a filter selects is decided here for all of them.
"""

from collections.abc import AsyncIterator

from storage.domain import limits
from storage.domain.names import LogId, StreamName
from storage.domain.replays.replay import OffsetRange
from storage.domain.streams.record_filter import Filter, selects
from storage.domain.streams.stream import LogRecord, ReadFrom, ShardRead
from storage.streams.read import RecordReader

_OLDEST = ReadFrom(time_ms=0)
_ALL = Filter()


class RecordSource:
    """The records of one stream that a filter selects.

    `stream_id`: the stream that positions belong to. If another one has the name, reads raise StreamRecreated.
    """

    __slots__ = ("_matches", "_reader", "name", "stream_id")

    def __init__(
        self,
        reader: RecordReader,
        name: StreamName,
        stream_id: LogId | None,
        record_filter: Filter = _ALL,
    ) -> None:
        self._reader = reader
        self._matches = selects(record_filter, name)
        self.name = name
        self.stream_id = stream_id

    async def read(
        self,
        shard: int,
        offset: int | None,
        *,
        records_max: int = limits.READ_RECORDS_MAX,
        bytes_max: int = limits.READ_BYTES_MAX,
        wait_ms: int = 0,
    ) -> ShardRead:
        """Read a shard from an offset, or from its oldest record for None, without the filter.

        Expired records are reported as a gap. Raises ShardNotFound, OffsetOutOfRange, StreamNotFound, StreamRecreated.
        """
        return await self._reader.read_shard(
            self.name,
            shard,
            _OLDEST if offset is None else ReadFrom(offset=offset),
            records_max=records_max,
            bytes_max=bytes_max,
            wait_ms=wait_ms,
            stream_id=self.stream_id,
            skip_expired=True,
        )

    async def reads(
        self, within: OffsetRange, *, bytes_max: int = limits.READ_BYTES_MAX
    ) -> AsyncIterator[ShardRead]:
        """Yield reads from the first offset of a range until its end, or that of the shard.

        The last one may have records behind the range.
        """
        offset = within.first
        while offset < within.end:
            most = min(limits.READ_RECORDS_MAX, within.end - offset)
            read = await self.read(within.shard, offset, records_max=most, bytes_max=bytes_max)
            yield read
            if read.next_offset <= offset:
                return
            offset = read.next_offset

    def selects(self, shard: int, record: LogRecord) -> bool:
        """Return whether the filter selects a record."""
        return self._matches is None or self._matches(shard, record)
