"""Append of records, routed to shards by key, also while shards are split and merged.

A stream definition may be older than its shards. A closed shard names the shards that replace it, and the
append is sent there; the next definition only saves the detour.
"""

import asyncio
import random
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import cast

import attrs
import msgspec
from msgspec.structs import replace

from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import (
    IdempotencyKeyReused,
    MillstreamError,
    StorageUnavailable,
)
from storage.domain.log.address import LogAddress
from storage.domain.log.record_batch import Record
from storage.domain.names import LogId, StreamName
from storage.domain.streams.deduplication import appended_at, new_numbers
from storage.domain.streams.lineage import ShardClosedTo, eldest
from storage.domain.streams.producers import AcceptedBatch, Remembered, judge
from storage.domain.streams.stream import (
    UNCONDITIONAL,
    AppendCondition,
    Appended,
    Producer,
    Shard,
    Stream,
    by_shard,
    hash_key,
)
from storage.domain.topics.topic import PUBLISHED_HEADERS
from storage.hot_store.errors import LogOpen, ParentsRequired
from storage.hot_store.log_store import AppendPart, LogStore, PartAppended
from storage.log.provisioner import LogProvisioner
from storage.log.stream_executor import StreamExecutor
from storage.quotas.memory_guard import MemoryGuard
from storage.streams.append_rules import (
    OWN_HEADERS,
    check_records,
    check_unrouted,
    fingerprint,
    timed,
)
from storage.streams.reshard import Resharder

Outcome = list[Appended] | MillstreamError


class _Call(msgspec.Struct):
    """The records and options of one append call.

    `keyless` is the key used for records that have none; it is set on first use.
    """

    records: Sequence[Record]
    sizes: Sequence[int]
    idempotency_key: str
    keyless: str = ""
    condition: AppendCondition = UNCONDITIONAL
    dedup_keys: Sequence[str] = ()

    def _keyless(self) -> str:
        self.keyless = self.keyless or self.idempotency_key or str(random.random())  # noqa: S311  any shard will do
        return self.keyless

    def by_shard(self, shards: Sequence[Shard]) -> dict[Shard, Sequence[int]]:
        """Group the numbers of the records by the shard that takes them.

        `shards` are in hash-key order and cover the whole hash-key range.
        """
        keyless = self._keyless()
        hash_keys = [_hash_key_of(record, keyless) for record in self.records]
        return {**by_shard(shards, hash_keys)}

    def among(self, children: Sequence[Shard], numbers: Iterable[int]) -> dict[Shard, list[int]]:
        """Group the numbers of some records by the child shard that takes them.

        `children` replace the shard that took these records before.
        """
        groups: dict[Shard, list[int]] = {}
        keyless = self._keyless()
        for number in numbers:
            key_hash = _hash_key_of(self.records[number], keyless)
            child = next(child for child in children if child.takes(key_hash))
            groups.setdefault(child, []).append(number)
        return groups

    def part(self, numbers: Sequence[int]) -> AppendPart:
        """Return the records with these numbers as one part."""
        keys = self.dedup_keys
        if len(numbers) == len(self.records):
            return _part(self.records, sum(self.sizes), self.condition, self.idempotency_key, keys)
        return _part(
            [self.records[number] for number in numbers],
            sum([self.sizes[number] for number in numbers]),
            self.condition,
            self.idempotency_key,
            [keys[number] for number in numbers] if keys else (),
        )


