# Generated from aio/following.py by `make sdk`; changes are lost.
"""Reading a stream to its end, or indefinitely."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from millstream_client import records as wire
from millstream_client.gaps import OnGap, gaps_of, warn_of
from millstream_client.records import Record, ShardRead, Start, StreamRead
from millstream_client.sync.transport import Transport

WAIT_S = 20.0


class Following:
    """Continuous reads of a stream."""

    transport: Transport
    name: str

    def read(
        self,
        start: Start = "earliest",
        *,
        shard: int | None = None,
        offset: int | None = None,
        cursor: str = "",
        follow: bool = False,
        limit: int = 1000,
        on_gap: OnGap = warn_of,
    ) -> Iterator[Record]:
        """Yield records from the earliest or latest, from a time or a cursor.

        A read of one shard can also start at an offset. Ends at the current end of the stream. With `follow`, it waits for new
        records instead. Records of one shard are in order; records of all shards are ordered by arrival, and records with the same
        key stay in order. `on_gap` is called for offsets that are no longer available.
        """
        pages = self.pages(
            start, shard=shard, offset=offset, cursor=cursor, follow=follow, limit=limit
        )
        for page in pages:
            for gap in gaps_of(page):
                on_gap(gap)
            for record in page.records:
                yield record

    def pages(
        self,
        start: Start = "earliest",
        *,
        shard: int | None = None,
        offset: int | None = None,
        cursor: str = "",
        follow: bool = False,
        limit: int = 1000,
    ) -> Iterator[StreamRead | ShardRead]:
        """Yield pages, each with the position to continue at, its lag, and its gaps.

        Otherwise like `read`.
        """
        if shard is None:
            for page in self._all_shards(start, cursor, follow, limit):
                yield page
        else:
            for one in self._one_shard(shard, start, offset, follow, limit):
                yield one

    def _all_shards(
        self, start: Start, cursor: str, follow: bool, limit: int
    ) -> Iterator[StreamRead]:
        query = _all_from(start, cursor)
        while True:
            is_placed = query.get("from") != "latest"  # a repeat of this one would begin later
            page = self._read_stream(query, follow and is_placed, limit)
            if page.records or page.gaps:
                yield page
            elif not follow and page.next_cursor == query.get("cursor"):
                return
            query = {"cursor": page.next_cursor}

    def _read_stream(self, query: dict[str, Any], follow: bool, limit: int) -> StreamRead:
        wait = WAIT_S if follow else None
        asked = {**query, "limit": limit, "wait_seconds": wait}
        return self.transport.call(wire.read_stream(self.name, asked))

    def _one_shard(
        self, shard: int, start: Start, offset: int | None, follow: bool, limit: int
    ) -> Iterator[ShardRead]:
        query = {"offset": offset} if offset is not None else self._shard_from(shard, start)
        while True:
            wait = WAIT_S if follow else None
            asked = {**query, "limit": limit, "wait_seconds": wait}
            page = self.transport.call(wire.read_shard(self.name, shard, asked))
            if page.records or page.gap:
                yield page
            if page.ended or not (follow or page.next_offset < page.tip):
                return
            query = {"offset": page.next_offset, "stream_id": page.stream_id}

    def _shard_from(self, shard: int, start: Start) -> dict[str, Any]:
        if isinstance(start, datetime):
            return {"time": start}
        if start == "earliest":
            return {}
        found = self.transport.call(wire.read_shard(self.name, shard, {"tail": 1}))
        return {"offset": found.tip}


def _all_from(start: Start, cursor: str) -> dict[str, Any]:
    if cursor:
        return {"cursor": cursor}
    return {"time": start} if isinstance(start, datetime) else {"from": start}
