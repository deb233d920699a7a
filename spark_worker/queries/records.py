"""Records of a query's streams as Spark reads them: in this process, or in tasks.

    ranges ──▶ pieces ──┬──▶ few records: read here, a local relation
                        └──▶ tasks, each with clients of its own ──▶ Arrow batches

A piece has the same records whenever it is read, so a task that runs twice, or a relation that is scanned twice, changes nothing. Records
that retention has deleted meanwhile fail the query: it never leaves any out silently.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack

import msgspec
import pyarrow as pa

from spark_worker.settings import TaskSettings
from spark_worker.views.planning.records import RAW, raw_batch
from storage.bootstrap import Storage, open_storage
from storage.domain import limits
from storage.domain.errors import (
    OffsetExpired,
    ShardNotFound,
    StorageUnavailable,
    StreamNotFound,
    StreamRecreated,
)
from storage.domain.names import LogId, StreamName
from storage.domain.replays.replay import OffsetRange
from storage.domain.streams.stream import GapReason

_TASK_CONNECTIONS = 2  # to Postgres

_NONE = pa.RecordBatch.from_arrays([pa.array([], field.type) for field in RAW], schema=RAW)


class RecordPiece(msgspec.Struct, frozen=True):
    """Part of a stream's records that is read at once."""

    namespace: str
    stream: str
    stream_id: LogId
    within: OffsetRange


class RecordsDeleted(Exception):
    """Records of the query do not exist any more; the text says which."""


_pieces = msgspec.json.Decoder(RecordPiece)


async def read_piece(storage: Storage, piece: RecordPiece) -> AsyncIterator[pa.RecordBatch]:
    """Yield the records of a piece in the columns of RAW, a megabyte at a time.

    Raises RecordsDeleted, StorageUnavailable, StorageBusy.
    """
    within = piece.within
    offset, name = within.first, StreamName(piece.stream, piece.namespace)
    while offset < within.end:
        try:
            page = await storage.arrow_reader.read(
                name,
                within.shard,
                offset=offset,
                end=within.end,
                bytes_max=limits.QUERY_READ_BYTES,
                stream_id=piece.stream_id,
            )
        except (StreamNotFound, StreamRecreated):
            raise RecordsDeleted(f"The stream {piece.stream!r} was deleted.") from None
        except (OffsetExpired, ShardNotFound):
            raise _expired(piece) from None
        if page.gap is not None and page.gap.reason is GapReason.EXPIRED:
            raise _expired(piece)
        if page.next_offset <= offset:
            raise StorageUnavailable(f"Shard {within.shard} ends before the end of the query.")
        for batch in pa.ipc.open_stream(page.encoded):
            yield raw_batch(within.shard, batch)
        offset = page.next_offset


def _expired(piece: RecordPiece) -> RecordsDeleted:
    shard = piece.within.shard
    return RecordsDeleted(
        f"Records of shard {shard} of {piece.stream!r} have expired since the query was submitted. Run it again."
    )


async def read_in_process(storage: Storage, pieces: Sequence[RecordPiece]) -> pa.Table | None:
    """Return the records of pieces; None if they have more than QUERY_SMALL_BYTES."""
    batches = [_NONE]
    size = 0
    for piece in pieces:
        async for batch in read_piece(storage, piece):
            size += batch.nbytes
            if size > limits.QUERY_SMALL_BYTES:
                return None
            batches.append(batch)
    return pa.Table.from_batches(batches, RAW)


def read_in_task(
    settings: TaskSettings, pieces: Sequence[bytes], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the records of the pieces whose numbers a Spark task gets, with its own clients."""
    storage_settings = settings.storage().model_copy(
        update={"postgres_connections_max": _TASK_CONNECTIONS}
    )
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        storage = runner.run(stack.enter_async_context(open_storage(storage_settings)))
        try:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    reads = read_piece(storage, _pieces.decode(pieces[number]))
                    while (read := runner.run(_next(reads))) is not None:
                        yield read
        finally:
            runner.run(stack.aclose())


async def _next(reads: AsyncIterator[pa.RecordBatch]) -> pa.RecordBatch | None:
    return await anext(reads, None)
