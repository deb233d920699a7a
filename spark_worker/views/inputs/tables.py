"""Tables of views, in the memory of a scan: of a stream, or the rows of a view.

stream ──▶ read to its end before each batch ──▶ key ─▶ data ──┐
                                                               ├──▶ parsed once for each change, for all views with equal columns
view ────▶ read again before a batch if it has had one ─▶ rows ┘
"""

from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa

from spark_worker.views.failure import ViewFailed
from spark_worker.views.inputs.reads import has_news
from spark_worker.views.planning.plans import Plans, Source
from spark_worker.views.planning.prepared import RowsParser
from spark_worker.views.planning.records import TABLE, rows_table
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.errors import StreamRecreated
from storage.domain.names import LogId, StreamName, ViewName
from storage.domain.views.plan import ViewColumn
from storage.domain.views.view import ViewTable

_NULL = b"null"


def table_name(table: ViewTable, namespace: str) -> StreamName | ViewName:
    """Return the name of what a table has the records or rows of."""
    return ViewName(table.view, namespace) if table.view else StreamName(table.stream, namespace)


class ViewRowsTable:
    """Rows of a view, all of one batch. `columns` are those of its active revision.

    `positions`: the batch, by the number of the revision. `version` counts the batches that were read.
    """

    def __init__(self, view: ViewName) -> None:
        self.name = view
        self.positions: Mapping[int, int] = {}
        self.version = 0
        self.columns: Sequence[ViewColumn] = ()
        self._batch_read = "", 0
        self._rows: Sequence[bytes] = ()

    async def read(self, storage: Storage) -> None:
        """Read the rows if the view has had a batch since. Raises ViewNotFound, ViewFailed."""
        revision = await storage.view_rows.progress(self.name)
        if (revision.revision_id, revision.progress.batch) == self._batch_read:
            return
        rows_max, bytes_max = limits.VIEW_TABLE_ROWS_MAX, limits.VIEW_TABLE_BYTES_MAX
        snapshot = await storage.view_rows.snapshot(self.name, rows_max, bytes_max)
        if snapshot is None:
            raise ViewFailed(
                f"The view {self.name.name!r} has more than {rows_max} rows or {bytes_max} bytes, the maximum of a table."
            )
        revision, self._rows = snapshot.revision, snapshot.rows
        self._batch_read = revision.revision_id, revision.progress.batch
        self.positions = {revision.number: revision.progress.batch}
        self.columns = revision.plan.columns
        self.version += 1

    def arrow(self) -> pa.Table:
        """Return the rows, without keys."""
        return rows_table(self._rows)


class StreamTable:
    """Newest record of each key of a stream, up to `positions`. `version` counts its changes."""

    def __init__(self, stream: StreamName) -> None:
        self.name = stream
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
            self.name, self.positions, stream_id=self._stream_id
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
            raise ViewFailed(f"The table of {self.name.name!r} has more than {most} keys.")
        if self._bytes > limits.VIEW_TABLE_BYTES_MAX:
            most = limits.VIEW_TABLE_BYTES_MAX
            raise ViewFailed(f"The table of {self.name.name!r} has more than {most} bytes.")

    def arrow(self) -> pa.Table:
        """Return the rows, with their data as bytes."""
        columns = [[*self._rows], [*self._rows.values()]]
        arrays = [
            pa.array(column, field.type) for column, field in zip(columns, TABLE, strict=True)
        ]
        return pa.Table.from_arrays(arrays, schema=TABLE)


Table = StreamTable | ViewRowsTable


def new_table(name: StreamName | ViewName) -> Table:
    """Return the table of a stream or a view, of which nothing has been read."""
    return ViewRowsTable(name) if isinstance(name, ViewName) else StreamTable(name)


class ParsedTables:
    """Rows of tables as Spark reads them, parsed again only when a table has changed."""

    def __init__(self, plans: Plans) -> None:
        self._plans = plans
        self._parsed: dict[tuple[StreamName | ViewName, str], tuple[int, Source]] = {}

    def rows(self, table: Table, columns: str, parser: RowsParser) -> Source:
        """Return the rows of a table with declared columns."""
        place = table.name, columns
        if place not in self._parsed or self._parsed[place][0] != table.version:
            self._parsed[place] = table.version, self._parse(table, parser)
        return self._parsed[place][1]

    def _parse(self, table: Table, parser: RowsParser) -> Source:
        raw = self._plans.arrow(table.arrow())
        parsed = self._plans.frame(self._plans.over(parser.template, raw)).toArrow()
        return self._plans.arrow(parsed, parser.schema)

    def keep(self, names: Collection[StreamName | ViewName]) -> None:
        """Forget the rows of all other tables."""
        self._parsed = {place: rows for place, rows in self._parsed.items() if place[0] in names}
