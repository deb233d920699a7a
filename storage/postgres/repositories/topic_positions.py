"""Repository of the positions of routers in the shards of topics, and of their counts."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Update, delete, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col

from storage.domain.errors import StorageUnavailable
from storage.domain.names import LogId
from storage.domain.topics.routing import RouteCounts, TopicPositions
from storage.postgres.queries import query
from storage.postgres.repository import Repository
from storage.postgres.rows import rows_of
from storage.postgres.tables import RouteLagRow, StreamRow, TopicShardRow


class TopicPositionRows(Repository):
    """Positions of all topics' routers. Every method raises StorageUnavailable or StorageBusy."""

    async def read(self, stream_id: LogId) -> TopicPositions:
        """Return the positions of a topic's router, and of the buffers behind it."""
        return (await self.read_all([stream_id]))[stream_id]

    async def read_all(self, stream_ids: Sequence[LogId]) -> dict[LogId, TopicPositions]:
        """Return the positions of several topics."""
        of_topics = col(TopicShardRow.stream_id).in_(stream_ids)
        shards = rows_of(TopicShardRow).where(of_topics).order_by(col(TopicShardRow.shard))
        lag_key = (col(RouteLagRow.buffer), col(RouteLagRow.shard))
        of_buffers = col(RouteLagRow.stream_id).in_(stream_ids)
        behind = rows_of(RouteLagRow).where(of_buffers).order_by(*lag_key)
        stream_id = col(StreamRow.stream_id)
        expired = select(stream_id, col(StreamRow.expired_unrouted)).where(
            stream_id.in_(stream_ids)
        )
        positions: dict[LogId, dict[int, int]] = {one: {} for one in stream_ids}
        lags: dict[LogId, dict[str, dict[int, int]]] = {one: {} for one in stream_ids}
        async with self._database.reading() as session:
            for row in await session.execute(shards):
                positions[row.stream_id][row.shard] = row.position
            for row in await session.execute(behind):
                lags[row.stream_id].setdefault(row.buffer, {})[row.shard] = row.position
            expired_of = {row[0]: row[1] for row in await session.execute(expired)}
        return {
            one: TopicPositions(positions[one], lags[one], expired_of.get(one, 0))
            for one in stream_ids
        }

    async def save(
        self,
        stream_id: LogId,
        positions: TopicPositions,
        counts: Mapping[int, RouteCounts],
        fence: int,
    ) -> bool:
        """Store all positions, and add the counts of routes by number.

        Stores nothing, and returns False, if a later router has stored any.
        """
        of_topic = col(TopicShardRow.stream_id) == stream_id
        gone = col(TopicShardRow.shard).not_in(list(positions.shards))
        lags = delete(RouteLagRow).where(col(RouteLagRow.stream_id) == stream_id)
        async with self._database.writing(unknown=StorageUnavailable) as session:
            if not await _save_shards(session, stream_id, positions.shards, fence):
                await session.rollback()
                return False
            await session.execute(delete(TopicShardRow).where(of_topic, gone))
            await session.execute(lags)
            if rows := _lag_values(stream_id, positions.lags):
                await session.execute(insert(RouteLagRow), rows)
            if counts:
                await session.execute(query("add_route_counts"), _count_values(stream_id, counts))
            if positions.expired:
                await session.execute(_save_expired(stream_id, positions.expired))
            return True


def _of_topic(stream_id: LogId) -> ColumnElement[bool]:
    return col(StreamRow.stream_id) == stream_id


def _save_expired(stream_id: LogId, expired: int) -> Update:
    is_new = col(StreamRow.expired_unrouted) != expired
    return update(StreamRow).where(_of_topic(stream_id), is_new).values(expired_unrouted=expired)


def _count_values(stream_id: LogId, counts: Mapping[int, RouteCounts]) -> dict[str, Any]:
    return {
        "stream_id": stream_id,
        "numbers": list(counts),
        "delivered": [one.delivered for one in counts.values()],
        "dropped": [one.dropped for one in counts.values()],
        "dead_lettered": [one.dead_lettered for one in counts.values()],
        "shadowed": [one.shadowed for one in counts.values()],
        "failures": [one.failure for one in counts.values()],
    }


async def _save_shards(
    session: Any, stream_id: LogId, positions: Mapping[int, int], fence: int
) -> bool:
    values = [
        {"stream_id": stream_id, "shard": shard, "position": position, "fence": fence}
        for shard, position in positions.items()
    ]
    statement = insert(TopicShardRow).values(values)
    changed = {"position": statement.excluded.position, "fence": statement.excluded.fence}
    saved = await session.execute(
        statement.on_conflict_do_update(
            index_elements=["stream_id", "shard"],
            set_=changed,
            where=col(TopicShardRow.fence) <= statement.excluded.fence,
        ).returning(col(TopicShardRow.shard))
    )
    return len(saved.all()) == len(values)


def _lag_values(
    stream_id: LogId, lags: Mapping[str, Mapping[int, int]]
) -> Sequence[dict[str, Any]]:
    return [
        {"stream_id": stream_id, "buffer": buffer, "shard": shard, "position": position}
        for buffer, positions in lags.items()
        for shard, position in positions.items()
    ]
