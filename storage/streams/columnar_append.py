"""Bulk append of plain records that stay columnar from the request to the log.

Two cases are appended record by record instead: a batch with an idempotency key, and records whose shard was closed
in the meantime.
"""

import asyncio
import random
from collections.abc import Sequence
from functools import partial
from operator import itemgetter

import attrs
import msgspec
from msgspec.structs import replace

from storage.domain.errors import MillstreamError, ValidationFailed
from storage.domain.log.address import LogAddress
from storage.domain.log.record_batch import Record
from storage.domain.names import StreamName
from storage.domain.streams.columnar_batch import Columns, PackedColumns
from storage.domain.streams.lineage import ShardClosedTo
from storage.domain.streams.stream import Appended, AppendedRange, EventTimes, Shard, Stream
from storage.hot_store.errors import LogNotReady
from storage.hot_store.log_store import AppendPart, PartAppended
from storage.log.stream_executor import StreamExecutor
from storage.streams.append import Appender
from storage.streams.append_rules import check_sizes

Ranges = list[AppendedRange]
Answer = asyncio.Future[PartAppended]
_Group = tuple[int, int, bool]


@attrs.define(eq=False, slots=False)
class ColumnarAppender:
    """Columnar append verb of `storage.streams.engine.Streams`."""

    _appending: Appender
    _executor: StreamExecutor

    async def append(self, name: StreamName, columns: Columns, idempotency_key: str) -> Ranges:
        stream = await self._appending.stream(name)
        _check(stream, columns)
        if idempotency_key:
            return await self._as_records(name, columns.records(), idempotency_key)
        parts = _parts(stream, columns)
        del columns  # frees each body and key now, while it is in the CPU cache
        return await self._executor.run(stream, partial(self._append, stream, parts))

    async def _append(self, planned: Stream, parts: Sequence["_Part"], stream: Stream) -> Ranges:
        if stream is not planned:  # its shards may differ from those of the parts
            return await self._as_records(stream.name, _in_order(parts), "")
        if len(parts) == 1:
            return await self._append_some(stream, parts[0])
        begun = [self._begin(stream, part) for part in parts]
        try:
            return [one for some in begun for one in await self._finish(stream, *some)]
        finally:
            for _, answer in begun:
                _discard_result(answer)

    def _begin(self, stream: Stream, part: "_Part") -> tuple["_Part", Answer]:
        """Start one shard's append without a task, so that many shards append concurrently."""
        log = LogAddress(stream.name.namespace, part.shard.log_id)
        try:
            return part, self._appending.begin(stream, log, part.to_append)
        except MillstreamError as error:  # the others may be on their way
            return part, _failed(error)

    async def _finish(self, stream: Stream, part: "_Part", answer: Answer) -> Ranges:
        try:
            done = await answer
        except LogNotReady:
            return await self._append_some(stream, part)
        except MillstreamError as error:
            return await self._refused(stream, part, error)
        log = LogAddress(stream.name.namespace, part.shard.log_id)
        self._appending.note(log, part.to_append, done)
        return [part.placed(done)]

    async def _append_some(self, stream: Stream, part: "_Part") -> Ranges:
        """Append one shard's records, or return why they were rejected: other shards' stand."""
        try:
            done = await self._appending.put(stream, part.shard, part.to_append)
        except MillstreamError as error:
            return await self._refused(stream, part, error)
        return [part.placed(done)]

    async def _refused(self, stream: Stream, part: "_Part", error: MillstreamError) -> Ranges:
        """Append to the children of a closed shard, or return why the part was rejected."""
        if not isinstance(error, ShardClosedTo):
            return [AppendedRange(part.numbers, error=error)]
        try:
            ranges = await self._as_records(stream.name, part.columns.records(), "")
        except MillstreamError as failure:  # of reading the definition: other shards' parts stand
            return [AppendedRange(part.numbers, error=failure)]
        return [_renumbered(one, part.numbers) for one in ranges]

    async def _as_records(self, name: StreamName, records: Sequence[Record], key: str) -> Ranges:
        return _ranges(await self._appending.append(name, records, key))


class _Part(msgspec.Struct, gc=False):
    """The records of a call that one shard takes."""

    shard: Shard
    numbers: Sequence[int]
    columns: PackedColumns
    to_append: AppendPart

    def placed(self, done: PartAppended) -> AppendedRange:
        """Return the range of the log that the records were appended to."""
        return AppendedRange(
            self.numbers,
            self.shard.index,
            done.offset,
            done.duplicate,
            arrival_ms=done.arrival_ms,
        )


