"""A stream's shard, and the operations common to all logs: typed wrappers of the scripts."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from storage.domain import limits
from storage.domain.archive import LogBounds
from storage.domain.clock import SERVER_TIME, ScriptTime
from storage.domain.errors import (
    FenceMismatch,
    OffsetOutOfRange,
)
from storage.domain.limits import Limits
from storage.domain.log.address import LogAddress
from storage.domain.log.record_batch import decode_batches
from storage.domain.streams.lineage import ShardClosedTo, pack_children, unpack_children
from storage.domain.streams.load_scaler import Load
from storage.domain.streams.stream import LogRecord, Shard
from storage.hot_store.errors import LogOpen
from storage.hot_store.log_store import (
    AppendPart,
    Extent,
    HotBacklog,
    HotRead,
    LogOpening,
    LogStore,
    PartAppended,
    ProducerState,
    ReadRequest,
)
from storage.redis.keys import every_key, key, log_keys, queue_keys, reader_keys
from storage.redis.queues.script_args import as_stream_record
from storage.redis.streams.append import Appends
from storage.redis.transport.client import Reply
from storage.redis.transport.pipeline import Pipeline
from storage.redis.transport.script_status import checked

_state_decoder = msgspec.msgpack.Decoder(tuple[Any, ...])


class RedisLogStore(LogStore):
    """Log verbs as one script each."""

    def __init__(self, pipeline: Pipeline, limits: Limits) -> None:
        self._pipeline = pipeline
        self._limits = limits

    async def create(self, log: LogAddress, opening: LogOpening) -> bool:
        result = await self._pipeline.write("create_log", [_meta(log)], *opening)
        return bool(result >= 0)

    async def advance(self, log: LogAddress, opening: LogOpening) -> None:
        await self._pipeline.write("advance_log", [_meta(log)], *opening)

    async def close(
        self, log: LogAddress, children: Sequence[Shard], fence: str, store_epoch: int
    ) -> tuple[bool, str]:
        closed = pack_children(children)
        reply = checked(
            await self._pipeline.write("close_log", [_meta(log)], store_epoch, closed, fence)
        )
        return bool(reply[1]), str(reply[2].decode())

    async def set_fence(
        self, log: LogAddress, token: str, expected: str | None, store_epoch: int
    ) -> int:
        unless = ("0", "") if expected is None else ("1", expected)
        reply = checked(
            await self._pipeline.write("set_fence", [_meta(log)], store_epoch, token, *unless)
        )
        match reply[1:]:
            case [3, children]:
                raise ShardClosedTo(unpack_children(children))
            case [4, other]:
                raise FenceMismatch(token=other.decode())
            case _:
                return int(reply[2])

    async def raise_ceiling(self, log: LogAddress, ceiling: int, store_epoch: int) -> None:
        await self._pipeline.write("raise_ceiling", [_meta(log)], ceiling, store_epoch)

    async def tombstone(self, log: LogAddress) -> None:
        await self._pipeline.write("tombstone_log", every_key(log.namespace, log.log_id))

    async def delete_tombstone(self, log: LogAddress) -> None:
        await self._pipeline.write("delete_log", [_meta(log)])

    def append(
        self, log: LogAddress, part: AppendPart, *, store_epoch: int, indexed: bool, now: ScriptTime
    ) -> "asyncio.Future[PartAppended]":
        gatherer = Appends(log, store_epoch, now, self._limits, indexed)
        return self._pipeline.gather(gatherer, part, part.size_bytes)

    async def switch_view(self, log: LogAddress, *, on: bool) -> None:
        keys = queue_keys(log.namespace, log.log_id)
        checked(await self._pipeline.write("switch_view", keys, "1" if on else "0"))

    async def recall_producer(self, log: LogAddress, producer_id: str) -> ProducerState | None:
        keys = log_keys(log.namespace, log.log_id)[1:4]
        reply = checked(await self._pipeline.read("get_producer", keys, producer_id))
        if not reply[1]:
            raise LogOpen
        return _state_decoder.decode(reply[2]) if reply[2] else None

    async def read(
        self, log: LogAddress, request: ReadRequest, now: ScriptTime = SERVER_TIME
    ) -> HotRead:
        keys = _reader_keys(log)
        wake = "1" if request.register_waiter else "0"
        run = self._pipeline.write if request.register_waiter else self._pipeline.read
        how, number, most = request.how, request.number, request.records_max
        reply = checked(
            await run("read_log", keys, now, how, number, most, request.bytes_max, wake)
        )
        records = _records_from(reply[4], reply[6:], most)
        if log.is_view:
            records = [as_stream_record(log.log_id, record) for record in records]
        children = unpack_children(reply[5]) if reply[5] else ()
        return HotRead(reply[1], reply[2], reply[3], reply[4], records, children)

    async def extent(self, log: LogAddress) -> Extent:
        keys = _reader_keys(log, 4)
        reply = checked(await self._pipeline.read("measure_log", keys))
        return Extent(reply[1], reply[2], reply[3], bool(reply[4]), bool(reply[5]), reply[6])

    async def weigh(self, log: LogAddress) -> int:
        return int(await self._pipeline.read("measure_log_bytes", _reader_keys(log)))

    async def trim(
        self, log: LogAddress, bounds: LogBounds, entries_max: int, now: ScriptTime
    ) -> int:
        keys = _reader_keys(log)
        arguments = ["" if bound is None else bound for bound in bounds]
        reply = checked(await self._pipeline.write("trim_log", keys, now, entries_max, *arguments))
        return int(reply[2])

    async def backlog(self, log: LogAddress, archived: int, now: ScriptTime) -> HotBacklog:
        keys = _reader_keys(log)
        reply = checked(await self._pipeline.read("measure_backlog", keys, now, archived))
        return HotBacklog(reply[1], reply[2], bool(reply[3]), reply[4], reply[5])

    async def sample_load(self, log: LogAddress, now: ScriptTime) -> Load | None:
        quiet_records = int(limits.ON_DEMAND_MERGE_LOAD * limits.ON_DEMAND_SHARD_RECORDS)
        quiet_bytes = int(limits.ON_DEMAND_MERGE_LOAD * limits.ON_DEMAND_SHARD_BYTES)
        window_ms = limits.ON_DEMAND_WINDOW_MS
        reply = checked(
            await self._pipeline.write(
                "measure_shard_load", [_meta(log)], now, window_ms, quiet_records, quiet_bytes
            )
        )
        return Load(*reply[2:]) if reply[1] else None

    async def latest_of_key(self, log: LogAddress, key: str) -> LogRecord | bool:
        keys = log_keys(log.namespace, log.log_id)
        names = [keys[0], keys[1], keys[6]]
        reply = checked(await self._pipeline.read("get_latest_of_key", names, key))
        if reply[1] < 0:
            return bool(reply[1] == -2)
        return _records_from(reply[1], [reply[2]], 1)[0]

    async def sweep_key_index(self, log: LogAddress, keys_max: int) -> int:
        keys = log_keys(log.namespace, log.log_id)
        reply = checked(await self._pipeline.write("sweep_key_index", [keys[1], keys[6]], keys_max))
        return int(reply[1])

    async def truncate(self, log: LogAddress, before: int, entries_max: int) -> int:
        keys = log_keys(log.namespace, log.log_id)[:2]
        reply = checked(await self._pipeline.write("truncate_log", keys, before, entries_max))
        _, start, next_offset = reply
        if before > next_offset:
            raise OffsetOutOfRange(
                f"The shard's next offset is {next_offset}.", next_offset=next_offset
            )
        return int(start)


def _reader_keys(log: LogAddress, count: int = 2) -> tuple[bytes, ...]:
    return reader_keys(log.namespace, log.log_id, is_view=log.is_view, count=count)


def _records_from(offset: int, entries: Sequence[Reply], records_max: int) -> list[LogRecord]:
    records: list[LogRecord] = []
    for entry_id, fields in entries:
        first, arrival_ms = (int(number) for number in entry_id.split(b"-"))
        batches = [fields[index + 1] for index in range(0, len(fields), 2) if fields[index] == b"d"]
        decoded = decode_batches(batches)
        skipped = max(0, offset - first)
        records += [
            LogRecord(first + index, arrival_ms, decoded[index])
            for index in range(skipped, len(decoded))
        ]
    return records[:records_max]


def _meta(log: LogAddress) -> bytes:
    return key(log.namespace, log.log_id, "meta").encode()