@attrs.define(eq=False, slots=False, kw_only=True)
class Appender:
    """Append verbs of `storage.streams.engine.Streams`."""

    _hot: LogStore
    _executor: StreamExecutor
    _provisioner: LogProvisioner
    _resharder: Resharder
    _clock: Clock
    _memory_guard: MemoryGuard

    async def append(
        self,
        name: StreamName,
        records: Sequence[Record],
        idempotency_key: str,
        *,
        publishes: bool = False,
        stream_id: LogId | None = None,
        fence: str = "",
        dedup_keys: Sequence[str] = (),
    ) -> list[Appended | MillstreamError]:
        stream = await self.stream(name, stream_id, publishes=publishes)
        own = PUBLISHED_HEADERS if publishes else OWN_HEADERS
        sizes = check_records(stream, records, own)
        records = timed(stream.spec, records, self._clock.now_ms)
        call = _Call(records, sizes, idempotency_key, dedup_keys=dedup_keys)
        if fence:
            call.condition = AppendCondition(fence=fence)
        return await self._executor.run(stream, partial(self._append, call), stream_id)

    async def stream(
        self, name: StreamName, stream_id: LogId | None = None, *, publishes: bool = False
    ) -> Stream:
        """Return a stream that accepts records now, as `StreamExecutor.writable` does.

        Raises StreamNotFound, StreamRecreated, StreamReadOnly, BacklogFull, QuotaExceeded.
        """
        if self._memory_guard.is_shedding:
            self._memory_guard.check(name.namespace)
        return await self._executor.writable(name, stream_id, publishes=publishes)

    async def _append(self, call: _Call, stream: Stream) -> list[Appended | MillstreamError]:
        has_keys = bool(call.idempotency_key or call.dedup_keys)
        shards = self._lookup_shards(stream) if has_keys else stream.open_shards
        if len(shards) > 1 or call.dedup_keys:
            return await self._append_to_all(call, stream, call.by_shard(shards))
        numbers = range(len(call.records))
        done = await self._try_some(stream, shards[0], call, numbers)
        if isinstance(done, ShardClosedTo):
            return await self._append_to_all(call, stream, {**call.among(done.children, numbers)})
        return [done] * len(numbers) if isinstance(done, MillstreamError) else [*done]

    def _lookup_shards(self, stream: Stream) -> Sequence[Shard]:
        """Return the shards that may remember a key of the call, the eldest of each lineage.

        These are the shards that were open at some time within IDEMPOTENCY_LOOKUP_MS, for which idempotency keys are remembered;
        deduplication keys are for a shorter time. Closed shards are frozen: they report a duplicate, or name their children.
        """
        if len(stream.open_shards) == len(stream.shards):
            return stream.open_shards
        return stream.shards_open_since(self._clock.now_ms() - limits.IDEMPOTENCY_LOOKUP_MS)

    async def _append_to_all(
        self, call: _Call, stream: Stream, groups: dict[Shard, Sequence[int]]
    ) -> list[Appended | MillstreamError]:
        """Append to several shards concurrently, then to the children of those that were closed."""
        answers: list[Appended | MillstreamError] = [_UNANSWERED] * len(call.records)
        closed_parents: dict[int, int] = {}
        ready = groups
        while groups:
            work = [self._try_all(stream, one, call, groups[one], closed_parents) for one in ready]
            outcomes = [await work[0]] if len(work) == 1 else await asyncio.gather(*work)
            left = {shard: numbers for shard, numbers in groups.items() if shard not in ready}
            for shard, parts in zip(ready, outcomes, strict=True):
                for numbers, outcome in parts:
                    if isinstance(outcome, ShardClosedTo):
                        others = _note_duplicates(answers, shard, numbers, outcome.signed_offsets)
                        closed_parents.update(dict.fromkeys(others, shard.index))
                        _add(left, call.among(outcome.children, others))
                    else:
                        _note(answers, numbers, outcome)
            groups, ready = left, eldest(left)
        return answers

    async def _try_all(
        self,
        stream: Stream,
        shard: Shard,
        call: _Call,
        numbers: Sequence[int],
        closed_parents: Mapping[int, int],
    ) -> list[tuple[Sequence[int], Outcome]]:
        """Append one shard's records of a call as one part; return the outcomes.

        There is one outcome for the whole part, or one for each piece of it where they differ.
        """
        outcome = await self._try_some(stream, shard, call, numbers)
        if isinstance(outcome, IdempotencyKeyReused) and closed_parents:
            return await self._try_apart(stream, shard, call, numbers, closed_parents) or [
                (numbers, outcome)
            ]
        return [(numbers, outcome)]

    async def _try_apart(
        self,
        stream: Stream,
        shard: Shard,
        call: _Call,
        numbers: Sequence[int],
        closed_parents: Mapping[int, int],
    ) -> list[tuple[Sequence[int], Outcome]]:
        """Retry records from different closed parents separately, each parent's as its own part.

        A call that met two half-merged shards may have left the records of one parent in their child, and failed
        for the other's. Its retry brings all of them: those the child knows are reported as duplicates, and the rest get an
        idempotency key of their own from then on. Empty when the child knows none of them: then the key
        was used by another call.
        """
        lines: dict[int, list[int]] = {}
        for number in numbers:
            lines.setdefault(closed_parents.get(number, -1), []).append(number)
        outcomes = {
            parent: await self._try_some(stream, shard, call, some)
            for parent, some in lines.items()
        }
        if all(isinstance(outcome, MillstreamError) for outcome in outcomes.values()):
            return []
        for parent, outcome in outcomes.items():
            if isinstance(outcome, IdempotencyKeyReused):
                own = replace(call, idempotency_key=f"{call.idempotency_key}\0{parent}")
                outcomes[parent] = await self._try_some(stream, shard, own, lines[parent])
        return [(lines[parent], outcome) for parent, outcome in outcomes.items()]

    async def _try_some(
        self, stream: Stream, shard: Shard, call: _Call, numbers: Sequence[int]
    ) -> Outcome:
        """Append one shard's part, or return why it was rejected: other shards' parts stand."""
        try:
            return await self._append_part(stream, shard, call.part(numbers))
        except MillstreamError as error:
            return error

    async def append_to_shard(
        self,
        name: StreamName,
        shard: int,
        records: Sequence[Record],
        condition: AppendCondition,
    ) -> list[Appended]:
        stream = await self._executor.refresh_for_shard(await self._executor.writable(name), shard)
        check_unrouted(records)
        sizes = check_records(stream, records)
        records = timed(stream.spec, records, self._clock.now_ms)
        part = _part(records, sum(sizes), condition, "")
        append = self._append_part if condition.producer is None else self._produce
        return await self._executor.run(
            stream, lambda current: append(current, current.shard(shard), part)
        )

    async def _produce(self, stream: Stream, shard: Shard, part: AppendPart) -> list[Appended]:
        """Append a producer's batch; a shard without the producer's state uses its ancestors'."""
        if not stream.parents_of(shard):
            return await self._append_part(stream, shard, part)
        try:
            return await self._append_part(stream, shard, replace(part, needs_parents=True))
        except ParentsRequired:
            producer = cast(Producer, part.condition.producer)
        remembered = await self._remembered(stream, shard, producer.producer_id)
        verdict = judge(producer, len(part.records), remembered)
        if isinstance(verdict, AcceptedBatch):
            return _placed(verdict.shard, verdict.offset, len(part.records), True)
        return await self._append_part(stream, shard, replace(part, inherited=verdict))

    async def _remembered(self, stream: Stream, shard: Shard, producer_id: str) -> list[Remembered]:
        """Return the producer state of the nearest ancestors that have any.

        Ancestors are queried one generation at a time.
        """
        remembered: list[Remembered] = []
        visited: set[int] = set()
        line = stream.parents_of(shard)
        while line:
            visited |= {parent.index for parent in line}
            states = await asyncio.gather(
                *(self._recalled(stream, parent, producer_id) for parent in line)
            )
            remembered += [state for state in states if state is not None]
            silent = [one for one, state in zip(line, states, strict=True) if state is None]
            line = tuple(
                {
                    parent.index: parent
                    for one in silent
                    for parent in stream.parents_of(one)
                    if parent.index not in visited
                }.values()
            )
        return remembered

    async def _recalled(self, stream: Stream, shard: Shard, producer_id: str) -> Remembered | None:
        log = LogAddress(stream.name.namespace, shard.log_id)
        recall = partial(self._hot.recall_producer, log, producer_id)
        try:
            state = await self._executor.with_repair(log, recall)
        except LogOpen:
            await self._resharder.ensure_closed(stream, shard)
            state = await self._executor.with_repair(log, recall)
        if state is None:
            return None
        epoch, last, _, *batches = state
        return Remembered(shard.index, epoch, last, tuple(map(tuple, batches)))

    async def _append_part(self, stream: Stream, shard: Shard, part: AppendPart) -> list[Appended]:
        done = await self.put(stream, shard, part)
        if done.signed_offsets:
            return [appended_at(shard.index, one, done.arrival_ms) for one in done.signed_offsets]
        count = len(part.records)
        return _placed(shard.index, done.offset, count, done.duplicate, done.arrival_ms)

    async def put(self, stream: Stream, shard: Shard, part: AppendPart) -> PartAppended:
        """Append one part to one shard.

        Raises ShardClosedTo, which names the child shards, and the errors of the part's condition.
        """
        log = LogAddress(stream.name.namespace, shard.log_id)
        indexed = stream.spec.key_index
        done = await self._provisioner.with_repair(log, lambda: self._begin(log, part, indexed))
        self.note(log, part, done)
        return done

    def begin(
        self, stream: Stream, log: LogAddress, part: AppendPart
    ) -> "asyncio.Future[PartAppended]":
        """Start an append of one part without waiting for its result.

        The result may be LogNotReady. Otherwise like `put`; pass the result to `note` once it has arrived.
        """
        return self._begin(log, part, stream.spec.key_index)

    def note(self, log: LogAddress, part: AppendPart, done: PartAppended) -> None:
        """Reserve offsets for the next append once fewer than half a reservation are left."""
        self._provisioner.reserve_ahead(log, done.offset + len(part.records), done.left)

    def _begin(
        self, log: LogAddress, part: AppendPart, indexed: bool
    ) -> "asyncio.Future[PartAppended]":
        epoch, now = self._provisioner.store_epoch, self._clock.script_time()
        return self._hot.append(log, part, store_epoch=epoch, indexed=indexed, now=now)


