"""In-memory service and the transport through which the client calls it."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import httpx

from millstream_client.aio.client import AsyncMillstream
from millstream_client.sync.client import Millstream
from millstream_client.testing.back_test_jobs import BackTestJobs
from millstream_client.testing.calls.registry import dispatch
from millstream_client.testing.codec import Request, Result, encode, read_request
from millstream_client.testing.definitions import Catalog
from millstream_client.testing.groups import MemoryGroup
from millstream_client.testing.problems import Problem, injected, invalid
from millstream_client.testing.queues import MemoryQueue
from millstream_client.testing.requests import MemoryRequests
from millstream_client.testing.streams import MemoryStream
from millstream_client.testing.topics.catalogs import StreamCatalog, TopicCatalog, deliver_all
from millstream_client.testing.topics.routed_log import RoutedLog
from millstream_client.testing.topics.sources import QueueTopic, StreamTopic
from millstream_client.testing.topics.targets import OF_QUEUE
from millstream_client.testing.topics.topic import MemoryTopic

URL = "http://millstream.test"
LONG_POLL_S = 0.05
LOOK_S = 0.005


class MemoryService:
    """Queues with requests, streams, groups and topics in memory, for one test.

    `client` and `async_client` return clients of it. Its clock runs as usual, and `advance` moves it. A call that waits
    for messages or records ends after `long_poll_seconds` of real time, with those that arrived.
    """

    def __init__(self, *, long_poll_seconds: float = LONG_POLL_S) -> None:
        self.queues: Catalog[MemoryQueue] = Catalog("queue", self._make_queue)
        self.topics = TopicCatalog(self._make_topic, self._make_stream_topic)
        self.streams = StreamCatalog(self._make_stream, self.topics.get)
        self.groups: Catalog[MemoryGroup] = Catalog("group", self._make_group)
        self.requests = MemoryRequests(self.now)
        self.back_tests = BackTestJobs(self.now, self.topics.get)
        self.long_poll_seconds = long_poll_seconds
        self.answers: dict[tuple[str, str], tuple[bytes, Result]] = {}
        self._lock = threading.RLock()
        self._ahead_s = 0.0
        self._failures: deque[int] = deque()
        self._losses = 0

    # ── Clients ──

    def client(self, **options: Any) -> Millstream:
        """Return a client of this service; `options` are those of Millstream."""
        return Millstream(URL, transport=MemoryTransport(self), **options)

    def async_client(self, **options: Any) -> AsyncMillstream:
        """Return an asynchronous client of this service."""
        return AsyncMillstream(URL, transport=MemoryTransport(self), **options)

    # ── Time and failures ──

    def now(self) -> float:
        """Return the time in seconds since 1970."""
        return time.time() + self._ahead_s  # noqa: TID251 - the service has its own clock

    def advance(self, seconds: float) -> None:
        """Move the clock: delays, visibility timeouts and retentions pass."""
        with self._lock:
            self._ahead_s += seconds
            deliver_all(self.topics, self)

    def fail_next(self, status: int = 503, *, times: int = 1) -> None:
        """Reject the next attempts with a status; they have no effect."""
        self._failures.extend([status] * times)

    def lose_next(self, *, times: int = 1) -> None:
        """Lose the responses of the next attempts, which do take effect."""
        self._losses += times

    # ── Looking ──

    def queue(self, name: str) -> MemoryQueue:
        """Return a queue, with its `messages` and `dead_letters`. Raises Problem."""
        return self.queues.get(name)

    def stream(self, name: str) -> MemoryStream:
        """Return a stream, with its `records`. Raises Problem."""
        return self.streams.get(name)

    def group(self, name: str) -> MemoryGroup:
        """Return a group, with its `positions`. Raises Problem."""
        return self.groups.get(name)

    def topic(self, name: str) -> RoutedLog:
        """Return a topic, with its `messages` and `routes`. Raises Problem.

        `stream:<name>` is that stream, and `queue:<name>` the topic of the queue's routes.
        """
        return self.topics.get(name)

    # ── Calls ──

    def answer(self, request: Request) -> Result:
        """Return the result of a request."""
        with self._lock:
            try:
                deliver_all(self.topics, self)  # what became due since the last call
                result = dispatch(self, request)
                deliver_all(self.topics, self)
                return result
            except Problem as problem:
                return _result(problem)
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                return _result(invalid("", f"The request is invalid: {error!r}", "invalid"))

    def rejection(self) -> Result | None:
        """Return the failure of this attempt, if a test asked for one."""
        with self._lock:
            if not self._failures:
                return None
            return _result(injected(self._failures.popleft()))

    def is_response_lost(self) -> bool:
        """Return whether the response of this attempt is lost."""
        with self._lock:
            is_lost = self._losses > 0
            self._losses -= is_lost
            return is_lost

    def _make_queue(self, name: str, config: dict[str, Any]) -> MemoryQueue:
        return MemoryQueue(name, config, self.now, self.queues.get)

    def _make_stream(self, name: str, config: dict[str, Any]) -> MemoryStream:
        return MemoryStream(name, config, self.now)

    def _make_topic(self, name: str, config: dict[str, Any]) -> RoutedLog:
        if not name.startswith(OF_QUEUE):
            return MemoryTopic(name, config, self.now, self)
        queue = self.queue(name.removeprefix(OF_QUEUE))
        return QueueTopic(name, config, self.now, self, queue)

    def _make_stream_topic(self, stream: str) -> RoutedLog:
        return StreamTopic(self.streams.get(stream), self.now, self)

    def _make_group(self, name: str, config: dict[str, Any]) -> MemoryGroup:
        return MemoryGroup(name, config, self.now, self.streams.get)


def _result(problem: Problem) -> Result:
    return Result(problem.fields, problem.status)


class MemoryTransport(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Transport of httpx, synchronous and asynchronous, to an in-memory service."""

    def __init__(self, service: MemoryService) -> None:
        self._service = service

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a request, and wait for messages or records in this thread."""
        request.read()
        attempt = _Attempt(self._service, request)
        while attempt.is_waiting():
            time.sleep(LOOK_S)
        return attempt.response()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a request, and wait for messages or records on the loop."""
        await request.aread()
        attempt = _Attempt(self._service, request)
        while attempt.is_waiting():  # noqa: ASYNC110 - threads may add messages, too
            await asyncio.sleep(LOOK_S)
        return attempt.response()


class _Attempt:
    """One attempt: its result, and how long it still waits for another."""

    def __init__(
        self,
        service: MemoryService,
        request: httpx.Request,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._service = service
        self._http = request
        self._request = read_request(request)
        self._now = now
        self._result = service.rejection()
        self._is_rejected = self._result is not None
        self._until = now() + service.long_poll_seconds

    def is_waiting(self) -> bool:
        """Ask for the result; return whether it is empty and another may follow."""
        if self._is_rejected:
            return False
        self._result = self._service.answer(self._request)
        left = self._until - self._now()
        return self._result.wait_s > 0 and left > 0

    def response(self) -> httpx.Response:
        """Return the response, unless it is lost."""
        assert self._result is not None, "is_waiting was called before"
        if not self._is_rejected and self._service.is_response_lost():
            raise httpx.ReadError("The test lost the response.", request=self._http)
        return encode(self._request, self._result)
