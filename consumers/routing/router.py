"""Router: a process that routes its share of all topics.

Topics are divided into ROUTER_LEASES shares. For each share that has a topic, the process stands for the share's lease, and routes
its topics while it has the lease.
"""

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Callable

from consumers.feeds.feed import Feeds
from consumers.routing.idle_topics import IdleTopics
from consumers.routing.topic_router import RoutingContext, TopicRouter, ignore_counts
from storage.bootstrap import Storage
from storage.concurrency.periodic import periodic
from storage.concurrency.tasks import end
from storage.domain import limits
from storage.domain.errors import MillstreamError
from storage.domain.names import LogId
from storage.domain.streams.stream import Stream
from storage.domain.topics.routing import RouteCounts

logger = logging.getLogger(__name__)

_RELOAD_S = limits.ROUTER_RELOAD_MS / limits.SECOND_MS


class Router:
    """Router of the shares that this process has the leases of, until it is cancelled."""

    def __init__(
        self, storage: Storage, note_finished: Callable[[RouteCounts], None] = ignore_counts
    ) -> None:
        self._storage = storage
        starts = asyncio.Semaphore(limits.ROUTER_STARTS_MAX)
        feeds = Feeds(storage.record_reader, {})
        self._context = RoutingContext(storage, feeds, note_finished, starts)
        self._holder = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self._shares: dict[int, _Share] = {}

    async def run(self) -> None:
        """Route until cancelled; then release every lease."""
        try:
            await periodic(_RELOAD_S, self._reload, "topics")
        finally:
            await end(*(share.task for share in self._shares.values()))

    async def _reload(self) -> int:
        """Stand for the leases of shares that have a topic now."""
        topics = await self._storage.topic_routing.topics()
        for number in self._shares.keys() - topics.keys():
            await end(self._shares.pop(number).task)
        for number, streams in topics.items():
            if number not in self._shares:
                self._shares[number] = _Share(self._context, number, self._holder)
            self._shares[number].assign(streams)
        return len(topics)


class _Share:
    """Share of the topics: a candidate for its lease, and their routers while it has it."""

    def __init__(self, context: RoutingContext, number: int, holder: str) -> None:
        self._context = context
        self._number = number
        self._holder = holder
        self._streams: dict[LogId, Stream] = {}
        self._routers: dict[LogId, asyncio.Task[None]] = {}
        self._intakes: dict[LogId, asyncio.Task[None]] = {}
        self.idle = IdleTopics(context.storage.record_reader, self._start)
        self._fence: int | None = None
        self.task = asyncio.create_task(self._stand())

    def assign(self, streams: list[Stream]) -> None:
        """Route these topics, and no others, while the share's lease is held."""
        self._streams = {stream.stream_id: stream for stream in streams}
        self._start_and_stop()

    async def _stand(self) -> None:
        while True:
            try:
                routing = self._context.storage.topic_routing
                await routing.election(self._number, self._holder).run(self._lead)
            except MillstreamError as error:
                facts = {"share": self._number, "reason": error.detail}
                logger.warning("router_deferred", extra=facts)
            except Exception:  # it must not keep other shares from being routed
                logger.exception("router_failed", extra={"share": self._number})
            await asyncio.sleep(_RELOAD_S)

    async def _lead(self, fence: int) -> None:
        self._fence = fence
        async with self.idle:
            try:
                self._start_and_stop()
                await asyncio.get_running_loop().create_future()
            finally:
                self._fence = None
                routers, self._routers = self._routers, {}
                intakes, self._intakes = self._intakes, {}
                await end(*routers.values(), *intakes.values())

    def _start_and_stop(self) -> None:
        if self._fence is None:
            return
        for tasks in (self._routers, self._intakes):
            for stream_id in [one for one in tasks if one not in self._streams]:
                tasks.pop(stream_id).cancel()
        self.idle.retain(self._streams)
        for stream_id, stream in self._streams.items():
            if not self.idle.is_idle(stream):
                self.idle.discard(stream_id)
                self._start(stream_id)
        for stream_id, stream in self._streams.items():
            if stream.name.topic.queue is not None and stream_id not in self._intakes:
                self._intakes[stream_id] = asyncio.create_task(self._take(stream_id))

    def _start(self, stream_id: LogId) -> None:
        """Route a topic, unless that is done already."""
        if self._fence is not None and stream_id not in self._routers:
            router = asyncio.create_task(self._route(stream_id, self._fence))
            self._routers[stream_id] = router

    async def _route(self, stream_id: LogId, fence: int) -> None:
        """Route a topic until it is idle, or fails; then it begins again at the next reload."""
        name = self._streams[stream_id].name
        is_idle = False
        try:
            while not is_idle:
                router = TopicRouter(self._context, self._streams[stream_id], fence)
                is_idle = await self.idle.add(await router.run())
        except MillstreamError as error:
            facts = {"topic": str(name), "reason": error.detail}
            logger.info("topic_deferred", extra=facts)
        except Exception:  # one topic's failure never affects another's
            logger.exception("topic_failed", extra={"topic": str(name)})
        finally:
            if self._routers.get(stream_id) is asyncio.current_task():
                del self._routers[stream_id]

    async def _take(self, stream_id: LogId) -> None:
        """Transfer the messages of the queue whose routes a topic has, whatever fails."""
        intake, queue = (
            self._context.storage.queue_intake,
            self._streams[stream_id].name.topic.queue,
        )
        while True:
            try:
                await intake.take(self._streams[stream_id], limits.WAIT_MS_MAX)
                continue
            except MillstreamError as error:
                facts = {"queue": str(queue), "reason": error.detail}
                logger.info("queue_intake_deferred", extra=facts)
            except Exception:  # one queue's failure never affects another's
                logger.exception("queue_intake_failed", extra={"queue": str(queue)})
            await asyncio.sleep(_RELOAD_S)