def _failed(error: MillstreamError) -> Answer:
    answer: Answer = asyncio.get_running_loop().create_future()
    answer.set_exception(error)
    return answer


def _discard_result(answer: Answer) -> None:
    """Discard an outstanding result of a cancelled call, which no caller will read."""
    if not answer.cancel() and not answer.cancelled():
        answer.exception()


def _parts(stream: Stream, columns: Columns) -> list[_Part]:
    """Partition a call's columns by the shard that takes them."""
    groups = _by_shard(stream, columns)
    if len(groups) == 1:
        [(shard, numbers)] = groups
        return [_part(shard, numbers, columns.packed())]
    return [_part(shard, numbers, columns.chosen(numbers).packed()) for shard, numbers in groups]


def _part(shard: Shard, numbers: Sequence[int], columns: PackedColumns) -> _Part:
    return _Part(shard, numbers, columns, AppendPart(columns, size_bytes=columns.size_bytes))


def _in_order(parts: Sequence[_Part]) -> list[Record]:
    """Return all records of a call, in the order of the call."""
    numbered = [
        (number, record)
        for part in parts
        for number, record in zip(part.numbers, part.columns.records(), strict=True)
    ]
    return [record for _, record in sorted(numbered, key=itemgetter(0))]


def _check(stream: Stream, columns: Columns) -> None:
    """Raise for columns that this stream does not accept."""
    columns.check()
    if stream.spec.event_times is EventTimes.CLIENT_REQUIRE:
        detail = "The stream requires an event time for each record; columnar batches have none"
        raise ValidationFailed.at("", detail, "missing")
    check_sizes(stream, columns)


def _by_shard(stream: Stream, columns: Columns) -> list[tuple[Shard, Sequence[int]]]:
    """Group the numbers of the records by shard; those without a key go to one shard."""
    shards = stream.open_shards
    if len(shards) == 1:
        return [(shards[0], range(len(columns)))]
    if not columns.keys:
        return [(random.choice(shards), range(len(columns)))]  # noqa: S311  any shard will do
    groups: list[list[int]] = [[] for _ in shards]
    positions = stream.positions_of(columns.keys)
    if "" in columns.keys:
        keyless_shard = random.randrange(len(shards))  # noqa: S311
        positions = [
            place if key else keyless_shard
            for place, key in zip(positions, columns.keys, strict=True)
        ]
    take = [numbers.append for numbers in groups]
    for number, place in enumerate(positions):
        take[place](number)
    return [(shard, numbers) for shard, numbers in zip(shards, groups, strict=True) if numbers]


def _ranges(answers: Sequence[Appended | MillstreamError]) -> Ranges:
    """Combine the results of single records into ranges.

    A range holds records that lie in one shard consecutively.
    """
    groups: dict[_Group | int, list[int]] = {}
    firsts: dict[_Group | int, Appended | MillstreamError] = {}
    nexts: dict[tuple[int, bool, int], tuple[int, _Group]] = {}
    for number, answer in enumerate(answers):
        if isinstance(answer, MillstreamError):
            group: _Group | int = id(answer)
        else:
            line = (answer.shard, answer.duplicate, answer.arrival_ms)
            following, group = nexts.get(
                line, (-1, (answer.shard, answer.offset, answer.duplicate))
            )
            if following != answer.offset:
                group = (answer.shard, answer.offset, answer.duplicate)
            nexts[line] = answer.offset + 1, group
        groups.setdefault(group, []).append(number)
        firsts.setdefault(group, answer)
    return [_range(numbers, firsts[group]) for group, numbers in groups.items()]


def _range(numbers: Sequence[int], first: Appended | MillstreamError) -> AppendedRange:
    if isinstance(first, MillstreamError):
        return AppendedRange(numbers, error=first)
    return AppendedRange(
        numbers, first.shard, first.offset, first.duplicate, arrival_ms=first.arrival_ms
    )


def _renumbered(appended: AppendedRange, numbers: Sequence[int]) -> AppendedRange:
    """Return a range with its record numbers translated to those of the whole call."""
    own = [numbers[number] for number in appended.numbers]
    return replace(appended, numbers=own)
