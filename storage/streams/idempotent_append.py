"""The rising append: what is sent again and again, by whoever, is added once.

A rising producer (`storage.domain.streams.idempotence`) is not a process but a thing to be sent: a replay's shard, a batch of
a sink. Whoever sends it, an attempt, keeps three promises:

    same      at a sequence there is always the same record with the same place on the ring
    whole     a batch is all of the producer's records with sequences in some (a, b]
    in turn   a batch leaves when every record up to `a` is known to be added: by an answer to this attempt, or
              by the position at which it began

Attempts may begin at any such position, cut batches elsewhere, lose answers, send twice, and live on
unnoticed beside their successors. Shards may be split and merged at any time. Each record is added once, and
those of one hash key in the order of their sequences.

Why. A place on the ring was taken by a line of logs, each the closed parent of the next. For a log L and a place
h let floor(h) be the highest sequence that an ancestor of L in the line of h took of the producer, and last(L)
the highest that L itself took. At all times, for a record with sequence s and place h:

    (1)  an ancestor has it  if and only if  s <= floor(h)
    (2)  L has it            if and only if  floor(h) < s <= last(L)

A part for L is checked and added by one script, so it happens whole or not at all. It holds *all* records of the
batch (a, b] in L's range that lie above floor(h), and is taken only if its first sequence lies above last(L).
Then s <= a was added before ("in turn"); a < s <= last(L) too, by (2), since otherwise the part, which is whole,
would have begun there and been refused; the rest is now in L. So (2) holds with the new last(L), whoever sent the
part and however late it came. A part that ends at or below last(L) is a duplicate by (2), and one that straddles it
is told last(L) and sends what lies above, which is whole again. (1) is (2) of the ancestors, whose logs are closed,
so that floor(h) never changes again: it is asked once. Three things follow that the code below sees to:

* All ancestors are asked, not the nearest that knows the producer. A log that came from a merge may have taken up to
  5 of a producer when one of its parents, for its half of the ring, had taken up to 9.
* While a batch's records on one log failed, or their fate is not known, none of the batch goes to a child of that
  log by another way: that part would not be whole. Parts that are refused since their log is closed wait until every
  log that might lead to the same child has answered (`eldest`); any other error ends the call.
* A log that knows a producer does not expire, and forgets it only by `forget`, which leaves a mark: a part of an
  attempt that outlived its producer would otherwise be new.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

import msgspec

from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import ProducerFenced, StorageUnavailable, StreamNotFound
from storage.domain.log.record_batch import Record
from storage.domain.names import LogId, StreamName
from storage.domain.streams.idempotence import (
    IS_OVER,
    NOT_KNOWN,
    AncestorWatermark,
    AppendCounts,
    PartialDuplicate,
    SequencedBatch,
    floor_at,
    lasts_of,
)
from storage.domain.streams.lineage import ShardClosedTo, eldest, is_behind
from storage.domain.streams.stream import Shard, Stream, by_shard, hash_key
from storage.log.provisioner import LogDeleted
from storage.log.stream_executor import StreamExecutor
from storage.redis.keys import LogAddress
from storage.redis.streams.append import AppendPart
from storage.redis.streams.idempotence import HotRising, Recalled
from storage.redis.transport.script_status import LogNotReady
from storage.streams.append import Appender
from storage.streams.append_rules import OWN_HEADERS, check_records, timed
from storage.streams.reshard import Resharder

T = TypeVar("T")


class _Batch(msgspec.Struct):
    """One call: whose each record is, and where it goes."""

    rise: SequencedBatch
    records: Sequence[Record]
    sizes: Sequence[int]
    places: Sequence[int]

    def part(self, numbers: Sequence[int]) -> AppendPart:
        """These records, as one part."""
        return AppendPart(
            [self.records[number] for number in numbers],
            size_bytes=sum([self.sizes[number] for number in numbers]),
            claims=self.rise.claims(numbers),
        )

    def producers(self) -> list[str]:
        """Those that have records in it."""
        return [*dict.fromkeys(self.rise.producer_ids)]


class _Answer(msgspec.Struct):
    """What a shard made of its part: so many are new; `left`, which it did not take, go to its children."""

    added: int
    left: Sequence[int] = ()
    children: Sequence[Shard] = ()


class IdempotentAppender:
    """The verbs of `storage.streams.engine.Streams` for producers that rise."""

    def __init__(
        self,
        hot: HotRising,
        appending: Appender,
        on_stream: StreamExecutor,
        resharder: Resharder,
        clock: Clock,
    ) -> None:
        self._hot = hot
        self._appending = appending
        self._on_stream = on_stream
        self._resharder = resharder
        self._clock = clock
        self._floors: dict[tuple[LogId, str], tuple[AncestorWatermark, ...]] = {}

    async def append(
        self,
        name: StreamName,
        rise: SequencedBatch,
        records: Sequence[Record],
        own: frozenset[str] = OWN_HEADERS,
    ) -> AppendCounts:
        """As `Streams.append_rising`."""
        rise.check(len(records))
        stream = await self._appending.stream(name)
        sizes = check_records(stream, records, own)
        records = timed(stream.spec, records, self._clock.now_ms)
        batch = _Batch(rise, records, sizes, _places(rise, records))
        added = await self._on_stream.do(stream, partial(self._append, batch))
        return AppendCounts(added, len(records) - added)

    async def _append(self, batch: _Batch, stream: Stream) -> int:
        groups: dict[Shard, list[int]] = by_shard(stream.open_shards, batch.places)
        added = 0
        while groups:
            ready = eldest(groups)
            answers = await _all_of(
                self._to_shard(stream, shard, batch, numbers) for shard, numbers in ready.items()
            )
            groups = {shard: some for shard, some in groups.items() if shard not in ready}
            added += sum(answer.added for answer in answers)
            for answer in answers:
                _add(groups, answer, batch.places)
            stream = await self._knowing(stream, groups)
        return added

    async def _knowing(self, stream: Stream, shards: Iterable[Shard]) -> Stream:
        """The stream with a definition that has these shards, and so their ancestors."""
        wanted = {shard.index: 0 for shard in shards}
        if not is_behind(stream, wanted):
            return stream
        fresh = await self._on_stream.fresh(stream.name)
        if fresh.stream_id != stream.stream_id or is_behind(fresh, wanted):
            raise StorageUnavailable("The stream's shards are being changed; try again.")
        return fresh

    async def _to_shard(
        self, stream: Stream, shard: Shard, batch: _Batch, numbers: Sequence[int]
    ) -> _Answer:
        """Add what the shard and its ancestors have not taken yet."""
        floors = await self._floors_of(stream, shard, batch.producers())
        left = [number for number in numbers if _is_above(floors, batch, number)]
        while left:
            part = batch.part(left)
            try:
                done = await self._appending.put(stream, shard, part)
            except ShardClosedTo as closed:
                return _Answer(0, left, closed.children)
            except PartialDuplicate as told:
                left = batch.rise.above(left, lasts_of(part.claims, told.lasts))
            else:
                return _Answer(0 if done.duplicate else len(left))
        return _Answer(0)

    # What closed ancestors took

    async def _floors_of(
        self, stream: Stream, shard: Shard, producer_ids: Sequence[str]
    ) -> Mapping[str, tuple[AncestorWatermark, ...]]:
        """What the shard's ancestors took of the producers; it is final, and so asked once."""
        if not stream.parents_of(shard):
            return {}
        keys = {one: (shard.log_id, one) for one in producer_ids}
        held = {one: self._floors[key] for one, key in keys.items() if key in self._floors}
        unasked = [one for one in producer_ids if one not in held]
        if unasked:
            asked = await self._ask(stream, _ancestors(stream, shard), unasked)
            if len(self._floors) + len(asked) > limits.RISING_FLOORS_KNOWN_MAX:
                self._floors.clear()
            self._floors |= {keys[one]: floors for one, floors in asked.items()}
            held |= asked
        return held

    async def _ask(
        self, stream: Stream, ancestors: Sequence[Shard], producer_ids: Sequence[str]
    ) -> dict[str, tuple[AncestorWatermark, ...]]:
        told = await _all_of(self._recalled(stream, one, producer_ids) for one in ancestors)
        floors: dict[str, list[AncestorWatermark]] = {one: [] for one in producer_ids}
        for ancestor, recalled in zip(ancestors, told, strict=True):
            for producer_id, last in zip(producer_ids, recalled.lasts, strict=True):
                if last == IS_OVER:
                    raise ProducerFenced("This producer is over: what it had to send was sent.")
                if last != NOT_KNOWN:
                    span = ancestor.first_hash_key, ancestor.last_hash_key
                    floors[producer_id].append(AncestorWatermark(*span, last))
        return {producer_id: tuple(some) for producer_id, some in floors.items()}

    async def _recalled(
        self, stream: Stream, shard: Shard, producer_ids: Sequence[str]
    ) -> Recalled:
        """What a closed shard took. One that is still to be closed, or that its store forgot to be, is closed."""
        at = LogAddress(stream.name.namespace, shard.log_id)
        recall = partial(self._hot.recall, at, producer_ids)
        recalled = await self._on_stream.mended(at, recall)
        if not recalled.closed:
            await self._resharder.close_soon(stream, shard)
            recalled = await self._on_stream.mended(at, recall)
        if not recalled.closed:
            raise StorageUnavailable("The stream's shards are being changed; try again.")
        return recalled

    # Letting go

    async def forget(self, name: StreamName, producer_ids: Sequence[str]) -> None:
        """As `Streams.forget_rising`."""
        try:
            stream = await self._on_stream.fresh(name)
        except StreamNotFound:
            return
        await _all_of(
            self._forget(stream, shard, producer_ids) for shard in (*stream.shards, *stream.opening)
        )

    async def _forget(self, stream: Stream, shard: Shard, producer_ids: Sequence[str]) -> None:
        at = LogAddress(stream.name.namespace, shard.log_id)
        forget = partial(self._hot.forget, at, producer_ids, self._clock.script_time())
        try:
            await self._on_stream.mended(at, forget)
        except (LogDeleted, LogNotReady):
            return  # it was deleted, or expired, with all it knew

    async def known(self, at: LogAddress) -> tuple[bool, bool]:
        """Whether a log knows such producers, and whether it remembers some that are over."""
        recalled = await self._hot.recall(at, ())
        return recalled.producers > 0, recalled.remembers_over


