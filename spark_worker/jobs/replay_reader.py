"""Ordered reader of a replay's parts: a k-way merge of columns in the order of sending.

A lane is one writer's: the records of its parts, merged by when they arrived, then by shard and offset. Most lanes
have one part, whose records come by offset. Since a part's records are the same whenever they are read, so is a
lane's order.

Records stay columns. A batch is a list of runs, each a slice of what was read of one part; only a filter, and a merge of
parts that arrived at the same time, look at single records.
"""

import asyncio
import heapq
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

import msgspec

from storage.domain import limits
from storage.domain.errors import ShardNotFound, StorageUnavailable
from storage.domain.replays.replay import PartProgress
from storage.domain.streams.record_columns import NO_RECORDS, ColumnRead, RecordColumns
from storage.streams.column_source import ColumnSource

_READ_CONCURRENCY_MAX = 16
_Rank = tuple[int, int, int, str]
_NO_SIZES = (0,)


class Run(msgspec.Struct, frozen=True):
    """Records of one part that are sent together."""

    part: str
    shard: int
    columns: RecordColumns


class SendBatch(msgspec.Struct, frozen=True):
    """Records that are sent together, and the progress of their parts after that.

    `after` has the counts of what was read, not of what was sent.
    """

    runs: Sequence[Run]
    size_bytes: int
    after: Sequence[PartProgress]

    def __len__(self) -> int:
        return sum(len(run.columns) for run in self.runs)


