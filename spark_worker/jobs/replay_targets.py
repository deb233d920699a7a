"""Targets of a replay: a stream or a queue, which adds each record once."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from msgspec.structs import replace

from spark_worker.jobs.replay_reader import Run
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.errors import QueueFull
from storage.domain.jobs import Job
from storage.domain.log.record_batch import Headers, Record
from storage.domain.names import QueueName, StreamName
from storage.domain.queues.message import NewMessage
from storage.domain.replays.replay import (
    ReplaySpec,
    group_for,
    origins,
    own_headers,
    producer_of,
    replayed_headers,
)
from storage.domain.streams.columnar_batch import Columns
from storage.domain.streams.idempotence import AppendCounts, SequencedBatch

Append = Callable[[], Awaitable[AppendCounts]]
"""A call that adds records to a target, and is repeated until its counts are of all of them."""

Send = Callable[[SequencedBatch, Sequence[NewMessage]], Awaitable[AppendCounts]]


class _QueueAppend:
    """A call that sends the next messages of a batch, as many as a queue has room for.

    A queue without room for all of them may never have it.
    """

    def __init__(self, send: Send, batch: SequencedBatch, messages: Sequence[NewMessage]) -> None:
        self._send = send
        self._batch = batch
        self._messages = messages
        self._counts = AppendCounts(0, 0)

    async def __call__(self) -> AppendCounts:
        """Return the counts of all calls. Raises QueueFull if there is no room for any."""
        first, end = self._counts.total, len(self._messages)
        while True:
            part = slice(first, end)
            batch = SequencedBatch(self._batch.producer_ids[part], self._batch.sequences[part])
            try:
                self._counts += await self._send(batch, self._messages[part])
            except QueueFull:
                if end - first == 1:
                    raise
                end = first + (end - first) // 2
            else:
                return self._counts


class _Target:
    """A target of a replay, to which each record is sent with its origin."""

    def __init__(self, job: Job, spec: ReplaySpec) -> None:
        self._job_id = job.job_id
        self._spec = spec

    def _origins_of(self, run: Run) -> list[Headers]:
        columns = run.columns
        replay_id, stream = self._spec.replay_id, self._spec.request.stream
        return origins(replay_id, stream, run.shard, columns.offsets, columns.arrivals_ms)


class StreamTarget(_Target):
    """Target stream of a replay, to which records are sent as columns.

    `hash_keys`: the first hash key of each source shard, for a target that keeps shards.
    """

    records_max = limits.IDEMPOTENT_COLUMNS_MAX

    def __init__(
        self, storage: Storage, job: Job, spec: ReplaySpec, hash_keys: dict[int, int]
    ) -> None:
        super().__init__(job, spec)
        assert spec.request.target.stream is not None
        self._streams = storage.streams
        self._name = StreamName(spec.request.target.stream, job.namespace)
        self._hash_keys = hash_keys

    def prepare(self, runs: Sequence[Run]) -> Append:
        """Return a call that appends these records."""
        return partial(
            self._streams.append_idempotent_columns,
            self._name,
            _batch_of(self._job_id, runs),
            _replayed(Columns.joined([run.columns.content for run in runs])),
            origin=[headers for run in runs for headers in self._origins_of(run)],
            hash_keys=self._hash_keys_of(runs),
        )

    def _hash_keys_of(self, runs: Sequence[Run]) -> list[int]:
        if not self._hash_keys:
            return []
        return [hash_key for run in runs for hash_key in self._repeated_hash_key(run)]

    def _repeated_hash_key(self, run: Run) -> list[int]:
        return [self._hash_keys[run.shard]] * len(run.columns)


class QueueTarget(_Target):
    """Target queue of a replay."""

    records_max = limits.REPLAY_BATCH_MESSAGES

    def __init__(self, storage: Storage, job: Job, spec: ReplaySpec, is_fifo: bool) -> None:
        super().__init__(job, spec)
        assert spec.request.target.queue is not None
        self._queues = storage.queues
        self._name = QueueName(spec.request.target.queue, job.namespace)
        self._is_fifo = is_fifo

    def prepare(self, runs: Sequence[Run]) -> Append:
        """Return a call that sends these records."""
        messages = [message for run in runs for message in self._messages(run)]
        send = partial(self._queues.send_idempotent_batch, self._name)
        return _QueueAppend(send, _batch_of(self._job_id, runs), messages)

    def _messages(self, run: Run) -> list[NewMessage]:
        producer = producer_of(self._job_id, run.part)
        return [
            self._message(run.shard, producer, record.offset, record.record, system)
            for record, system in zip(run.columns.records(), self._origins_of(run), strict=True)
        ]

    def _message(
        self, shard: int, producer: str, offset: int, record: Record, system: Headers
    ) -> NewMessage:
        own, content_type = own_headers(record.headers)
        return NewMessage(
            record.data,
            tuple(own),
            content_type,
            group_for(record.key, shard, fifo=self._is_fifo),
            f"{producer}:{offset}" if self._is_fifo else "",
            system=system,
        )


def _replayed(columns: Columns) -> Columns:
    """Return the columns without reserved headers but the content type."""
    if not columns.headers:
        return columns
    return replace(columns, headers=[*map(replayed_headers, columns.headers)])


def _batch_of(job_id: str, runs: Sequence[Run]) -> SequencedBatch:
    producer_ids: list[str] = []
    for run in runs:
        producer_ids += [producer_of(job_id, run.part)] * len(run.columns)
    return SequencedBatch(producer_ids, [offset for run in runs for offset in run.columns.offsets])
