"""Time series in the hot store: typed wrappers of their scripts.

Memory of a resource: while nothing changes, its last sample (about 200 bytes with its name). A resource that is
always busy has a row of 20 to 40 bytes for each slot of each ring, some 100 KB in two weeks; the chunks of one that
becomes quiet expire by themselves.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from storage.domain import limits
from storage.domain.clock import ScriptTime
from storage.domain.log.address import LogAddress
from storage.domain.names import LogId
from storage.domain.timeseries.changes import Addition
from storage.domain.timeseries.samples import RINGS, Ring
from storage.hot_store.errors import LogNotReady, LogProblem
from storage.hot_store.time_series import Claimed, HotShard, LatestSample, TimeSeriesStore
from storage.redis.keys import chunk_key, latest_key, log_keys, queue_keys, tick_key
from storage.redis.transport.command import Argument
from storage.redis.transport.pipeline import Pipeline
from storage.redis.transport.script_status import checked

_encoder = msgspec.msgpack.Encoder()


_decoder = msgspec.msgpack.Decoder(LatestSample)


class RedisTimeSeriesStore(TimeSeriesStore):
    """Samples in one hash per kind, and in chunks that expire by themselves."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    # Measure

    async def claim(self, slot: int, owner: str) -> Claimed:
        mine, before, claimed, done = await self._pipeline.write(
            "claim_sample_slot", [tick_key()], slot, owner, limits.SERIES_CLOCK_SLOTS
        )
        return Claimed(bool(mine), before.decode() == owner, int(claimed), int(done))

    async def finish(self, slot: int, owner: str) -> bool:
        return bool(await self._pipeline.write("finish_sample_slot", [tick_key()], slot, owner))

    async def sample_queue(
        self, namespace: str, log_id: LogId, now: ScriptTime
    ) -> Sequence[int] | None:
        try:
            reply = await self._pipeline.read("sample_queue", queue_keys(namespace, log_id), now)
            return list(checked(reply)[1:])
        except LogNotReady as refused:
            return None if refused.problem is LogProblem.DELETED else ()

    async def sample_shard(self, log: LogAddress, positions: Sequence[int]) -> HotShard | None:
        keys = log_keys(log.namespace, log.log_id)[:2]
        try:
            reply = checked(await self._pipeline.read("sample_log", keys, *positions))
        except LogNotReady:
            return None
        start, next_offset, bytes_in, bytes_held, epoch, *waits = reply[1:]
        since = tuple(None if one < 0 else one for one in waits)
        return HotShard(start, next_offset, bytes_in, bytes_held, epoch, since)

    async def add(self, namespace: str, resource_id: str, added: Sequence[Addition]) -> bool:
        keys = [
            chunk_key(namespace, resource_id, addition.ring.nth, addition.chunk)
            for addition in added
        ]
        arguments: list[Argument] = []
        for addition in added:
            arguments += (
                addition.ring.life_ms // limits.SECOND_MS,
                addition.begin,
                addition.samples,
            )
        return not await self._pipeline.write("append_series", keys, *arguments)

    async def keep(
        self, namespace: str, kind: str, samples: Mapping[str, LatestSample], gone: Iterable[str]
    ) -> None:
        changes: list[tuple[str, bytes | None]] = [(name, None) for name in gone]
        changes += [(name, _encoder.encode(sample)) for name, sample in samples.items()]
        for begin in range(0, len(changes), limits.SERIES_NAMES_PER_CALL):
            batch = changes[begin : begin + limits.SERIES_NAMES_PER_CALL]
            lost = [name for name, sample in batch if sample is None]
            pairs = [
                word for name, sample in batch if sample is not None for word in (name, sample)
            ]
            await self._pipeline.write(
                "put_latest_sample", [latest_key(namespace, kind)], len(lost), *lost, *pairs
            )

    async def drop(self, namespace: str, resource_id: str, now_ms: int) -> None:
        keys = [
            chunk_key(namespace, resource_id, ring.nth, chunk)
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
        keys = [chunk_key(namespace, resource_id, ring.nth, number) for number in numbers]
        reply = await self._pipeline.read("read_series", keys)
        return {
            number: packed
            for number, packed in zip(numbers, reply, strict=True)
            if packed is not None
        }
