"""A stream's shard, and what every log has: the typed side of the log scripts."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from storage.domain import limits
from storage.domain.clock import SERVER_TIME, ScriptTime
from storage.domain.errors import (
    FenceMismatch,
    OffsetOutOfRange,
)
from storage.domain.log.record_batch import decode_batches
from storage.domain.streams.lineage import ShardClosedTo, pack_children, unpack_children
from storage.domain.streams.load_scaling import Load
from storage.domain.streams.stream import LogRecord, Shard
from storage.redis.keys import LogAddress, every_key, key, log_keys, queue_keys, view_keys
from storage.redis.queues.script_args import as_stream_record
from storage.redis.streams.append import AppendPart, Appends, PartAppended
from storage.redis.transport.client import Reply
from storage.redis.transport.pipeline import Pipeline
from storage.redis.transport.script_status import checked

_state_decoder = msgspec.msgpack.Decoder(tuple[Any, ...])

ProducerState = tuple[Any, ...]
"""(epoch, last sequence, touched ms, (first sequence, records, offset)…), the newest batch last."""


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


class LogOpen(Exception):
    """The log still takes records, so what it remembers is not final."""


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
        await self._pipeline.write("tombstone_log", every_key(at.namespace, at.log_id))

    async def forget(self, at: LogAddress) -> None:
        """Drop a tombstone."""
        await self._pipeline.write("delete_log", [_meta(at)])

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
        reply = checked(await self._pipeline.read("get_producer", keys, producer_id))
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

    async def weigh(self, at: LogAddress) -> int:
        """The bytes of log that it holds; 0 for one that is not there."""
        return int(await self._pipeline.read("measure_log_bytes", _readable(at)[:2]))

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
                "measure_shard_load", [_meta(at)], now, window_ms, quiet_records, quiet_bytes
            )
        )
        return Load(*reply[2:]) if reply[1] else None

    async def latest_of_key(self, at: LogAddress, key: str) -> LogRecord | bool:
        """The newest record of a key that the log's index knows; False when the log never had one, True
        when it had one that has expired, or may have had one."""
        keys = log_keys(at.namespace, at.log_id)
        names = [keys[0], keys[1], keys[6]]
        reply = checked(await self._pipeline.read("get_latest_of_key", names, key))
        if reply[1] < 0:
            return bool(reply[1] == -2)
        return _records_from(reply[1], [reply[2]], 1)[0]

    async def tidy_keys(self, at: LogAddress, keys_max: int) -> int:
        """Forget some keys whose newest record has expired; gives their number."""
        keys = log_keys(at.namespace, at.log_id)
        reply = checked(await self._pipeline.write("sweep_key_index", [keys[1], keys[6]], keys_max))
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