class _PartCursor:
    """One part, the columns that were read ahead, and the position in them."""

    def __init__(self, part: PartProgress) -> None:
        self.part = part
        self.next = part.position
        self.expired = part.expired
        self.read = part.read
        self.selected = part.selected
        self.position = part.position
        self._columns = NO_RECORDS
        self._sizes: Sequence[int] = _NO_SIZES  # of the first n selected records, for each n
        self._low = 0
        self._counted = part.position  # records before it count as read

    @property
    def is_buffered(self) -> bool:
        """Return whether there is a record to send."""
        return self._low < len(self._columns)

    @property
    def needs_read(self) -> bool:
        """Return whether there is more to read, and no record left of the last read."""
        return not self.is_buffered and self.next < self.part.reach.end

    def add(self, read: ColumnRead, selected: Sequence[int] | None) -> None:
        """Keep the records of a read that are `selected`; None for all of them."""
        if read.gap is not None and read.gap.reason == "expired":
            self.expired += max(0, min(read.gap.next, self.part.reach.end) - self.next)
        columns = read.columns
        self._counted = columns.offsets[0] if columns.offsets else read.next_offset
        self._columns = columns if selected is None else columns.chosen(selected)
        self._sizes = (*_NO_SIZES, *accumulate(self._columns.content.sizes()))
        self._low = 0
        self.next = read.next_offset
        if not self.is_buffered:
            self._count(self.next)

    def end(self) -> None:
        """End a part whose shard no longer exists: what was left of it has expired."""
        self.expired += self.part.reach.end - self.next
        self.next = self.part.reach.end

    def rank(self, nth: int) -> _Rank:
        """Return the place in the lane's order of the nth of the next records."""
        place = self._low + nth
        arrival_ms = self._columns.arrivals_ms[place]
        return arrival_ms, self.part.reach.shard, self._columns.offsets[place], self.part.part

    def leading(self, most: int, limit: _Rank | None, is_due: Callable[[int], bool] | None) -> int:
        """Return how many of the next records, up to `most`, come before `limit` and are due."""
        count = min(most, len(self._columns) - self._low)
        if limit is not None:
            count = next((nth for nth in range(count) if self.rank(nth) > limit), count)
        if is_due is not None:
            arrivals_ms = self._columns.arrivals_ms[self._low : self._low + count]
            count = next((nth for nth, at_ms in enumerate(arrivals_ms) if not is_due(at_ms)), count)
        return count

    def fitting(self, bytes_max: int) -> int:
        """Return how many of the next records have no more than `bytes_max` bytes."""
        fitting = bisect_right(self._sizes, self._sizes[self._low] + bytes_max) - 1 - self._low
        return max(0, fitting)

    def size_bytes(self, count: int) -> int:
        """Return the size of the next `count` records."""
        return self._sizes[self._low + count] - self._sizes[self._low]

    def pop(self, count: int) -> Run:
        """Return the next records; from here on they count as done."""
        high = self._low + count
        columns = self._columns.between(self._low, high)
        self._low = high
        self.selected += count
        self.position = columns.offsets[-1] + 1 if self.is_buffered else self.next
        self._count(self.position)
        return Run(self.part.part, self.part.reach.shard, columns)

    def _count(self, position: int) -> None:
        """Count the records before a position as read: a read has no holes."""
        self.read += position - self._counted
        self._counted = position

    def stop(self) -> None:
        """End the part at its position."""
        position = self.position if self.is_buffered else self.next
        reach = msgspec.structs.replace(self.part.reach, end=position)
        self.part = msgspec.structs.replace(self.part, reach=reach)
        self._columns, self._sizes, self._low = NO_RECORDS, _NO_SIZES, 0
        self.next = position

    def state(self) -> PartProgress:
        """Return the part's progress, without the counts of what was sent."""
        position = self.position if self.is_buffered else self.next
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
        source: ColumnSource,
        parts: Sequence[PartProgress],
        *,
        records_max: int | None = None,
    ) -> None:
        self._source = source
        self._left = records_max
        self._cursors = {part.part: _PartCursor(part) for part in parts if not part.done}
        merged = limits.REPLAY_MERGE_BYTES // len(parts)
        self._bytes_max = min(limits.REPLAY_READ_BYTES, max(limits.REPLAY_READ_BYTES_MIN, merged))

    async def prefetch(self) -> bool:
        """Read once in every part without records; return whether there is anything to take."""
        wanting = [cursor for cursor in self._cursors.values() if cursor.needs_read]
        for nth in range(0, len(wanting), _READ_CONCURRENCY_MAX):
            batch = wanting[nth : nth + _READ_CONCURRENCY_MAX]
            read = await asyncio.gather(*map(self._read, batch), return_exceptions=True)
            for error in read:  # when all have ended, since the caller reads again after an error
                if error is not None:
                    raise error
        return bool(self._cursors)

    async def _read(self, cursor: _PartCursor) -> None:
        shard, end = cursor.part.reach.shard, cursor.part.reach.end
        end = min(end, cursor.next + limits.REPLAY_READ_RECORDS)
        try:
            read = await self._source.read(shard, cursor.next, end=end, bytes_max=self._bytes_max)
        except ShardNotFound:
            cursor.end()
            return
        if read.next_offset <= cursor.next:
            raise StorageUnavailable(f"Shard {shard} ends before the end of the replay's range.")
        cursor.add(read, self._source.selected(shard, read.columns))

    def take(
        self, records_max: int, bytes_max: int, is_due: Callable[[int], bool] | None = None
    ) -> SendBatch:
        """Return the next records to send, without those that are not due by their arrival.

        Up to `records_max` and `bytes_max`, or one larger record. There may be none, when no record that was read was
        selected.
        """
        runs: list[Run] = []
        records = size = 0
        order = self._order()
        while order and records < records_max and self._left != 0:
            cursor = self._cursors[order[0][-1]]
            fitting = cursor.fitting(bytes_max - size)
            most = min(records_max - records, fitting if runs else max(1, fitting))
            most = most if self._left is None else min(most, self._left)
            count = cursor.leading(most, min(order[1:3], default=None), is_due)
            if not count:
                break
            size += cursor.size_bytes(count)
            records += count
            self._left = None if self._left is None else self._left - count
            runs.append(cursor.pop(count))
            if cursor.is_buffered:
                heapq.heapreplace(order, cursor.rank(0))
            elif cursor.needs_read:
                break  # the part's next records may have arrived before the others'
            else:
                heapq.heappop(order)
        if self._left == 0:
            for cursor in self._cursors.values():
                cursor.stop()
        return SendBatch(runs, size, self._progress())

    def _progress(self) -> list[PartProgress]:
        """Return the parts that have moved since the last batch; forget those that are done."""
        moved: list[PartProgress] = []
        for cursor in [*self._cursors.values()]:
            state = cursor.state()
            if state != cursor.part:
                moved.append(state)
                cursor.part = state
            if state.done:
                del self._cursors[state.part]
        return moved

    def _order(self) -> list[_Rank]:
        """Return a heap of the next record of each part; empty while a part must be read."""
        cursors = self._cursors.values()
        if any(cursor.needs_read for cursor in cursors):
            return []
        order = [cursor.rank(0) for cursor in cursors if cursor.is_buffered]
        heapq.heapify(order)
        return order

    def next_arrival_ms(self) -> int | None:
        """Return when the next record to look at arrived, of those that were read."""
        ranks = [cursor.rank(0) for cursor in self._cursors.values() if cursor.is_buffered]
        return min(ranks)[0] if ranks else None
