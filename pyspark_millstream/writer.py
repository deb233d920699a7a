"""Writers: tasks stage their records, and one commit appends them.

    task     ──▶ staged/…   an Arrow stream, in parts
    driver   ──▶ commits    (writer id, batch id): the first one decides what the batch is

A task that runs twice stages twice, and only what the driver names counts. A micro-batch that runs again may be cut
differently; if its first run was committed, that one stands and the second's records are discarded.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from pyspark_millstream.arrow_batches import as_written
from pyspark_millstream.client import Client
from pyspark_millstream.errors import MillstreamError, OptionError
from pyspark_millstream.options import Options

_STAGED_BYTES = 8 * 1024 * 1024  # in one call


@dataclass
class Staged(WriterCommitMessage):
    """The ids of the records that a task staged, in order."""

    ids: list[str]


Messages = list[WriterCommitMessage | None]


def stage(options: Options, batches: Iterator[pa.RecordBatch]) -> Staged:
    """Stage a task's records, in parts."""
    ids: list[str] = []
    client = Client(options)
    try:
        for part in _parts(batches):
            ids += [client.stage(_encoded(part))]
    except BaseException:
        with suppress(MillstreamError):  # files that remain are deleted after a day
            client.discard(ids)
        raise
    return Staged(ids)


def _parts(batches: Iterator[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    part: list[pa.RecordBatch] = []
    size = 0
    for batch in map(as_written, batches):
        for piece in _pieces(batch):
            if part and size + piece.nbytes > _STAGED_BYTES:
                yield part
                part, size = [], 0
            part.append(piece)
            size += piece.nbytes
    if part:
        yield part


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if batch.num_rows == 0:
        return
    rows = max(1, _STAGED_BYTES * batch.num_rows // max(1, batch.nbytes))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _encoded(batches: list[pa.RecordBatch]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    encoded: bytes = sink.getvalue().to_pybytes()
    return encoded


def _ids(messages: Messages) -> list[str]:
    return [one for message in messages if isinstance(message, Staged) for one in message.ids]


class BatchWriter(DataSourceArrowWriter):
    """Writer of a data frame: all of it is appended once the write is committed."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._writer_id = options.writer_id or uuid4().hex

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return stage(self._options, iterator)

    def commit(self, messages: Messages) -> None:
        Client(self._options).commit(self._writer_id, 0, _ids(messages))

    def abort(self, messages: Messages) -> None:
        Client(self._options).discard(_ids(messages))


class StreamWriter(DataSourceStreamArrowWriter):
    """Writer of micro-batches, each appended once."""

    def __init__(self, options: Options) -> None:
        if options.writer_id is None:
            raise OptionError(
                "a streaming query requires option 'writerId': the same at each run, and "
                "different from every other query's"
            )
        self._options = options
        self._writer_id = options.writer_id

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return stage(self._options, iterator)

    def commit(self, messages: Messages, batchId: int) -> None:
        Client(self._options).commit(self._writer_id, batchId, _ids(messages))

    def abort(self, messages: Messages, batchId: int) -> None:
        Client(self._options).discard(_ids(messages))
