"""Targets of a replay: a stream or a queue, which adds each record once."""

from collections.abc import Sequence

from spark_worker.jobs.replay_reader import SelectedRecord
from storage.bootstrap import Storage
from storage.domain.jobs import Job
from storage.domain.log.record_batch import CONTENT_TYPE, Headers, Record
from storage.domain.names import QueueName, StreamName
from storage.domain.queues.message import NewMessage
from storage.domain.replays.replay import (
    OWN_OF_REPLAYS,
    ReplaySpec,
    group_for,
    origin,
    own_headers,
    producer_of,
)
from storage.domain.streams.idempotence import AppendCounts, SequencedBatch


class _Target:
    """A target of a replay, to which each record is sent with its origin."""

    def __init__(self, job: Job, spec: ReplaySpec) -> None:
        self._job_id = job.job_id
        self._spec = spec

    def _origin_of(self, item: SelectedRecord) -> Headers:
        replay_id, stream = self._spec.replay_id, self._spec.request.stream
        return origin(replay_id, stream, item.shard, item.log_record)


class StreamTarget(_Target):
    """Target stream of a replay.

    `hash_keys`: the first hash key of each source shard, for a target that keeps shards.
    """

    def __init__(
        self, storage: Storage, job: Job, spec: ReplaySpec, hash_keys: dict[int, int]
    ) -> None:
        super().__init__(job, spec)
        assert spec.request.target.stream is not None
        self._streams = storage.streams
        self._name = StreamName(spec.request.target.stream, job.namespace)
        self._hash_keys = hash_keys

    async def __call__(self, records: Sequence[SelectedRecord]) -> AppendCounts:
        batch = _batch_of(self._job_id, records)
        sent = [self._record(one) for one in records]
        return await self._streams.append_idempotent_batch(
            self._name, batch, sent, own=OWN_OF_REPLAYS
        )

    def _record(self, item: SelectedRecord) -> Record:
        record = item.log_record.record
        own, content_type = own_headers(record.headers)
        if content_type:
            own.append((CONTENT_TYPE, "", content_type.encode()))
        return Record(
            record.data,
            record.key,
            (*own, *self._origin_of(item)),
            record.event_time_ms,
            self._hash_keys.get(item.shard),
        )


class QueueTarget(_Target):
    """Target queue of a replay."""

    def __init__(self, storage: Storage, job: Job, spec: ReplaySpec, is_fifo: bool) -> None:
        super().__init__(job, spec)
        assert spec.request.target.queue is not None
        self._queues = storage.queues
        self._name = QueueName(spec.request.target.queue, job.namespace)
        self._is_fifo = is_fifo

    async def __call__(self, records: Sequence[SelectedRecord]) -> AppendCounts:
        batch = _batch_of(self._job_id, records)
        return await self._queues.send_idempotent_batch(
            self._name, batch, [self._message(one) for one in records]
        )

    def _message(self, item: SelectedRecord) -> NewMessage:
        record, producer = item.log_record.record, producer_of(self._job_id, item.part)
        own, content_type = own_headers(record.headers)
        return NewMessage(
            record.data,
            tuple(own),
            content_type,
            group_for(record.key, item.shard, fifo=self._is_fifo),
            f"{producer}:{item.log_record.offset}" if self._is_fifo else "",
            system=self._origin_of(item),
        )


def _batch_of(job_id: str, records: Sequence[SelectedRecord]) -> SequencedBatch:
    names = {part: producer_of(job_id, part) for part in {one.part for one in records}}
    return SequencedBatch(
        [names[one.part] for one in records], [one.log_record.offset for one in records]
    )
