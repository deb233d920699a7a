"""Rules of definitions: how queues and streams are created, and may change."""

from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from storage.catalog.definition_store import DefinitionRules
from storage.domain.clock import Clock
from storage.domain.errors import QueueNotFound, StreamNotFound, ValidationFailed
from storage.domain.names import QueueName, StreamName, new_log_id
from storage.domain.queues.partitions import NewLogs, with_spec
from storage.domain.queues.queue import Queue, QueueSpec, QueueType
from storage.domain.streams.stream import Shard, Stream, StreamSpec, even_ranges

Annotated = TypeVar("Annotated", QueueSpec, StreamSpec)


def queue_rules(clock: Clock, new_logs: NewLogs) -> DefinitionRules[QueueName, QueueSpec, Queue]:
    """Return the rules of queues; `new_logs` chooses the logs of their partitions."""
    return DefinitionRules(
        create=partial(_new_queue, new_logs),
        with_spec=lambda queue, spec: with_spec(queue, spec, clock.now_ms(), new_logs),
        not_found=queue_not_found,
        check_change=_refuse_queue_change,
        merge=_keep_partitions,
        is_pausable=True,
        check_name=QueueName.check_is_free,
    )


def queue_not_found(name: QueueName) -> QueueNotFound:
    """Return the error for a name without a queue."""
    return QueueNotFound(f"Queue '{name.name}' does not exist.")


def stream_not_found(name: StreamName) -> StreamNotFound:
    """Return the error for a name without a stream."""
    return StreamNotFound(f"Stream '{name.name}' does not exist.")


def _new_queue(new_logs: NewLogs, name: QueueName, spec: QueueSpec, now_ms: int) -> Queue:
    spec = replace(spec, partitions=spec.partitions or 1)
    queue = Queue(
        name=name,
        log_id=new_log_id(),
        spec=spec,
        version=1,
        created_at_ms=now_ms,
        changed_at_ms=now_ms,
    )
    return with_spec(queue, spec, now_ms, new_logs)


def _refuse_queue_change(old: QueueSpec, new: QueueSpec) -> None:
    if new.type is not old.type:
        raise ValidationFailed.at(
            "/type", f"The type of a queue is immutable; this queue is {old.type}.", "immutable"
        )
    if new.partitions != old.partitions and new.type is QueueType.FIFO:
        detail = (
            f"The partitions of a FIFO queue are immutable, because its groups would lose their order; this queue has "
            f"{old.partitions}. Create another queue with as many as it needs, and move the messages there."
        )
        raise ValidationFailed.at("/partitions", detail, "immutable")


def _new_stream(name: StreamName, spec: StreamSpec, now_ms: int) -> Stream:
    shards = [
        Shard(index, new_log_id(), first, last, now_ms)
        for index, (first, last) in enumerate(even_ranges(spec.shards))
    ]
    return Stream(
        name=name,
        stream_id=new_log_id(),
        spec=spec,
        shards=tuple(shards),
        version=1,
        created_at_ms=now_ms,
        changed_at_ms=now_ms,
    )


def _refuse_stream_change(old: StreamSpec, new: StreamSpec) -> None:
    if new.shards != old.shards:
        raise ValidationFailed.at(
            "/shards",
            f"The stream was created with {old.shards} shards. Use a reshard to change the number.",
            "immutable",
        )
    if (new.topic is None) != (old.topic is None):
        raise ValidationFailed.at(
            "/name", "Change a topic as a topic, not as its stream", "immutable"
        )
    if old.topic is not None and new.topic is not None:
        old.topic.refuse_change(new.topic)


def _keep_annotations(current: Annotated, spec: Annotated) -> Annotated:
    return replace(spec, annotations=spec.annotations or current.annotations)


def _keep_partitions(current: QueueSpec, spec: QueueSpec) -> QueueSpec:
    merged = _keep_annotations(current, spec)
    return replace(merged, partitions=spec.partitions or current.partitions)


STREAM_RULES: DefinitionRules[StreamName, StreamSpec, Stream] = DefinitionRules(
    create=_new_stream,
    not_found=stream_not_found,
    check_change=_refuse_stream_change,
    merge=_keep_annotations,
)
