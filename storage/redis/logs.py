"""A stream's shard, and what every log has: the typed side of the log scripts."""

import asyncio
from collections.abc import Sequence
from itertools import chain
from typing import Any

import msgspec

from storage.domain import limits
from storage.domain.batches import Record, decode_batches, encode_batch
from storage.domain.clock import SERVER_TIME, ScriptTime
from storage.domain.columns import Columns, encode_columns
from storage.domain.errors import (
    ArchiveBehind,
    DuplicateForgotten,
    FenceMismatch,
    IdempotencyKeyReused,
    OffsetMismatch,
    OffsetOutOfRange,
    ProducerFenced,
    SequenceOutOfOrder,
    TooManyProducers,
)
from storage.domain.limits import Limits
from storage.domain.lineage import ShardClosedTo, pack_children, unpack_children
from storage.domain.names import LogId
from storage.domain.producers import Inherited
from storage.domain.rising import Claim, Straddles
from storage.domain.scaling import Load
from storage.domain.streams import UNCONDITIONAL, AppendCondition, LogRecord, Shard
from storage.redis.answers import checked, refusal_in
from storage.redis.client import Reply
from storage.redis.keys import every_key, key, log_keys, queue_keys, view_keys
from storage.redis.pipeline import Command, Pipeline, command_of
from storage.redis.queue_words import as_stream_record
from storage.redis.scripts import script

_condition_encoder = msgspec.msgpack.Encoder()
_state_decoder = msgspec.msgpack.Decoder(tuple[Any, ...])

ProducerState = tuple[Any, ...]
"""(epoch, last sequence, touched ms, (first sequence, records, offset)…), the newest batch last."""


class LogAddress(msgspec.Struct, frozen=True, gc=False):
    """Where a log is kept; a queue's stream view lies beside its log."""

    namespace: str
    log_id: LogId
    is_view: bool = False

    @property
    def channel(self) -> str:
        """What a wake-up of its readers is called."""
        return f"{self.log_id}:view" if self.is_view else self.log_id


