"""Repository of the positions of routers in the shards of topics, and of their counts."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Update, update
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col

from storage.domain.errors import StorageUnavailable
from storage.domain.names import LogId
from storage.domain.topics.routing import RouteCounts, TopicPositions
from storage.postgres.queries import query
from storage.postgres.repository import Repository
from storage.postgres.tables import RouteLagRow, StreamRow


class TopicPositionRows(Repository):
    """Positions of all topics' routers. Every method raises StorageUnavailable or StorageBusy."""

    async def read(self, stream_id: LogId) -> TopicPositions:
        """Return the positions of a topic's router, and of the buffers behind it."""
        return (await self.read_all([stream_id]))[stream_id]

    async def read_all(self, stream_ids: Sequence[LogId]) -> dict[LogId, TopicPositions]:
        """Return the positions of several topics."""
        positions: dict[LogId, dict[int, int]] = {one: {} for one in stream_ids}
        lags: dict[LogId, dict[str, dict[int, int]]] = {one: {} for one in stream_ids}
        expired: dict[LogId, int] = {}
        parameters = {"stream_ids": list(stream_ids)}
        async with self._database.reading() as session:
            for row in await session.execute(query("topic_positions"), parameters):
                if row.shard is None:
                    expired[row.stream_id] = row.position
                elif row.buffer is None:
                    positions[row.stream_id][row.shard] = row.position
                else:
                    lags[row.stream_id].setdefault(row.buffer, {})[row.shard] = row.position
        return {
            one: TopicPositions(positions[one], lags[one], expired.get(one, 0))
            for one in stream_ids
        }

    async def reports(self, stream_id: LogId) -> frozenset[int]:
        """Return the reports that stored the positions of a topic: one, or none."""
        async with self._database.reading() as session:
            rows = await session.execute(query("topic_reports"), {"stream_id": stream_id})
            return frozenset(row.report for row in rows)

    async def save(
        self,
        stream_id: LogId,
        positions: TopicPositions,
        counts: Mapping[int, RouteCounts],
        *,
        fence: int,
        report: int,
        expected: Collection[int],
    ) -> bool:
        """Store all positions as `report`, and add the counts of routes by number.

        Stores nothing, and returns False, if the present positions are not of an `expected` report, or of a later router: a
        transaction whose answer was lost may end after another one has begun.
        """
        shards = list(positions.shards)
        values = {
            "stream_id": stream_id,
            "shards": shards,
            "positions": list(positions.shards.values()),
            "fence": fence,
            "report": report,
            "expected": list(expected),
        }
        async with self._database.writing(unknown=StorageUnavailable) as session:
            await session.execute(query("hold_name"), {"name": f"positions of {stream_id}"})
            saved = await session.execute(query("save_topic_positions"), values)
            if len(saved.all()) != len(shards):
                await session.rollback()
                return False
            former = {"stream_id": stream_id, "shards": shards}
            await session.execute(query("delete_former_topic_positions"), former)
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


def _lag_values(
    stream_id: LogId, lags: Mapping[str, Mapping[int, int]]
) -> Sequence[dict[str, Any]]:
    return [
        {"stream_id": stream_id, "buffer": buffer, "shard": shard, "position": position}
        for buffer, positions in lags.items()
        for shard, position in positions.items()
    ]
