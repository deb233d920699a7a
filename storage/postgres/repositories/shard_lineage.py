"""Row changes of a reshard's steps and of the expiry of shards.

Each runs under the stream's name lock (`StreamRows.lock`), in one transaction with its announcement:

    open_children    rows of shards and logs for the children; their parents are still open
    close_parents    the parents are closed, and so the children belong to the stream
    aim_for          the number of open shards that a longer reshard is to reach, or None
    expire           closed shards leave the stream; their logs cannot be opened any longer
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete, insert, update
from sqlmodel import col

from storage.domain.streams.stream import Shard, Stream
from storage.postgres.repositories.definitions import LockedLogs, shard_values
from storage.postgres.tables import LogRow, ShardRow, StreamRow


async def open_children(
    locked: LockedLogs[Stream], stream: Stream, children: Sequence[Shard]
) -> None:
    """Add the children of shards that are open."""
    await locked.session.execute(insert(ShardRow), shard_values(stream, children))
    await locked.session.execute(
        insert(LogRow),
        [{"log_id": child.log_id, "namespace": stream.name.namespace} for child in children],
    )
    await locked.announce()


async def close_parents(locked: LockedLogs[Stream], stream: Stream, now_ms: int) -> None:
    """Close the parents of the opening shards: the stream's next version."""
    parents = {index for child in stream.opening for index in child.parents}
    await _change_shards(locked, stream, parents, closed_at_ms=now_ms)
    await _change_stream(locked, stream, version=stream.version + 1, changed_at_ms=now_ms)


async def aim_for(locked: LockedLogs[Stream], stream: Stream, count: int | None) -> None:
    """Set or clear the target of the reshard."""
    await _change_stream(locked, stream, shards_target=count)


async def expire(
    locked: LockedLogs[Stream], stream: Stream, indexes: set[int], now_ms: int
) -> None:
    """Remove closed shards from the stream."""
    logs = [shard.log_id for shard in stream.shards if shard.index in indexes]
    await locked.session.execute(delete(LogRow).where(col(LogRow.log_id).in_(logs)))
    await _change_shards(locked, stream, indexes, expired_at_ms=now_ms)
    await locked.announce()


async def _change_shards(
    locked: LockedLogs[Stream], stream: Stream, indexes: set[int], **values: Any
) -> None:
    await locked.session.execute(
        update(ShardRow)
        .where(col(ShardRow.stream_id) == stream.stream_id, col(ShardRow.index).in_(indexes))
        .values(**values)
    )


async def _change_stream(locked: LockedLogs[Stream], stream: Stream, **values: Any) -> None:
    await locked.session.execute(
        update(StreamRow).where(col(StreamRow.stream_id) == stream.stream_id).values(**values)
    )
    await locked.announce()