class AppendPart(msgspec.Struct, frozen=True, gc=False):
    """What one caller wants appended to a log.

    Columns are plain: without a condition and a key. `ask_parents`: if the log does not know the producer, the answer is ParentsUnasked; `inherited` is what
    they know. `claims` are those of rising producers, in the place of a condition; the answer may be Straddles.
    """

    records: Sequence[Record] | Columns
    condition: AppendCondition = UNCONDITIONAL
    idempotency_key: str = ""
    fingerprint: str = ""
    size_bytes: int = 0
    inherited: Inherited | None = None
    ask_parents: bool = False
    claims: tuple[Claim, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Nothing but the log's own state decides on it, so it can share a batch."""
        return self.condition is UNCONDITIONAL and not self.idempotency_key and not self.claims


class PartAppended(msgspec.Struct, frozen=True, gc=False):
    """Where a part's first record went. `left`: offsets that are reserved beyond the log's end."""

    offset: int
    duplicate: bool
    left: int
    arrival_ms: int = 0


class HotRead(msgspec.Struct, frozen=True):
    """What `read_log` found: records from `start_at` on, possibly after a hole. A closed log has children."""

    now_ms: int
    start: int
    next: int
    start_at: int
    records: Sequence[LogRecord]
    children: tuple[Shard, ...]


class Extent(msgspec.Struct, frozen=True):
    """A log's oldest readable offset, the next one to be written, and the bytes it holds.

    `knows_producers`: it remembers batches of producers, perhaps idle ones. `fenced`: it is one writer's.
    `log_epoch` rises each time the hot store forgot some of it.
    """

    start: int
    next: int
    bytes: int
    knows_producers: bool
    fenced: bool
    log_epoch: int


class HotBacklog(msgspec.Struct, frozen=True):
    """A log's extent, and what of it waits to be archived: its bytes, and how long the oldest of it has waited by the
    store's clock, or -1 for none."""

    start: int
    next: int
    closed: bool
    bytes: int
    waited_ms: int


class Appends(msgspec.Struct, frozen=True, gc=False, eq=False):
    """Gathers the appends of one flush to one log: plain parts share a batch, others keep their own.

    `indexed`: the stream has a key index. Compared by identity: one object, one gathering.
    """

    address: LogAddress
    store_epoch: int
    now: ScriptTime
    limits: Limits
    indexed: bool = False

    def commands(self, parts: Sequence[AppendPart]) -> list[tuple[Command, int]]:
        """One script call for each ENTRY_RECORDS_MAX records or ENTRY_BYTES_MAX bytes."""
        return [(self._command(some), len(some)) for some in _entries_of(parts)]

    def _command(self, parts: Sequence[AppendPart]) -> Command:
        plain = [part.records for part in parts if part.is_plain]
        arguments: list[bytes | int] = []
        if plain and self.indexed:
            records = [*chain.from_iterable(map(_as_records, plain))]
            arguments = [
                encode_batch(records),
                len(records),
                self._condition_of(AppendPart(records)),
            ]
        elif plain:
            arguments = [*_encode_plain(plain), b""]
        for part in parts:
            if not part.is_plain:
                batch = _as_records(part.records)
                arguments += [encode_batch(batch), len(batch), self._condition_of(part)]
        return command_of(
            script("append_records"),
            log_keys(self.address.namespace, self.address.log_id),
            self.now,
            self.store_epoch,
            limits.PRODUCER_IDLE_MS,
            self.limits.producers_max,
            limits.IDEMPOTENCY_WINDOW_MS,
            self.limits.idempotency_keys_max,
            self.limits.rising_producers_max,
            *arguments,
        )

    def _condition_of(self, part: AppendPart) -> bytes:
        """What append_records.lua looks at for a part."""
        condition = part.condition
        producer, expected = condition.producer, condition.expected_offset
        return _condition_encoder.encode(
            (
                producer.producer_id if producer else "",
                producer.epoch if producer else 0,
                producer.sequence if producer else 0,
                -1 if expected is None else expected,
                condition.fence,
                part.idempotency_key,
                part.fingerprint,
                *_inheritance_of(part),
                *self._facts_of(part),
            )
        )

    def _facts_of(self, part: AppendPart) -> list[Any]:
        keys = _last_of_keys(_as_records(part.records)) if self.indexed else False
        return [keys, part.claims] if part.claims else [keys] if self.indexed else []

    def answers(self, parts: Sequence[AppendPart], reply: Reply) -> Sequence[Any]:
        """A PartAppended for each part, or the error that its caller is to see."""
        refusal = refusal_in(reply)
        if refusal is not None:
            return [refusal] * len(parts)
        now_ms, left, verdicts = reply[1], reply[2], iter(reply[3:])
        plain = next(verdicts) if any(part.is_plain for part in parts) else (0, 0)
        refused = _verdict(plain, left, now_ms) if plain[0] else None
        plain_at = plain[1]
        answers: list[PartAppended | Exception] = []
        for part in parts:
            if part.is_plain and refused:
                answers.append(refused)
            elif part.is_plain:
                answers.append(PartAppended(plain_at, False, left, now_ms))
                plain_at += len(part.records)
            else:
                answers.append(_verdict(next(verdicts), left, now_ms))
        return answers


def _encode_plain(parts: Sequence[Sequence[Record] | Columns]) -> tuple[bytes, int]:
    """All records as one batch, and their number; columns stay columns unless records are among them."""
    columns = [part for part in parts if isinstance(part, Columns)]
    if len(columns) == len(parts):
        return encode_columns(columns), sum(map(len, columns))
    records = [*chain.from_iterable(map(_as_records, parts))]
    return encode_batch(records), len(records)


def _as_records(part: Sequence[Record] | Columns) -> Sequence[Record]:
    return part.records() if isinstance(part, Columns) else part


def _entries_of(parts: Sequence[AppendPart]) -> list[list[AppendPart]]:
    """The parts in order, in runs that fit one entry; a part is never split."""
    runs: list[list[AppendPart]] = [[]]
    records = size = 0
    for part in parts:
        records += len(part.records)
        size += part.size_bytes
        if runs[-1] and (records > limits.ENTRY_RECORDS_MAX or size > limits.ENTRY_BYTES_MAX):
            runs.append([])
            records, size = len(part.records), part.size_bytes
        runs[-1].append(part)
    return runs


def _last_of_keys(records: Sequence[Record]) -> dict[str, int]:
    """The number of each key's last record."""
    return {record.key: number for number, record in enumerate(records) if record.key}


def _inheritance_of(part: AppendPart) -> tuple[int, int]:
    if part.inherited is not None:
        return part.inherited.epoch, part.inherited.last
    return (-2 if part.ask_parents else -1), -1


class LogOpen(Exception):
    """The log still takes records, so what it remembers is not final."""


class ParentsUnasked(Exception):
    """The log does not know this producer; its closed parents may. Nothing happened."""


def _verdict(verdict: Reply, left: int, now_ms: int) -> PartAppended | Exception:
    """The numbers are those of append_records.lua."""
    match verdict:
        case [0, offset]:
            return PartAppended(offset, False, left, now_ms)
        case [1, -1]:
            return DuplicateForgotten()
        case [1, offset]:
            return PartAppended(offset, True, left)
        case [2, epoch]:
            return ProducerFenced(current_epoch=epoch)
        case [3, children]:
            return ShardClosedTo(unpack_children(children))
        case [4, _]:
            return FenceMismatch()
        case [5, sequence]:
            return SequenceOutOfOrder(expected_sequence=sequence)
        case [6, offset]:
            return OffsetMismatch(next_offset=offset)
        case [8, _]:
            return ParentsUnasked()
        case [9, _]:
            return ArchiveBehind()
        case [10, lasts]:
            return Straddles(lasts)
        case [11, _]:
            return ProducerFenced("This producer is over: what it had to send was sent.")
        case [12, _]:
            return TooManyProducers()
        case _:
            return IdempotencyKeyReused()


class HotLogs:
    """The operations every log has. Raises LogNotReady where the log must be seen to first."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    async def create(
        self,
        at: LogAddress,
        next_offset: int,
        ceiling: int,
        store_epoch: int,
        log_epoch: int,
        closed: bytes = b"",
    ) -> bool:
        """Make the log unless it is there, `closed` to these children. False when it was deleted."""
        made = await self._pipeline.write(
            "create_log", [_meta(at)], next_offset, ceiling, store_epoch, log_epoch, closed
        )
        return bool(made >= 0)

    async def advance(
        self,
        at: LogAddress,
        next_offset: int,
        ceiling: int,
        store_epoch: int,
        log_epoch: int,
        closed: bytes = b"",
    ) -> None:
        """Take the log into a new store epoch, unless another process did."""
        await self._pipeline.write(
            "advance_log", [_meta(at)], next_offset, ceiling, store_epoch, log_epoch, closed
        )

    async def close(
        self, at: LogAddress, children: Sequence[Shard], fence: str, store_epoch: int
    ) -> tuple[bool, str]:
        """Close the log to its children, which were given this fence: whether it is closed, and its fence. It
        stays open while its fence is another one. Without children this only tells."""
        closed = pack_children(children)
        reply = checked(
            await self._pipeline.write("close_log", [_meta(at)], store_epoch, closed, fence)
        )
        return bool(reply[1]), str(reply[2].decode())

    async def set_fence(
        self, at: LogAddress, token: str, expected: str | None, store_epoch: int
    ) -> None:
        """Set the token that appends must carry; empty for none. Raises FenceMismatch, ShardClosed."""
        unless = ("0", "") if expected is None else ("1", expected)
        reply = checked(
            await self._pipeline.write("set_fence", [_meta(at)], store_epoch, token, *unless)
        )
        match reply[1:]:
            case [3, children]:
                raise ShardClosedTo(unpack_children(children))
            case [4]:
                raise FenceMismatch
            case _:
                return

    async def raise_ceiling(self, at: LogAddress, ceiling: int, store_epoch: int) -> None:
        """Allow the offsets below `ceiling`, which Postgres has reserved."""
        await self._pipeline.write("raise_ceiling", [_meta(at)], ceiling, store_epoch)

    async def bury(self, at: LogAddress) -> None:
        """Delete everything the log holds and leave a tombstone."""
        await self._pipeline.write("bury_log", every_key(at.namespace, at.log_id))

    async def forget(self, at: LogAddress) -> None:
        """Drop a tombstone."""
        await self._pipeline.write("forget_log", [_meta(at)])

    async def append(self, gatherer: Appends, part: AppendPart) -> PartAppended:
        """Append a part together with others of the same flush."""
        return await self.begin(gatherer, part)

    def begin(self, gatherer: Appends, part: AppendPart) -> "asyncio.Future[PartAppended]":
        """As append, without waiting for the answer."""
        return self._pipeline.gather(gatherer, part, part.size_bytes)

    async def switch_view(self, at: LogAddress, *, on: bool) -> None:
        """Begin or end to show a queue as a stream; nothing when it is so already."""
        keys = queue_keys(at.namespace, at.log_id)
        checked(await self._pipeline.write("switch_view", keys, "1" if on else "0"))

    async def recall_producer(self, at: LogAddress, producer_id: str) -> ProducerState | None:
        """What a closed log remembers of a producer, or None. Raises LogOpen if it is not closed yet."""
        keys = log_keys(at.namespace, at.log_id)[1:4]
        reply = checked(await self._pipeline.read("recall_producer", keys, producer_id))
        if not reply[1]:
            raise LogOpen
        return _state_decoder.decode(reply[2]) if reply[2] else None

    async def read(
        self,
        at: LogAddress,
        how: str,
        number: int,
        *,
        records_max: int,
        bytes_max: int,
        ask_to_wake: bool = False,
        now: ScriptTime = SERVER_TIME,
    ) -> HotRead:
        """Read from an 'offset', from a 'time' in ms, or the last records ('tail')."""
        keys = _readable(at)[:2]
        wake = "1" if ask_to_wake else "0"
        run = self._pipeline.write if ask_to_wake else self._pipeline.read
        reply = checked(await run("read_log", keys, now, how, number, records_max, bytes_max, wake))
        records = _records_from(reply[4], reply[6:], records_max)
        if at.is_view:
            records = [as_stream_record(at.log_id, record) for record in records]
        children = unpack_children(reply[5]) if reply[5] else ()
        return HotRead(reply[1], reply[2], reply[3], reply[4], records, children)

    async def extent(self, at: LogAddress) -> Extent:
        """How far the log reaches."""
        keys = _readable(at)[:4]
        reply = checked(await self._pipeline.read("measure_log", keys))
        return Extent(reply[1], reply[2], reply[3], bool(reply[4]), bool(reply[5]), reply[6])

    async def trim(
        self,
        at: LogAddress,
        retention_ms: int | None,
        retention_bytes: int | None,
        retention_records: int | None,
        entries_max: int,
        now: ScriptTime,
        *,
        archived: int | None = None,
        unarchived_bytes_max: int | None = None,
    ) -> int:
        """Forget what retention no longer covers, but nothing from `archived` on where there is an archive; gives
        the entries freed, 0 when there is none left.

        With `unarchived_bytes_max` the log takes no more while so much of it waits for its archive.
        """
        keys = _readable(at)[:2]
        kept = (retention_ms, retention_bytes, retention_records, archived, unarchived_bytes_max)
        bounds = ["" if bound is None else bound for bound in kept]
        reply = checked(await self._pipeline.write("trim_log", keys, now, entries_max, *bounds))
        return int(reply[2])

    async def backlog(self, at: LogAddress, archived: int, now: ScriptTime) -> HotBacklog:
        """What of the log waits to be archived, given that it is archived up to there."""
        keys = _readable(at)[:2]
        reply = checked(await self._pipeline.read("measure_backlog", keys, now, archived))
        return HotBacklog(reply[1], reply[2], bool(reply[3]), reply[4], reply[5])

    async def sample_load(self, at: LogAddress, now: ScriptTime) -> Load | None:
        """What the log took over the last whole window; None before there was one."""
        quiet_records = int(limits.ON_DEMAND_QUIET * limits.ON_DEMAND_SHARD_RECORDS)
        quiet_bytes = int(limits.ON_DEMAND_QUIET * limits.ON_DEMAND_SHARD_BYTES)
        window_ms = limits.ON_DEMAND_WINDOW_MS
        reply = checked(
            await self._pipeline.write(
                "sample_load", [_meta(at)], now, window_ms, quiet_records, quiet_bytes
            )
        )
        return Load(*reply[2:]) if reply[1] else None

    async def latest_of_key(self, at: LogAddress, key: str) -> LogRecord | bool:
        """The newest record of a key that the log's index knows; False when the log never had one, True
        when it had one that has expired, or may have had one."""
        keys = log_keys(at.namespace, at.log_id)
        names = [keys[0], keys[1], keys[6]]
        reply = checked(await self._pipeline.read("latest_of_key", names, key))
        if reply[1] < 0:
            return bool(reply[1] == -2)
        return _records_from(reply[1], [reply[2]], 1)[0]

    async def tidy_keys(self, at: LogAddress, keys_max: int) -> int:
        """Forget some keys whose newest record has expired; gives their number."""
        keys = log_keys(at.namespace, at.log_id)
        reply = checked(await self._pipeline.write("tidy_keys", [keys[1], keys[6]], keys_max))
        return int(reply[1])

    async def truncate(self, at: LogAddress, before: int, entries_max: int) -> int:
        """Forget the records before an offset; gives the oldest readable one. Raises OffsetOutOfRange."""
        keys = log_keys(at.namespace, at.log_id)[:2]
        reply = checked(await self._pipeline.write("truncate_log", keys, before, entries_max))
        _, start, next_offset = reply
        if before > next_offset:
            raise OffsetOutOfRange(
                f"The shard's next offset is {next_offset}.", next_offset=next_offset
            )
        return int(start)


def _readable(at: LogAddress) -> tuple[bytes, ...]:
    keys = view_keys if at.is_view else log_keys
    return keys(at.namespace, at.log_id)


def _records_from(offset: int, entries: Sequence[Reply], records_max: int) -> list[LogRecord]:
    records: list[LogRecord] = []
    for entry_id, fields in entries:
        first, arrival_ms = (int(number) for number in entry_id.split(b"-"))
        batches = [fields[index + 1] for index in range(0, len(fields), 2) if fields[index] == b"d"]
        held = decode_batches(batches)
        skipped = max(0, offset - first)
        records += [
            LogRecord(first + index, arrival_ms, held[index]) for index in range(skipped, len(held))
        ]
    return records[:records_max]


def _meta(at: LogAddress) -> bytes:
    return key(at.namespace, at.log_id, "meta").encode()
