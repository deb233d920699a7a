"""Time series in the hot store: the typed side of their scripts.

What a resource costs there: while nothing changes, its last sample (about 200 bytes with its name). Of one that is
always busy a row of 20 to 40 bytes for each slot of each ring, some 100 KB in two weeks; what falls quiet goes by itself.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from storage.domain import limits
from storage.domain.clock import ScriptTime
from storage.domain.names import LogId
from storage.domain.timeseries.changes import Addition
from storage.domain.timeseries.samples import RINGS, Ring, Shape, Values
from storage.redis.keys import LogAddress, chunk_key, latest_key, log_keys, queue_keys, tick_key
from storage.redis.transport.command import Argument
from storage.redis.transport.pipeline import Pipeline
from storage.redis.transport.script_status import LogNotReady, Refusal, checked

_encoder = msgspec.msgpack.Encoder()


class Kept(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What was last measured of one resource, and when it last changed. `rates` are empty when all are nought; `behind` is
    what the next look compares with."""

    resource_id: str
    changed_ms: int
    values: Values
    rates: tuple[float | None, ...] = ()
    behind: tuple[tuple[int, ...], ...] = ()

    def rates_of(self, shape: Shape[Any]) -> tuple[float | None, ...]:
        """The rates, of all the counts of its shape."""
        return self.rates or shape.still


_decoder = msgspec.msgpack.Decoder(Kept)


class Claimed(NamedTuple):
    """`mine`: the slot is taken now. `after_me`: by whom the one before was, which was `taken`; `done` is the last that was
    finished. -1 for none."""

    mine: bool
    after_me: bool
    taken: int
    done: int


class HotShard(NamedTuple):
    """A shard's log: what it holds, the bytes it ever took, and the arrival of the first record from each place that was
    asked about, None where there is none yet."""

    start: int
    next: int
    bytes_in: int
    bytes_held: int
    log_epoch: int
    waits_since_ms: tuple[int | None, ...]


class HotSeries:
    """The operations of measuring, and of reading it. Every method raises StorageUnavailable or OutcomeUnknown."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    # Measure

    async def claim(self, slot: int, owner: str) -> Claimed:
        """Take a slot, unless it is taken."""
        mine, before, taken, done = await self._pipeline.write(
            "claim_sample_slot", [tick_key()], slot, owner, limits.SERIES_CLOCK_SLOTS
        )
        return Claimed(bool(mine), before.decode() == owner, int(taken), int(done))

    async def finish(self, slot: int, owner: str) -> bool:
        """The slot is measured; False when another process is further already."""
        return bool(await self._pipeline.write("finish_sample_slot", [tick_key()], slot, owner))

    async def look_at_queue(
        self, namespace: str, log_id: LogId, now: ScriptTime
    ) -> Sequence[int] | None:
        """The counts of a queue as `sample_queue` gives them, none for one without a message ever; None when it is deleted."""
        try:
            reply = await self._pipeline.read("sample_queue", queue_keys(namespace, log_id), now)
            return list(checked(reply)[1:])
        except LogNotReady as refused:
            return None if refused.refusal is Refusal.DELETED else ()

    async def look_at_shard(self, at: LogAddress, places: Sequence[int]) -> HotShard | None:
        """What a chart shows of a shard; None for one that was never written, or is deleted."""
        keys = log_keys(at.namespace, at.log_id)[:2]
        try:
            reply = checked(await self._pipeline.read("sample_log", keys, *places))
        except LogNotReady:
            return None
        start, next_offset, bytes_in, bytes_held, epoch, *waits = reply[1:]
        since = tuple(None if one < 0 else one for one in waits)
        return HotShard(start, next_offset, bytes_in, bytes_held, epoch, since)

    async def add(self, namespace: str, resource_id: str, added: Sequence[Addition]) -> bool:
        """Add samples; False when a chunk was not there that should have been."""
        keys = [chunk_key(namespace, resource_id, one.ring.nth, one.chunk) for one in added]
        arguments: list[Argument] = []
        for one in added:
            arguments += (one.ring.life_ms // limits.SECOND_MS, one.begin, one.samples)
        return not await self._pipeline.write("append_series", keys, *arguments)

    async def keep(
        self, namespace: str, kind: str, kept: Mapping[str, Kept], gone: Iterable[str]
    ) -> None:
        """Keep these as what was last measured, and of those that are gone nothing."""
        changes: list[tuple[str, bytes | None]] = [(name, None) for name in gone]
        changes += [(name, _encoder.encode(one)) for name, one in kept.items()]
        for begin in range(0, len(changes), limits.SERIES_NAMES_PER_CALL):
            some = changes[begin : begin + limits.SERIES_NAMES_PER_CALL]
            lost = [name for name, one in some if one is None]
            pairs = [word for name, one in some if one is not None for word in (name, one)]
            await self._pipeline.write(
                "put_latest_sample", [latest_key(namespace, kind)], len(lost), *lost, *pairs
            )

    async def drop(self, namespace: str, resource_id: str, now_ms: int) -> None:
        """Forget the samples of a resource that is gone."""
        keys = [
            chunk_key(namespace, resource_id, ring.nth, chunk)
            for ring in RINGS
            for chunk in range(
                ring.chunk(ring.slot(now_ms - ring.life_ms)), ring.chunk(ring.slot(now_ms)) + 1
            )
        ]
        await self._pipeline.write("delete_series", keys)

    # Read

    async def latest(self, namespace: str, kind: str) -> dict[str, Kept]:
        """What was last measured of all resources of a kind, by name."""
        reply: Any = await self._pipeline.read("get_latest_samples", [latest_key(namespace, kind)])
        names, samples = reply[::2], reply[1::2]
        return {
            name.decode(): _decoder.decode(packed)
            for name, packed in zip(names, samples, strict=True)
        }

    async def latest_of(self, namespace: str, kind: str, names: Sequence[str]) -> list[Kept | None]:
        """The same of some."""
        reply = await self._pipeline.read(
            "get_latest_samples", [latest_key(namespace, kind)], *names
        )
        return [None if packed is None else _decoder.decode(packed) for packed in reply]

    async def chunks(
        self, namespace: str, resource_id: str, ring: Ring, numbers: range
    ) -> dict[int, bytes]:
        """Those of the chunks that are there."""
        keys = [chunk_key(namespace, resource_id, ring.nth, number) for number in numbers]
        reply = await self._pipeline.read("read_series", keys)
        return {
            number: packed
            for number, packed in zip(numbers, reply, strict=True)
            if packed is not None
        }
