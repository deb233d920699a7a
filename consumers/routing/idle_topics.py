"""Idle topics: every message was routed, and the next one starts a router again.

    router ends ──▶ watched ──▶ read once: has a message come meanwhile? ──▶ a message, a closed shard ──▶ router begins
                       └ wake-ups may have been missed ──▶ read again ──────────▲

A router with a tail, buffers and reports takes 40 KB, a read that waits 4 KB, and an idle topic half a kilobyte; most topics of
a deployment have nothing to route most of the time.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Self

import attrs

from storage.concurrency.periodic import periodic
from storage.concurrency.tasks import end, in_batches
from storage.domain import limits
from storage.domain.errors import MillstreamError, StorageBusy, StorageUnavailable
from storage.domain.log.address import LogAddress
from storage.domain.names import LogId, StreamName
from storage.domain.streams.stream import Stream
from storage.streams.read import RecordReader

_RECHECK_S = limits.WAITER_RECHECK_MS / limits.SECOND_MS


@attrs.define(eq=False, weakref_slot=False)
class IdleTopic:
    """Topic without messages behind its stored positions.

    `positions` are pairs of a shard and an offset, which are smaller than a mapping. `routes_version`: version
    of the routes as of which nothing is left to do.
    """

    name: StreamName
    stream_id: LogId
    log_ids: tuple[LogId, ...]
    positions: tuple[tuple[int, int], ...]
    routes_version: int
    on_message: Callable[["IdleTopic"], object] | None = None

    @classmethod
    def of(cls, stream: Stream, positions: Mapping[int, int], routes_version: int) -> Self:
        """Return the idle topic of a stream that has a shard for each position."""
        logs = [LogAddress(stream.name.namespace, stream.shard(nth).log_id) for nth in positions]
        channels = tuple(log.channel for log in logs)
        return cls(
            stream.name, stream.stream_id, channels, tuple(positions.items()), routes_version
        )

    def wake(self) -> None:
        """Note that a message may have come."""
        if self.on_message is not None:
            self.on_message(self)


class IdleTopics:
    """Idle topics of a share, to be used as `async with`.

    `on_message` is called with the id of one that may have a message, and is idle no longer.
    """

    def __init__(self, reader: RecordReader, on_message: Callable[[LogId], object]) -> None:
        self._reader = reader
        self._wakeups = reader.wakeups
        self._on_message = on_message
        self._topics: dict[LogId, IdleTopic] = {}
        self._missed = asyncio.Event()
        self._wake = self._start  # one object for all

    async def __aenter__(self) -> Self:
        self._wakeups.on_missed.append(self._missed.set)
        recheck = periodic(
            _RECHECK_S, self._recheck, "idle-topics", wake=self._missed, delay_first=True
        )
        self._task = asyncio.create_task(recheck)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._wakeups.on_missed.remove(self._missed.set)
        for stream_id in [*self._topics]:
            self.discard(stream_id)
        await end(self._task)

    def __len__(self) -> int:
        return len(self._topics)

    def __contains__(self, stream_id: LogId) -> bool:
        return stream_id in self._topics

    def is_idle(self, stream: Stream) -> bool:
        """Return whether a topic is idle, and its routes have not changed since."""
        topic = self._topics.get(stream.stream_id)
        return topic is not None and topic.routes_version >= stream.routes_version

    async def add(self, topic: IdleTopic) -> bool:
        """Add a topic; return whether it is idle still. Raises what reading it does."""
        topic.on_message = self._wake
        self._topics[topic.stream_id] = topic
        self._wakeups.watch(topic)
        try:
            await self._check(topic)
        except BaseException:
            self.discard(topic.stream_id)
            raise
        return topic.stream_id in self._topics

    def discard(self, stream_id: LogId) -> None:
        """Remove a topic, if it is here."""
        if (topic := self._topics.pop(stream_id, None)) is not None:
            self._wakeups.unwatch(topic)

    def retain(self, streams: dict[LogId, Stream]) -> None:
        """Remove the topics that are not among these."""
        for stream_id in self._topics.keys() - streams.keys():
            self.discard(stream_id)

    def _start(self, topic: IdleTopic) -> None:
        if self._topics.get(topic.stream_id) is topic:
            self.discard(topic.stream_id)
            self._on_message(topic.stream_id)

    async def _recheck(self) -> int:
        await in_batches(self._topics.values(), self._check_again, limits.ROUTER_RECHECKS_MAX)
        return len(self._topics)

    async def _check_again(self, topic: IdleTopic) -> None:
        if self._topics.get(topic.stream_id) is not topic:
            return
        try:
            await self._check(topic)
        except (StorageUnavailable, StorageBusy):
            return  # until the next time
        except MillstreamError:
            self._start(topic)  # its router states the error

    async def _check(self, topic: IdleTopic) -> None:
        if await self._reader.has_news(topic.name, dict(topic.positions), topic.stream_id):
            self._start(topic)
