"""Idempotent append for monotonic writers: retries and overlapping attempts add once.

A monotonic producer (`storage.domain.streams.idempotence`) is not a process but a thing to be sent: a replay's shard, a batch
of a sink. A process that sends it, an attempt, keeps three promises:

    same      at a sequence there is always the same record with the same hash key
    whole     a batch is all of the producer's records with sequences in some (a, b]
    in turn   a batch leaves when every record up to `a` is known to be added: by a response to this attempt, or
              by the position at which it began

Attempts may begin at any such position, cut batches elsewhere, lose responses, send twice, and live on
unnoticed beside their successors. Shards may be split and merged at any time. Each record is added once, and
those of one hash key in the order of their sequences.

Proof. A hash key was taken by a line of logs, each the closed parent of the next. For a log L and a hash key
h let floor(h) be the highest sequence that an ancestor of L in the line of h took of the producer, and last(L)
the highest that L itself took. At all times, for a record with sequence s and hash key h:

    (1)  an ancestor has it  if and only if  s <= floor(h)
    (2)  L has it            if and only if  floor(h) < s <= last(L)

A part for L is checked and added by one script, so it happens whole or not at all. It holds *all* records of the
batch (a, b] in L's range that lie above floor(h), and is accepted only if its first sequence lies above last(L).
Then s <= a was added before ("in turn"); a < s <= last(L) too, by (2), since otherwise the part, which is whole,
would have begun there and been rejected; the rest is now in L. So (2) holds with the new last(L), whichever attempt
sent the part and however late it came. A part that ends at or below last(L) is a duplicate by (2). For one that
straddles it the response has last(L), and the attempt sends what lies above, which is whole again. (1) is (2) of the
ancestors, whose logs are closed, so that floor(h) never changes again and is read once. Three things follow that the
code below ensures:

* All ancestors are asked, not the nearest that knows the producer. A log that came from a merge may have taken up to
  5 of a producer when one of its parents, for its half of the hash-key range, had taken up to 9.
* While a batch's records on one log failed, or their outcome is unknown, none of the batch goes to a child of that
  log by another way: that part would not be whole. Parts that are rejected since their log is closed wait until every
  log that might lead to the same child has answered (`eldest`); any other error ends the call.
* A log that knows a producer does not expire, and forgets it only by `retire`, which leaves a tombstone: a part of an
  attempt that outlived its producer would otherwise be new.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from itertools import repeat
from typing import TypeVar

import attrs
import msgspec

from storage.concurrency.bounded_cache import BoundedCache
from storage.concurrency.tasks import gather_all
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import ProducerFenced, StorageUnavailable, StreamNotFound
from storage.domain.log.address import LogAddress
from storage.domain.log.record_batch import Headers, Record
from storage.domain.names import LogId, StreamName
from storage.domain.streams.columnar_batch import Columns, with_headers
from storage.domain.streams.idempotence import (
    NO_WATERMARK,
    WRITER_RETIRED,
    AncestorWatermark,
    AppendCounts,
    PartialDuplicate,
    SequencedBatch,
    floor_at,
    lasts_of,
)
from storage.domain.streams.lineage import ShardClosedTo, eldest, needs_refresh
from storage.domain.streams.stream import (
    UNCONDITIONAL,
    AppendCondition,
    Shard,
    Stream,
    by_shard,
    hash_key,
)
from storage.domain.topics.topic import PUBLISHED_HEADERS
from storage.hot_store.errors import LogNotReady
from storage.hot_store.log_store import AppendPart, WatermarkStore, WriterWatermarks
from storage.log.provisioner import LogDeleted
from storage.log.stream_executor import StreamExecutor
from storage.streams.append import Appender
from storage.streams.append_rules import (
    OWN_HEADERS,
    check_columns,
    check_records,
    timed,
    timed_columns,
)
from storage.streams.reshard import Resharder

T = TypeVar("T")


class _Batch(msgspec.Struct, dict=True):
    """The records of one call, with the producer and the hash key of each.

    `sizes` are not needed for columns. `compute_hash_keys` is called when more than one shard may take records.
    """

    sequenced: SequencedBatch
    records: Sequence[Record] | Columns
    sizes: Sequence[int]
    compute_hash_keys: Callable[[], Sequence[int]]
    condition: AppendCondition = UNCONDITIONAL

    def __len__(self) -> int:
        return len(self.sequenced.sequences)

    @cached_property
    def hash_keys(self) -> Sequence[int]:
        """Hash key of each record."""
        return self.compute_hash_keys()

    def by_shard(self, stream: Stream) -> dict[Shard, list[int]]:
        """Group the records' numbers by the open shards that accept them."""
        shards = stream.open_shards
        if len(shards) == 1:
            return {shards[0]: [*range(len(self))]}
        return by_shard(shards, self.hash_keys)

    def part(self, numbers: Sequence[int]) -> AppendPart:
        """Return the records with these numbers as one part."""
        claims, records = self.sequenced.claims(numbers), self.records
        if isinstance(records, Columns):
            packed = records.chosen(numbers).packed()
            return AppendPart(packed, self.condition, size_bytes=packed.size_bytes, claims=claims)
        return AppendPart(
            [records[number] for number in numbers],
            self.condition,
            size_bytes=sum([self.sizes[number] for number in numbers]),
            claims=claims,
        )

    def producers(self) -> list[str]:
        """Return the producers that have records among these."""
        return [*dict.fromkeys(self.sequenced.producer_ids)]


