"""The shards of a stream on the ring, and how they came to be; splitting and merging them."""

from typing import NamedTuple

from fastapi import APIRouter, Depends, Response

from api.admin.error_pages import PageRoute
from api.admin.hash_ring_chart import SIZE, hash_ring_arcs, neighbours
from api.admin.pages._shared import stream_page
from api.admin.rendering import Context
from api.native.dependencies import StreamPath, may
from storage.domain.access.permissions import Action
from storage.domain.streams.stream import RING_SIZE, Shard, ShardState

router = APIRouter(include_in_schema=False, route_class=PageRoute, prefix="/ui/streams/{stream}")

SEE = Depends(may(Action.STREAM_LIST))


class ShardListRow(NamedTuple):
    """A shard as the table shows it. `share`: of the ring."""

    state: ShardState
    share: float
    children: tuple[Shard, ...]

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
    rows = [
        ShardListRow(state, _share(state.shard), stored.children_of(state.shard.index))
        for state in states
    ]
    return stream_page(
        context,
        "shards",
        stored,
        live=True,
        rows=rows,
        arcs=hash_ring_arcs(stored.shards),
        size=SIZE,
        splittable=[row for row in rows if row.state.shard.is_open],
        mergeable=neighbours(stored.shards),
    )


def _share(shard: Shard) -> float:
    return (shard.last_hash_key + 1 - shard.first_hash_key) / RING_SIZE
