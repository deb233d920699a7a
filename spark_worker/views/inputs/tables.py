"""Tables of views: the newest record of each key of a stream, in the memory of a scan.

stream ──▶ read to its end before each batch ──▶ key ─▶ data ──▶ parsed once for each change, for all views with equal columns
"""

from collections.abc import Mapping

import pyarrow as pa

from spark_worker.views.failure import ViewFailed
from spark_worker.views.inputs.reads import has_news
from spark_worker.views.planning.plans import Plans, Source
from spark_worker.views.planning.prepared import RowsParser
from spark_worker.views.planning.records import TABLE
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.errors import StreamRecreated
from storage.domain.names import LogId, StreamName

_NULL = b"null"


class StreamTable:
    """Newest record of each key of a stream, up to `positions`. `version` counts its changes."""

    def __init__(self, stream: StreamName) -> None:
        self.stream = stream
        self.positions: Mapping[int, int] = {}
        self.version = 0
        self._stream_id: LogId | None = None
        self._rows: dict[str, bytes] = {}
        self._bytes = 0

    async def read(self, storage: Storage) -> None:
        """Read to the end of the stream. Raises StreamNotFound, StreamRecreated, ViewFailed."""
        try:
            while await self._read_next(storage):
                pass
        except StreamRecreated:
            self._clear()
            while await self._read_next(storage):
                pass

    async def _read_next(self, storage: Storage) -> bool:
        read = await storage.record_reader.read(
            self.stream, self.positions, stream_id=self._stream_id
        )
        for shard in read.shards:
            for each in shard.records:
                if each.record.key:
                    self.put(each.record.key, each.record.data)
        self.positions, self._stream_id = read.positions, read.stream_id
        self.check_size()
        return has_news(read)

    def put(self, key: str, data: bytes) -> None:
        """Put the newest record of a key, or delete the key."""
        self.version += 1
        before = self._rows.pop(key, None)
        self._bytes -= 0 if before is None else len(before)
        if data and data.strip() != _NULL:
            self._rows[key] = data
            self._bytes += len(data)

    def _clear(self) -> None:
        """Forget a former stream of the name."""
        self.version += 1
        self.positions, self._rows, self._bytes = {}, {}, 0
        self._stream_id = None

    def check_size(self) -> None:
        """Raise ViewFailed for a table above its limits."""
        rows, most = len(self._rows), limits.VIEW_TABLE_ROWS_MAX
        if rows > most:
            raise ViewFailed(f"The table of {self.stream.name!r} has more than {most} keys.")
        if self._bytes > limits.VIEW_TABLE_BYTES_MAX:
            most = limits.VIEW_TABLE_BYTES_MAX
            raise ViewFailed(f"The table of {self.stream.name!r} has more than {most} bytes.")

    def arrow(self) -> pa.Table:
        """Return the rows, with their data as bytes."""
        columns = [[*self._rows], [*self._rows.values()]]
        arrays = [
            pa.array(column, field.type) for column, field in zip(columns, TABLE, strict=True)
        ]
        return pa.Table.from_arrays(arrays, schema=TABLE)


class ParsedTables:
    """Rows of tables as Spark reads them, parsed again only when a table has changed."""

    def __init__(self, plans: Plans) -> None:
        self._plans = plans
        self._parsed: dict[tuple[StreamName, str], tuple[int, Source]] = {}

    def rows(self, table: StreamTable, columns: str, parser: RowsParser) -> Source:
        """Return the rows of a table with declared columns."""
        place = table.stream, columns
        if place not in self._parsed or self._parsed[place][0] != table.version:
            self._parsed[place] = table.version, self._parse(table, parser)
        return self._parsed[place][1]

    def _parse(self, table: StreamTable, parser: RowsParser) -> Source:
        raw = self._plans.arrow(table.arrow())
        parsed = self._plans.frame(self._plans.over(parser.template, raw)).toArrow()
        return self._plans.arrow(parsed, parser.schema)

    def keep(self, streams: set[StreamName]) -> None:
        """Forget the rows of all other streams."""
        self._parsed = {place: rows for place, rows in self._parsed.items() if place[0] in streams}
