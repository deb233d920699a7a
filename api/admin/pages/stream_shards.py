"""The shards of a stream on the ring, and how they came to be; splitting and merging them."""

from math import ceil
from typing import NamedTuple

from fastapi import APIRouter, Depends, Response

from api.admin.error_pages import PageRoute
from api.admin.hash_ring_chart import SIZE, hash_ring_arcs, neighbours
from api.admin.pages._shared import stream_page
from api.admin.rendering import Context
from api.native.dependencies import StreamPath, may
from storage.domain.access.permissions import Action
from storage.domain.streams.shard_load import KeyLoad, ShardLoad
from storage.domain.streams.stream import RING_SIZE, Shard, ShardState

router = APIRouter(include_in_schema=False, route_class=PageRoute, prefix="/ui/streams/{stream}")

_HEATS = 5
_HOT_KEYS_MAX = 3
_HOT_SHARE = 0.05
SEE = Depends(may(Action.STREAM_LIST))


class ShardListRow(NamedTuple):
    """A shard as the table shows it. `share`: of the ring; `load_share`: of the stream's load."""

    state: ShardState
    share: float
    children: tuple[Shard, ...]
    load: ShardLoad | None
    load_share: float

    @property
    def hot_keys(self) -> list[KeyLoad]:
        """Keys with a share worth naming."""
        keys = self.load.keys if self.load else ()
        return [key for key in keys if key.share >= _HOT_SHARE][:_HOT_KEYS_MAX]

    @property
    def first(self) -> str:
        """First hash key, in its short form: the first eight hex digits."""
        return f"{self.state.shard.first_hash_key:032x}"[:8]

    @property
    def last(self) -> str:
        """Last hash key, in the same short form."""
        return f"{self.state.shard.last_hash_key:032x}"[:8]


@router.get("/shards", dependencies=[SEE])
async def show_shards(context: Context, stream: StreamPath) -> Response:
    """Show the hash ring."""
    stored = await context.storage.catalog.fresh_stream(stream)
    states = await context.storage.record_reader.shards(stream)
    may_read = context.may(Action.STREAM_READ, stream.name)
    loads = await context.storage.shard_loads.of_stream(stream) if may_read else []
    by_shard = {load.shard: load for load in loads}
    total = sum(load.records_per_second for load in loads)
    rows = [
        ShardListRow(
            state,
            _share(state.shard),
            stored.children_of(state.shard.index),
            load := by_shard.get(state.shard.index),
            load.records_per_second / total if load and total else 0.0,
        )
        for state in states
    ]
    return stream_page(
        context,
        "shards",
        stored,
        live=True,
        rows=rows,
        arcs=hash_ring_arcs(stored.shards),
        heats={row.state.shard.index: _heat(row) for row in rows},
        shares={row.state.shard.index: row.load_share for row in rows},
        shows_load=may_read,
        busiest=max(rows, key=lambda row: row.load_share),
        size=SIZE,
        splittable=[row for row in rows if row.state.shard.is_open],
        mergeable=neighbours(stored.shards),
    )


def _heat(row: ShardListRow) -> int:
    """Return the colour of a shard in the ring: its share of the load in fifths."""
    return ceil(row.load_share * _HEATS)


def _share(shard: Shard) -> float:
    return (shard.last_hash_key + 1 - shard.first_hash_key) / RING_SIZE
