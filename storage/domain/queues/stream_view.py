"""Stream view of a queue: its messages as records of a stream of its name."""

from storage.domain.names import StreamName
from storage.domain.queues.queue import Queue
from storage.domain.streams.stream import Shard, Stream, StreamSpec, even_ranges


def view_of(queue: Queue) -> Stream:
    """Return a queue as a stream: each of its partitions is a shard."""
    shards = tuple(
        Shard(log.partition, log.log_id, *bounds, log.created_at_ms)
        for log, bounds in zip(queue.logs, even_ranges(len(queue.logs)), strict=True)
    )
    return Stream(
        name=StreamName(queue.name.name, queue.name.namespace),
        stream_id=queue.log_id,
        spec=StreamSpec(
            shards=len(shards),
            retention_ms=queue.spec.retention_ms,
            archive=queue.spec.archive,
            hot_bytes_max=None,
            tags=queue.spec.tags,
        ),
        shards=shards,
        version=queue.version,
        created_at_ms=queue.created_at_ms,
        changed_at_ms=queue.changed_at_ms,
        is_view=True,
    )