class _ShardResult(msgspec.Struct):
    """The result of one shard's part.

    `added` is the number of new records; `left`, which the shard did not take, go to its children.
    """

    added: int
    left: Sequence[int] = ()
    children: Sequence[Shard] = ()


@attrs.define(eq=False, slots=False)
class IdempotentAppender:
    """Verbs of `storage.streams.engine.Streams` for monotonic producers."""

    _watermarks: WatermarkStore
    _appending: Appender
    _executor: StreamExecutor
    _resharder: Resharder
    _clock: Clock
    _floors: BoundedCache[tuple[LogId, str], tuple[AncestorWatermark, ...]] = attrs.field(
        factory=lambda: BoundedCache(limits.ANCESTOR_WATERMARKS_CACHED_MAX), init=False
    )

    async def append(
        self,
        name: StreamName,
        sequenced: SequencedBatch,
        records: Sequence[Record],
        stream_id: LogId | None = None,
        *,
        own: frozenset[str] = OWN_HEADERS,
        fence: str = "",
        publishes: bool = False,
    ) -> AppendCounts:
        sequenced.check(len(records))
        stream = await self._appending.stream(name, stream_id, publishes=publishes)
        own = PUBLISHED_HEADERS if publishes else own
        sizes = check_records(stream, records, own)
        records = timed(stream.spec, records, self._clock.now_ms)
        condition = AppendCondition(fence=fence) if fence else UNCONDITIONAL
        batch = _Batch(
            sequenced, records, sizes, partial(_hash_keys, sequenced, records), condition
        )
        return await self._run(stream, batch, stream_id)

    async def append_columns(
        self,
        name: StreamName,
        sequenced: SequencedBatch,
        columns: Columns,
        *,
        origin: Sequence[Headers],
        hash_keys: Sequence[int | None],
    ) -> AppendCounts:
        sequenced.check(len(columns), limits.IDEMPOTENT_COLUMNS_MAX)
        stream = await self._appending.stream(name)
        check_columns(stream, columns)
        columns = timed_columns(stream.spec, columns, self._clock.now_ms)
        batch = _Batch(
            sequenced,
            with_headers(columns, origin),
            (),
            partial(_hash_keys_of, sequenced, columns.keys, hash_keys),
        )
        return await self._run(stream, batch)

    async def _run(
        self, stream: Stream, batch: _Batch, stream_id: LogId | None = None
    ) -> AppendCounts:
        added = await self._executor.run(stream, partial(self._append, batch), stream_id)
        return AppendCounts(added, len(batch) - added)

    async def _append(self, batch: _Batch, stream: Stream) -> int:
        groups = batch.by_shard(stream)
        added = 0
        while groups:
            ready = eldest(groups)
            answers = await gather_all(
                self._to_shard(stream, shard, batch, numbers) for shard, numbers in ready.items()
            )
            groups = {shard: some for shard, some in groups.items() if shard not in ready}
            added += sum(answer.added for answer in answers)
            for answer in answers:
                if answer.left:
                    _add(groups, answer, batch.hash_keys)
            stream = await self._with_shards(stream, groups)
        return added

    async def _with_shards(self, stream: Stream, shards: Iterable[Shard]) -> Stream:
        """Return the stream with a definition that has these shards, and so their ancestors."""
        positions = {shard.index: 0 for shard in shards}
        if not needs_refresh(stream, positions):
            return stream
        fresh = await self._executor.current(stream.name)
        if fresh.stream_id != stream.stream_id or needs_refresh(fresh, positions):
            raise StorageUnavailable("The stream is being resharded; try again.")
        return fresh

    async def _to_shard(
        self, stream: Stream, shard: Shard, batch: _Batch, numbers: Sequence[int]
    ) -> _ShardResult:
        """Add the records that neither the shard nor its ancestors have taken yet.

        In turn, as many as an entry holds: the next ones leave when those before them are added.
        """
        floors = await self._floors_of(stream, shard, batch.producers())
        left = [number for number in numbers if _is_above(floors, batch, number)]
        added = 0
        while left:
            now, later = left[: limits.ENTRY_RECORDS_MAX], left[limits.ENTRY_RECORDS_MAX :]
            part = batch.part(now)
            try:
                done = await self._appending.put(stream, shard, part)
            except ShardClosedTo as closed:
                return _ShardResult(added, left, closed.children)
            except PartialDuplicate as partial_duplicate:
                lasts = lasts_of(part.claims, partial_duplicate.lasts)
                left = [*batch.sequenced.above(now, lasts), *later]
            else:
                added += 0 if done.duplicate else len(now)
                left = later
        return _ShardResult(added)

    # High-water marks of closed ancestors

    async def _floors_of(
        self, stream: Stream, shard: Shard, producer_ids: Sequence[str]
    ) -> Mapping[str, tuple[AncestorWatermark, ...]]:
        """Return the producers' high-water marks in the shard's ancestors.

        They are final, and so read once.
        """
        if not stream.parents_of(shard):
            return {}
        keys = {one: (shard.log_id, one) for one in producer_ids}
        watermarks = {one: self._floors[key] for one, key in keys.items() if key in self._floors}
        missing = [one for one in producer_ids if one not in watermarks]
        if missing:
            fetched = await self._fetch_floors(stream, _ancestors(stream, shard), missing)
            self._floors.update({keys[one]: floors for one, floors in fetched.items()})
            watermarks |= fetched
        return watermarks

    async def _fetch_floors(
        self, stream: Stream, ancestors: Sequence[Shard], producer_ids: Sequence[str]
    ) -> dict[str, tuple[AncestorWatermark, ...]]:
        answers = await gather_all(
            self._final_watermarks(stream, one, producer_ids) for one in ancestors
        )
        floors: dict[str, list[AncestorWatermark]] = {one: [] for one in producer_ids}
        for ancestor, recalled in zip(ancestors, answers, strict=True):
            for producer_id, last in zip(producer_ids, recalled.lasts, strict=True):
                if last == WRITER_RETIRED:
                    raise ProducerFenced("This producer is retired: it has sent all its records.")
                if last != NO_WATERMARK:
                    span = ancestor.first_hash_key, ancestor.last_hash_key
                    floors[producer_id].append(AncestorWatermark(*span, last))
        return {producer_id: tuple(some) for producer_id, some in floors.items()}

    async def _final_watermarks(
        self, stream: Stream, shard: Shard, producer_ids: Sequence[str]
    ) -> WriterWatermarks:
        """Return a closed shard's producer state.

        Closes a shard that is still to be closed, or whose store lost the mark that it is closed.
        """
        log = LogAddress(stream.name.namespace, shard.log_id)
        get = partial(self._watermarks.get, log, producer_ids)
        recalled = await self._executor.with_repair(log, get)
        if not recalled.closed:
            await self._resharder.ensure_closed(stream, shard)
            recalled = await self._executor.with_repair(log, get)
        if not recalled.closed:
            raise StorageUnavailable("The stream is being resharded; try again.")
        return recalled

    # Retiring producers

    async def retire(self, name: StreamName, producer_ids: Sequence[str]) -> None:
        try:
            stream = await self._executor.current(name)
        except StreamNotFound:
            return
        await gather_all(
            self._retire(stream, shard, producer_ids) for shard in (*stream.shards, *stream.opening)
        )

    async def _retire(self, stream: Stream, shard: Shard, producer_ids: Sequence[str]) -> None:
        log = LogAddress(stream.name.namespace, shard.log_id)
        retire = partial(self._watermarks.retire, log, producer_ids, self._clock.script_time())
        try:
            await self._executor.with_repair(log, retire)
        except (LogDeleted, LogNotReady):
            return  # it was deleted, or expired, with all it knew

    async def writer_state(self, log: LogAddress) -> tuple[bool, bool]:
        """Return whether a log knows monotonic producers, and whether it remembers retired ones."""
        recalled = await self._watermarks.get(log, ())
        return recalled.producers > 0, recalled.remembers_retired


