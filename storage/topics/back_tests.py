"""Back-tests: evaluate a match on the messages of a topic, in a call or in a job."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import attrs
import msgspec

from storage.catalog.catalog import Catalog
from storage.domain import limits
from storage.domain.errors import JobNotFound, JobRefused, ShardNotFound
from storage.domain.jobs import Job, JobKind, JobState
from storage.domain.names import RouteName, TopicName
from storage.domain.replays.replay import OffsetRange
from storage.domain.streams.stream import Gap, GapReason, ShardRead
from storage.domain.topics.back_test import (
    BackTest,
    BackTestEvaluator,
    BackTestResult,
    BackTestSpec,
)
from storage.domain.topics.read_match import check_unmatched
from storage.jobs import Jobs
from storage.streams.read import RecordReader
from storage.streams.record_source import RecordSource
from storage.streams.seek import ranges_between
from storage.topics.of_topic import of_topic
from storage.topics.routes import TopicRoutes

_SLICE_MESSAGES = 250  # evaluated before other calls have their turn


class BackTestJob(msgspec.Struct, frozen=True):
    """Back-test that runs as a job, and its result so far."""

    job: Job
    spec: BackTestSpec
    result: BackTestResult


@attrs.define(eq=False, slots=False, kw_only=True)
class BackTests:
    """Back-tests of matches.

    Callers wait for small ones: a process runs BACK_TESTS_CONCURRENT_MAX of these at a time. A job has no limit.
    """

    _catalog: Catalog
    _routes: TopicRoutes
    _reader: RecordReader
    _jobs: Jobs
    _slots: asyncio.Semaphore = attrs.field(
        factory=lambda: asyncio.Semaphore(limits.BACK_TESTS_CONCURRENT_MAX), init=False
    )

    async def run(self, name: TopicName, test: BackTest) -> BackTestResult:
        """Evaluate the match on the messages that the topic has.

        It ends with the messages that were accepted before the call. Raises MatchInvalid, ValidationFailed, TopicNotFound, RouteNotFound.
        """
        async with of_topic(name):
            spec = await self._specify(name, test)
            evaluator = BackTestEvaluator(name, spec)
            async with self._slots:
                async for within, read in self._reads(name, spec):
                    if not await _evaluate(evaluator, within, read, test.messages_max):
                        break
        return evaluator.result

    async def _specify(self, name: TopicName, test: BackTest) -> BackTestSpec:
        """Fix the messages and matches of a back-test."""
        test.check()
        check_unmatched(name, test.match, "/match")
        compared = await self._compared(name, test)
        stream = await self._catalog.fresh_stream(name.stream)
        ranges = await ranges_between(self._reader, stream, test.start_time_ms, test.end_time_ms)
        return BackTestSpec(
            topic=name.name,
            stream_id=stream.stream_id,
            test=test,
            compared=compared,
            ranges=tuple(ranges),
            piece_messages=limits.BACK_TEST_PIECE_MESSAGES,
        )

    async def _compared(self, name: TopicName, test: BackTest) -> Any:
        if test.compare_with is None:
            return None
        route = await self._routes.get(RouteName(name, test.compare_with))
        check_unmatched(name, route.spec.match, "/compare_with")
        return route.spec.match

    async def _reads(
        self, name: TopicName, spec: BackTestSpec
    ) -> AsyncIterator[tuple[OffsetRange, ShardRead]]:
        """Yield reads of all ranges in turn."""
        source = self._source(name, spec)
        pending = [(within, _reads_of(source, within)) for within in spec.ranges]
        while pending:
            within, reads = pending.pop(0)
            if (read := await anext(reads, None)) is not None:
                pending.append((within, reads))
                yield within, read

    def _source(self, name: TopicName, spec: BackTestSpec) -> RecordSource:
        return RecordSource(self._reader, name.stream, spec.stream_id)

    # Jobs

    async def submit(self, name: TopicName, test: BackTest) -> BackTestJob:
        """Submit a job that evaluates all messages of the topic, or return the open one.

        They are those that were accepted before the call. A topic has one open job: JobRefused if that is of another back-test.
        Raises what `run` does.
        """
        async with of_topic(name):
            spec = await self._specify(name, test)
        job = await self._jobs.submit(
            name.namespace,
            JobKind.BACK_TEST,
            name.name,
            msgspec.to_builtins(spec),
            take_open=True,
        )
        submitted = _back_test_of(job)
        if not submitted.spec.is_same_test(spec):
            detail = f"Job {job.job_id}, another back-test of this topic, is still open."
            raise JobRefused(detail, reason="open", job_id=job.job_id)
        return submitted

    async def get(self, name: TopicName, job_id: str) -> BackTestJob:
        """Return a back-test of the topic that runs as a job. Raises JobNotFound."""
        job = await self._jobs.get(job_id)
        if (job.namespace, job.kind, job.subject) != (name.namespace, JobKind.BACK_TEST, name.name):
            raise JobNotFound
        return _back_test_of(job)

    async def evaluate(
        self, namespace: str, spec: BackTestSpec, within: OffsetRange
    ) -> BackTestResult:
        """Evaluate a piece of a job; the call may be repeated.

        Raises TopicNotFound, StreamRecreated.
        """
        name = TopicName(spec.topic, namespace)
        evaluator = BackTestEvaluator(name, spec)
        async with of_topic(name):
            async for read in _reads_of(self._source(name, spec), within):
                await _evaluate(evaluator, within, read, within.end - within.first)
        return evaluator.result


async def _reads_of(source: RecordSource, within: OffsetRange) -> AsyncIterator[ShardRead]:
    """Yield reads of a range; one without messages if its shard has expired."""
    try:
        async for read in source.reads(within, bytes_max=limits.REPLAY_READ_BYTES):
            yield read
    except ShardNotFound:
        gap = Gap(within.first, within.end, GapReason.EXPIRED)
        yield ShardRead(within.shard, (), within.end, within.end, within.end, 0, gap)


async def _evaluate(
    evaluator: BackTestEvaluator, within: OffsetRange, read: ShardRead, messages_max: int
) -> bool:
    """Evaluate messages of a read, in slices; return False if there are more than permitted.

    Messages of the range that have expired make the result incomplete.
    """
    result, gap = evaluator.result, read.gap
    if gap is not None and gap.reason is GapReason.EXPIRED:
        result.complete = False
    entries = [entry for entry in read.records if entry.offset < within.end]
    for first in range(0, len(entries), _SLICE_MESSAGES):
        part = entries[first : first + _SLICE_MESSAGES]
        permitted = part[: messages_max - result.evaluated]
        evaluator.add(within.shard, permitted)
        if len(permitted) < len(part):
            result.complete = False
            return False
        await asyncio.sleep(0)
    return True


def _back_test_of(job: Job) -> BackTestJob:
    """Return the back-test of a job, whose result is complete once the job is done."""
    spec = msgspec.convert(job.spec, BackTestSpec)
    result = msgspec.convert(job.progress, BackTestResult)
    result.complete = result.complete and job.state is JobState.DONE
    return BackTestJob(job, spec, result)