async def _all_of(work: Iterable[Awaitable[T]]) -> list[T]:
    """The results, when all have ended; then, if one failed, its error: nothing goes on behind it."""
    done = await asyncio.gather(*work, return_exceptions=True)
    for one in done:
        if isinstance(one, BaseException):
            raise one
    return [one for one in done if not isinstance(one, BaseException)]


def _places(rise: SequencedBatch, records: Sequence[Record]) -> list[int]:
    return [
        _place_of(record, producer_id, sequence)
        for record, producer_id, sequence in zip(
            records, rise.producer_ids, rise.sequences, strict=True
        )
    ]


def _place_of(record: Record, producer_id: str, sequence: int) -> int:
    """A record without a key has a place of its own, the same whenever it is sent."""
    if record.hash_key is not None:
        return record.hash_key
    if record.key:
        return hash_key(record.key)
    word = f"{producer_id}\0{sequence}".encode()
    return int.from_bytes(hashlib.md5(word, usedforsecurity=False).digest(), "big")


def _is_above(
    floors: Mapping[str, tuple[AncestorWatermark, ...]], batch: _Batch, number: int
) -> bool:
    if not floors:
        return True
    known = floors[batch.rise.producer_ids[number]]
    return batch.rise.sequences[number] > floor_at(known, batch.places[number])


def _ancestors(stream: Stream, shard: Shard) -> list[Shard]:
    """The shards that took some of its hash keys before it and have not expired."""
    found: dict[int, Shard] = {}
    line = stream.parents_of(shard)
    while line:
        found |= {one.index: one for one in line}
        above = [parent for one in line for parent in stream.parents_of(one)]
        line = tuple({one.index: one for one in above if one.index not in found}.values())
    return [*found.values()]


def _add(groups: dict[Shard, list[int]], answer: _Answer, places: Sequence[int]) -> None:
    """Send what a closed shard left to its children, in order among what they are to take anyhow."""
    for number in answer.left:
        child = next(child for child in answer.children if child.takes(places[number]))
        groups.setdefault(child, []).append(number)
    for numbers in groups.values():
        numbers.sort()