def _hash_keys(sequenced: SequencedBatch, records: Sequence[Record]) -> list[int]:
    return _hash_keys_of(
        sequenced,
        [record.key for record in records],
        [record.hash_key for record in records],
    )


def _hash_keys_of(
    sequenced: SequencedBatch, keys: Sequence[str], hash_keys: Sequence[int | None]
) -> list[int]:
    """Return the records' hash keys; `keys` and `hash_keys` are empty where no record has one.

    A record without a key gets one of its own, the same whenever it is sent.
    """
    count = len(sequenced.sequences)
    return [
        given
        if given is not None
        else hash_key(key)
        if key
        else _hash_key_for(producer_id, sequence)
        for given, key, producer_id, sequence in zip(
            hash_keys or repeat(None, count),
            keys or repeat("", count),
            sequenced.producer_ids,
            sequenced.sequences,
            strict=True,
        )
    ]


def _hash_key_for(producer_id: str, sequence: int) -> int:
    identity = f"{producer_id}\0{sequence}".encode()
    return int.from_bytes(hashlib.md5(identity, usedforsecurity=False).digest(), "big")


def _is_above(
    floors: Mapping[str, tuple[AncestorWatermark, ...]], batch: _Batch, number: int
) -> bool:
    if not floors:
        return True
    watermarks = floors[batch.sequenced.producer_ids[number]]
    return batch.sequenced.sequences[number] > floor_at(watermarks, batch.hash_keys[number])


def _ancestors(stream: Stream, shard: Shard) -> list[Shard]:
    """Return the unexpired shards that took some of this shard's hash keys before it."""
    ancestors: dict[int, Shard] = {}
    line = stream.parents_of(shard)
    while line:
        ancestors |= {one.index: one for one in line}
        above = [parent for one in line for parent in stream.parents_of(one)]
        line = tuple({one.index: one for one in above if one.index not in ancestors}.values())
    return [*ancestors.values()]


def _add(groups: dict[Shard, list[int]], answer: _ShardResult, hash_keys: Sequence[int]) -> None:
    """Merge the records that a closed shard did not take into its children's, in order."""
    for number in answer.left:
        child = next(child for child in answer.children if child.takes(hash_keys[number]))
        groups.setdefault(child, []).append(number)
    for numbers in groups.values():
        numbers.sort()