_UNANSWERED = StorageUnavailable()


def _hash_key_of(record: Record, keyless: str) -> int:
    if record.hash_key is not None:
        return record.hash_key
    return hash_key(record.key or keyless)


def _placed(
    shard: int, offset: int, count: int, duplicate: bool, arrival_ms: int = 0
) -> list[Appended]:
    return [Appended(shard, offset + nth, duplicate, arrival_ms) for nth in range(count)]


def _add(groups: dict[Shard, Sequence[int]], additions: dict[Shard, list[int]]) -> None:
    for shard, numbers in additions.items():
        groups[shard] = sorted([*groups.get(shard, ()), *numbers])


def _note(
    answers: list[Appended | MillstreamError], numbers: Sequence[int], outcome: Outcome
) -> None:
    for nth, number in enumerate(numbers):
        answers[number] = outcome if isinstance(outcome, MillstreamError) else outcome[nth]


def _note_duplicates(
    answers: list[Appended | MillstreamError],
    shard: Shard,
    numbers: Sequence[int],
    signed_offsets: Sequence[int],
) -> list[int]:
    """Note the records that a closed shard has; return the numbers of the others."""
    for number, signed_offset in zip(numbers, signed_offsets, strict=False):
        if signed_offset < 0:
            answers[number] = appended_at(shard.index, signed_offset, 0)
    return new_numbers(numbers, signed_offsets)


def _part(
    records: Sequence[Record],
    size_bytes: int,
    condition: AppendCondition,
    key: str,
    dedup_keys: Sequence[str] = (),
) -> AppendPart:
    content = fingerprint(records) if key else ""
    return AppendPart(records, condition, key, content, size_bytes, dedup_keys=dedup_keys)
