"""Time series in the hot store: typed wrappers of their scripts.

Memory of a resource: while nothing changes, its last sample (about 200 bytes with its name). A resource that is
always busy has a row of 20 to 40 bytes for each slot of each ring, some 100 KB in two weeks; the chunks of one that
becomes quiet expire by themselves.
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
from storage.redis.transport.script_status import LogNotReady, ScriptStatus, checked

_encoder = msgspec.msgpack.Encoder()


class LatestSample(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Last sample of one resource, and when it last changed.

    `rates` are empty when all are zero; `behind` is what the next sample is compared with.
    """

    resource_id: str
    changed_ms: int
    values: Values
    rates: tuple[float | None, ...] = ()
    behind: tuple[tuple[int, ...], ...] = ()

    def rates_of(self, shape: Shape[Any]) -> tuple[float | None, ...]:
        """Return the rates of all counts of its shape."""
        return self.rates or shape.still


_decoder = msgspec.msgpack.Decoder(LatestSample)


class Claimed(NamedTuple):
    """Result of claiming a slot.

    `mine`: this call claimed it. `after_me`: the same owner claimed the previous one, `previous_slot`; `done` is the last slot
    that was finished. -1 for none.
    """

    mine: bool
    after_me: bool
    previous_slot: int
    done: int


class HotShard(NamedTuple):
    """A shard's log: its extent, the bytes it ever accepted, and arrival times.

    `waits_since_ms` has the arrival of the first record from each requested position on, None where there is none yet.
    """

    start: int
    next: int
    bytes_in: int
    bytes_held: int
    log_epoch: int
    waits_since_ms: tuple[int | None, ...]


class HotSeries:
    """Operations of sampling and of reading samples.

    Every method raises StorageUnavailable or OutcomeUnknown.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    # Measure

    async def claim(self, slot: int, owner: str) -> Claimed:
        """Claim a slot, unless it is claimed."""
        mine, before, claimed, done = await self._pipeline.write(
            "claim_sample_slot", [tick_key()], slot, owner, limits.SERIES_CLOCK_SLOTS
        )
        return Claimed(bool(mine), before.decode() == owner, int(claimed), int(done))

    async def finish(self, slot: int, owner: str) -> bool:
        """Mark the slot as measured; False when another process is further already."""
        return bool(await self._pipeline.write("finish_sample_slot", [tick_key()], slot, owner))

    async def sample_queue(
        self, namespace: str, log_id: LogId, now: ScriptTime
    ) -> Sequence[int] | None:
        """Return the counts of a queue as `sample_queue` reports them.

        Empty for a queue that never had a message; None when it is deleted.
        """
        try:
            reply = await self._pipeline.read("sample_queue", queue_keys(namespace, log_id), now)
            return list(checked(reply)[1:])
        except LogNotReady as refused:
            return None if refused.refusal is ScriptStatus.DELETED else ()

    async def sample_shard(self, log: LogAddress, positions: Sequence[int]) -> HotShard | None:
        """Return the sample of a shard; None for one that was never written, or is deleted."""
        keys = log_keys(log.namespace, log.log_id)[:2]
        try:
            reply = checked(await self._pipeline.read("sample_log", keys, *positions))
        except LogNotReady:
            return None
        start, next_offset, bytes_in, bytes_held, epoch, *waits = reply[1:]
        since = tuple(None if one < 0 else one for one in waits)
        return HotShard(start, next_offset, bytes_in, bytes_held, epoch, since)

    async def add(self, namespace: str, resource_id: str, added: Sequence[Addition]) -> bool:
        """Append samples; False when a chunk did not exist that should have."""
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
        """Store these as the last samples, and delete those of the names that no longer exist."""
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
        """Delete the samples of a resource that no longer exists."""
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
        """Return the last samples of all resources of a kind, by name."""
        reply: Any = await self._pipeline.read("get_latest_samples", [latest_key(namespace, kind)])
        names, samples = reply[::2], reply[1::2]
        return {
            name.decode(): _decoder.decode(packed)
            for name, packed in zip(names, samples, strict=True)
        }

    async def latest_of(
        self, namespace: str, kind: str, names: Sequence[str]
    ) -> list[LatestSample | None]:
        """Return the last samples of the named resources."""
        reply = await self._pipeline.read(
            "get_latest_samples", [latest_key(namespace, kind)], *names
        )
        return [None if packed is None else _decoder.decode(packed) for packed in reply]

    async def chunks(
        self, namespace: str, resource_id: str, ring: Ring, numbers: range
    ) -> dict[int, bytes]:
        """Return those of the chunks that exist."""
        keys = [chunk_key(namespace, resource_id, ring.nth, number) for number in numbers]
        reply = await self._pipeline.read("read_series", keys)
        return {
            number: packed
            for number, packed in zip(numbers, reply, strict=True)
            if packed is not None
        }
