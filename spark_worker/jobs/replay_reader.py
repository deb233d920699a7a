"""Ordered reader of a replay's parts: a k-way merge in the order of sending.

A lane is one writer's: the records of its parts, merged by when they arrived, then by shard and offset. Most lanes
have one part, whose records come by offset. Since a part's records are the same whenever they are read, so is a
lane's order.
"""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Sequence

import msgspec

from storage.domain import limits
from storage.domain.errors import ShardNotFound, StorageUnavailable
from storage.domain.replays.replay import PartProgress
from storage.domain.streams.stream import LogRecord, ShardRead
from storage.streams.record_source import RecordSource


class SelectedRecord(msgspec.Struct, frozen=True, gc=False):
    """A record that is to be sent, and its part."""

    part: str
    shard: int
    log_record: LogRecord


class SendBatch(msgspec.Struct, frozen=True):
    """Records that are sent together, and the progress of their parts after that."""

    records: Sequence[SelectedRecord]
    size_bytes: int
    after: Sequence[PartProgress]


class _PartCursor:
    """One part and its read position."""

    def __init__(self, part: PartProgress) -> None:
        self.part = part
        self.buffered: deque[LogRecord] = deque()
        self.next = part.position
        self.expired = part.expired
        self.read = part.read
        self.selected = part.selected
        self.position = part.position

    @property
    def needs_read(self) -> bool:
        """Return whether there is more to read, and no record left of the last read."""
        return not self.buffered and self.next < self.part.reach.end

    def add(self, read: ShardRead) -> None:
        """Keep the records of a read that lie within the part."""
        end = self.part.reach.end
        if read.gap is not None and read.gap.reason == "expired":
            self.expired += max(0, min(read.gap.next, end) - self.next)
        self.buffered.extend(at for at in read.records if at.offset < end)
        self.next = min(read.next_offset, end)

    def end(self) -> None:
        """End a part whose shard no longer exists: what was left of it has expired."""
        self.expired += self.part.reach.end - self.next
        self.next = self.part.reach.end

    def pop(self) -> LogRecord:
        """Return the next record; from here on it counts as done."""
        record = self.buffered.popleft()
        self.read += 1
        self.position = record.offset + 1
        return record

    def state(self) -> PartProgress:
        """Return the part's progress, without the counts of what was sent."""
        position = self.position if self.buffered else self.next
        return msgspec.structs.replace(
            self.part,
            position=position,
            done=position >= self.part.reach.end,
            read=self.read,
            selected=self.selected,
            expired=self.expired,
        )


class OrderedReader:
    """The parts of one writer.

    `records_max`: how many records it may still select.
    """

    def __init__(
        self,
        source: RecordSource,
        parts: Sequence[PartProgress],
        *,
        records_max: int | None = None,
    ) -> None:
        self._source = source
        self._left = records_max
        self._cursors = {part.part: _PartCursor(part) for part in parts if not part.done}
        self._bytes = max(limits.REPLAY_READ_BYTES_MIN, limits.REPLAY_MERGE_BYTES // len(parts))

    async def prefetch(self) -> bool:
        """Read more in every part without records; return whether there is anything to take."""
        wanting = [line for line in self._cursors.values() if line.needs_read]
        for nth in range(0, len(wanting), _READ_CONCURRENCY_MAX):
            batch = wanting[nth : nth + _READ_CONCURRENCY_MAX]
            read = await asyncio.gather(*map(self._read, batch), return_exceptions=True)
            for error in read:  # when all have ended, since the caller reads again after an error
                if error is not None:
                    raise error
        return any(line.buffered for line in self._cursors.values()) or bool(self._unfinished())

    def _unfinished(self) -> list[_PartCursor]:
        return [line for line in self._cursors.values() if line.state() != line.part]

    async def _read(self, line: _PartCursor) -> None:
        shard = line.part.reach.shard
        most = min(limits.REPLAY_READ_BYTES, self._bytes)
        while line.needs_read:
            try:
                read = await self._source.read(
                    shard,
                    line.next,
                    records_max=min(limits.REPLAY_READ_RECORDS, line.part.reach.end - line.next),
                    bytes_max=most,
                )
            except ShardNotFound:
                line.end()
                return
            if read.next_offset <= line.next and not read.records:
                raise StorageUnavailable(
                    f"Shard {shard} ends before the end of the replay's range."
                )
            line.add(read)

    def take(
        self,
        records_max: int,
        bytes_max: int,
        is_due: Callable[[LogRecord], bool] = lambda _: True,
    ) -> SendBatch:
        """Return the next records to send, without those that are not due.

        Up to `records_max` and `bytes_max`, or one larger record. There may be none, when no record that was looked at was
        selected.
        """
        batch: list[SelectedRecord] = []
        size = looked = 0
        order = [self._rank(line) for line in self._cursors.values() if line.buffered]
        heapq.heapify(order)
        while order and len(batch) < records_max and looked < limits.REPLAY_READ_RECORDS:
            *_, name = order[0]
            line = self._cursors[name]
            record = line.buffered[0]
            if self._left == 0:
                self._stop()
                break
            is_meant = self._source.selects(line.part.reach.shard, record)
            fits = not batch or size + record.record.size_bytes <= bytes_max
            if is_meant and not (fits and is_due(record)):
                break
            line.pop()
            looked += 1
            if is_meant:
                batch.append(SelectedRecord(name, line.part.reach.shard, record))
                size += record.record.size_bytes
                line.selected += 1
                self._left = None if self._left is None else self._left - 1
            if line.buffered:
                heapq.heapreplace(order, self._rank(line))
            elif line.needs_read:
                break  # the part's next records may have arrived before the others'
            else:
                heapq.heappop(order)
        if self._left == 0:
            self._stop()
        return SendBatch(batch, size, [line.state() for line in self._unfinished()])

    def peek(self) -> LogRecord | None:
        """Return the next record to look at, of those that were read."""
        order = [self._rank(line) for line in self._cursors.values() if line.buffered]
        return self._cursors[min(order)[-1]].buffered[0] if order else None

    def done(self, after: Sequence[PartProgress]) -> None:
        """Store the progress of parts; those that are done are left out from now on."""
        for part in after:
            if part.done:
                del self._cursors[part.part]
            else:
                self._cursors[part.part].part = part

    def _stop(self) -> None:
        """End the window here: the maximum number of records is selected."""
        for line in self._cursors.values():
            position = line.position if line.buffered else line.next
            reach = msgspec.structs.replace(line.part.reach, end=position)
            line.part = msgspec.structs.replace(line.part, reach=reach)
            line.buffered.clear()
            line.next = position

    def _rank(self, line: _PartCursor) -> tuple[int, int, int, str]:
        record = line.buffered[0]
        return record.arrival_ms, line.part.reach.shard, record.offset, line.part.part


_READ_CONCURRENCY_MAX = 16
