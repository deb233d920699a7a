"""Time series in the hot store: typed wrappers of their scripts.

Memory of a resource: while nothing changes, its last sample (about 200 bytes with its name). A resource that is
always busy has a row of 40 to 60 bytes for each slot of both rings, some 100 KB in two weeks; the chunks of one that
becomes quiet expire by themselves.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from storage.domain import limits
from storage.domain.clock import ScriptTime
from storage.domain.log.address import LogAddress
from storage.domain.names import LogId
from storage.domain.timeseries.rollup import Addition
from storage.domain.timeseries.samples import RINGS, TOTAL, Ring
from storage.hot_store.errors import LogNotReady, LogProblem
from storage.hot_store.time_series import (
    Claim,
    HotShard,
    LatestSample,
    LatestUpdate,
    QueueCounts,
    TimeSeriesStore,
)
from storage.redis.keys import (
    chunk_key,
    consumer_keys,
    latest_key,
    queue_keys,
    reader_keys,
    tick_key,
)
from storage.redis.script_store import ScriptStore
from storage.redis.transport.script_status import checked

_encoder = msgspec.msgpack.Encoder()


_decoder = msgspec.msgpack.Decoder(LatestSample)


class RedisTimeSeriesStore(ScriptStore, TimeSeriesStore):
    """Samples in one hash per kind, and in chunks that expire by themselves."""

    # Measure

    async def claim(self, slot: int, owner: str) -> Claim:
        reply = await self._pipeline.write(
            "claim_sample_slot", [tick_key()], slot, owner, limits.SERIES_CLOCK_SLOTS
        )
        return Claim(reply)

    async def sample_queue(
        self, namespace: str, log_id: LogId, now: ScriptTime
    ) -> QueueCounts | None:
        try:
            keys = (*queue_keys(namespace, log_id), *consumer_keys(namespace, log_id))
            reply = await self._pipeline.read("sample_queue", keys, now, limits.CONSUMER_WINDOW_MS)
            *counts, times = checked(reply)[1:]
        except LogNotReady as refused:
            return None if refused.problem is LogProblem.DELETED else QueueCounts()
        return QueueCounts(
            counts, dict(zip(map(int, times[::2]), map(int, times[1::2]), strict=True))
        )

    async def sample_shard(self, log: LogAddress, positions: Sequence[int]) -> HotShard | None:
        keys = reader_keys(log.namespace, log.log_id)
        try:
            reply = checked(await self._pipeline.read("sample_log", keys, *positions))
        except LogNotReady:
            return None
        start, next_offset, bytes_in, bytes_held, epoch, *waits = reply[1:]
        since = tuple(None if one < 0 else one for one in waits)
        return HotShard(start, next_offset, bytes_in, bytes_held, epoch, since)

    async def add(self, namespace: str, resource_id: str, addition: Addition) -> None:
        ring = addition.ring
        chunk = chunk_key(namespace, resource_id, ring.name, ring.chunk(addition.slot))
        life_s = ring.life_ms // limits.SECOND_MS
        await self._pipeline.write("append_series", [chunk], life_s, addition.begin, addition.entry)

    async def store_latest(
        self, owner: str, namespace: str, kind: str, update: LatestUpdate
    ) -> bool:
        samples, deleted, totals = update
        keys = [tick_key(), latest_key(namespace, kind), latest_key("", TOTAL.kind)]
        names = (len(deleted), *deleted, 2 * len(totals), *_pairs(totals), *_pairs(samples))
        return bool(await self._pipeline.write("put_latest_sample", keys, owner, *names))

    async def drop(self, namespace: str, resource_id: str, now_ms: int) -> None:
        keys = [
            chunk_key(namespace, resource_id, ring.name, chunk)
            for ring in RINGS
            for chunk in range(
                ring.chunk(ring.slot(now_ms - ring.life_ms)), ring.chunk(ring.slot(now_ms)) + 1
            )
        ]
        await self._pipeline.write("delete_series", keys)

    # Read

    async def latest(self, namespace: str, kind: str) -> dict[str, LatestSample]:
        reply: Any = await self._pipeline.read("get_latest_samples", [latest_key(namespace, kind)])
        names, samples = reply[::2], reply[1::2]
        return {
            name.decode(): _decoder.decode(packed)
            for name, packed in zip(names, samples, strict=True)
        }

    async def latest_of(
        self, namespace: str, kind: str, names: Sequence[str]
    ) -> list[LatestSample | None]:
        reply = await self._pipeline.read(
            "get_latest_samples", [latest_key(namespace, kind)], *names
        )
        return [None if packed is None else _decoder.decode(packed) for packed in reply]

    async def chunks(
        self, namespace: str, resource_id: str, ring: Ring, numbers: range
    ) -> dict[int, bytes]:
        keys = [chunk_key(namespace, resource_id, ring.name, number) for number in numbers]
        reply = await self._pipeline.read("read_series", keys)
        return {
            number: packed
            for number, packed in zip(numbers, reply, strict=True)
            if packed is not None
        }


def _pairs(samples: Mapping[str, LatestSample]) -> Iterator[str | bytes]:
    for name, sample in samples.items():
        yield from (name, _encoder.encode(sample))
