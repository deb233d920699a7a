"""Back-tests: evaluate a match on the messages that a topic has."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence

import attrs

from storage.catalog.catalog import Catalog
from storage.domain import limits
from storage.domain.errors import ShardNotFound
from storage.domain.names import RouteName, TopicName
from storage.domain.replays.replay import OffsetRange
from storage.domain.streams.lineage import have_passed
from storage.domain.streams.stream import LogRecord, ShardRead, Stream
from storage.domain.topics.back_test import BackTest, BackTestResult
from storage.domain.topics.message_id import TopicMessageId
from storage.domain.topics.read_match import (
    StoredMatch,
    StoredMessage,
    check_unmatched,
)
from storage.streams.read import RecordReader
from storage.streams.record_source import RecordSource
from storage.streams.seek import positions_since
from storage.topics.of_topic import of_topic
from storage.topics.routes import TopicRoutes

_SLICE_MESSAGES = 250  # evaluated before other calls have their turn


@attrs.define(eq=False, slots=False, kw_only=True)
class BackTests:
    """Back-tests of matches. A process runs BACK_TESTS_CONCURRENT_MAX at a time; others wait."""

    _catalog: Catalog
    _routes: TopicRoutes
    _reader: RecordReader
    _slots: asyncio.Semaphore = attrs.field(
        factory=lambda: asyncio.Semaphore(limits.BACK_TESTS_CONCURRENT_MAX), init=False
    )

    async def run(self, name: TopicName, test: BackTest) -> BackTestResult:
        """Evaluate the match on the messages that the topic has.

        It ends with the messages that were accepted before the call. Raises MatchInvalid, ValidationFailed, TopicNotFound, RouteNotFound.
        """
        test.check()
        check_unmatched(name, test.match, "/match")
        evaluation = _Evaluation(name, test, await self._compared(name, test))
        async with of_topic(name), self._slots:
            stream = await self._catalog.fresh_stream(name.stream)
            async for shard, read in self._reads(stream, test):
                await evaluation.add(stream, shard, read.records)
                if evaluation.is_full:
                    break
        return evaluation.result

    async def _compared(self, name: TopicName, test: BackTest) -> StoredMatch | None:
        if test.compare_with is None:
            return None
        route = await self._routes.get(RouteName(name, test.compare_with))
        check_unmatched(name, route.spec.match, "/compare_with")
        return StoredMatch(route.spec.match)

    async def _reads(self, stream: Stream, test: BackTest) -> AsyncIterator[tuple[int, ShardRead]]:
        """Yield reads of all shards in turn."""
        source = RecordSource(self._reader, stream.name, stream.stream_id)
        pending = [
            (within.shard, source.reads(within, bytes_max=limits.REPLAY_READ_BYTES))
            for within in await self._ranges(stream, test)
        ]
        while pending:
            shard, reads = pending.pop(0)
            try:
                read = await anext(reads, None)
            except ShardNotFound:  # it has expired
                continue
            if read is not None:
                pending.append((shard, reads))
                yield shard, read

    async def _ranges(self, stream: Stream, test: BackTest) -> list[OffsetRange]:
        start_ms = test.start_time_ms or 0
        start = await positions_since(
            self._reader, self._catalog, stream.name, start_ms, stream.stream_id
        )
        states = await self._reader.shards(stream.name, stream.stream_id)
        return [
            OffsetRange(shard, max(start.get(shard, 0), state.start), state.next)
            for state in states
            if not have_passed(stream, start, {(shard := state.shard.index): state.next})
        ]


class _Evaluation:
    """Results of a back-test so far."""

    def __init__(self, topic: TopicName, test: BackTest, compared: StoredMatch | None) -> None:
        self._topic = topic
        self._test = test
        self._match = StoredMatch(test.match)
        self._compared = compared
        self.result = BackTestResult()

    @property
    def is_full(self) -> bool:
        """Return whether a message was left out, since there are too many."""
        return not self.result.complete

    async def add(self, stream: Stream, shard: int, entries: Sequence[LogRecord]) -> None:
        """Evaluate messages of a shard, in slices, up to the end time and number."""
        for first in range(0, len(entries), _SLICE_MESSAGES):
            for entry in self._within(entries[first : first + _SLICE_MESSAGES]):
                if self.result.evaluated == self._test.messages_max:
                    self.result.complete = False
                    return
                self._evaluate(TopicMessageId(stream.stream_id, shard, entry.offset), entry)
            await asyncio.sleep(0)

    def _within(self, entries: Iterable[LogRecord]) -> Iterable[LogRecord]:
        end_ms = self._test.end_time_ms
        return (one for one in entries if end_ms is None or one.arrival_ms < end_ms)

    def _evaluate(self, message_id: TopicMessageId, entry: LogRecord) -> None:
        result, message = self.result, StoredMessage(self._topic, entry.record)
        result.evaluated += 1
        failed = self._match.explain(message)
        is_taken = not failed
        if is_taken:
            result.matched += 1
            self._sample(result.matched_ids, message_id)
        for path in {condition.path for condition in failed}:
            result.failed_by_path[path] = result.failed_by_path.get(path, 0) + 1
        if self._compared is None or self._compared.takes(message) is is_taken:
            return
        if is_taken:
            result.gained += 1
            self._sample(result.gained_ids, message_id)
        else:
            result.lost += 1
            self._sample(result.lost_ids, message_id)

    def _sample(self, ids: list[TopicMessageId], message_id: TopicMessageId) -> None:
        if len(ids) < self._test.samples_max:
            ids.append(message_id)
