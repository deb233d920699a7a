"""Router of one topic: reads each shard once, and copies messages to buffers of targets.

    tail ──▶ chunk ──▶ routes of each record ──▶ buffers      what lies before the router's position was sent,
      ▲                                            │         or waits in a buffer
      │                                            ▼ full or paused
      └── caught up ◀── lagging reader: a tail and positions of its own

Positions are stored once a second, with what was counted since. A router that begins at a stored position repeats copies, and
the targets leave out those that they have; so does one that outlived its lease beside its successor.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext, suppress
from typing import NamedTuple, Never

from msgspec.structs import replace

from consumers.feeds.blocks import Chunk
from consumers.feeds.feed import Feeds
from consumers.feeds.stream_tail import Tail
from consumers.routing.batch_sender import BatchSender
from consumers.routing.copies import Copy, blocks_of, by_target
from consumers.routing.dead_letters import DeadLetterSender
from consumers.routing.delivery_buffer import DeliveryBuffer
from consumers.routing.delivery_counts import ROUTE_DELETED
from consumers.routing.idle_topics import IdleTopic
from consumers.routing.lagging_reader import LaggingReader
from consumers.routing.route_revisions import RouteRevisions
from consumers.routing.stored_progress import StoredProgress
from consumers.routing.target_sender import TargetSender, producers_of
from consumers.routing.unsent_positions import unsent_positions
from storage.bootstrap import Storage
from storage.concurrency.single_flight import SingleFlight
from storage.concurrency.tasks import end
from storage.domain import limits
from storage.domain.errors import MillstreamError, StaleGeneration
from storage.domain.names import LogId
from storage.domain.streams.lineage import FULLY_READ, furthest, have_passed, nearest
from storage.domain.streams.stream import Gap, GapReason, LogRecord, Stream
from storage.domain.topics.read_match import HistoryMatch
from storage.domain.topics.route import TopicRoute
from storage.domain.topics.routing import RouteCounts, TopicPositions
from storage.domain.topics.targets.branch import RouteBranch

logger = logging.getLogger(__name__)

_SLOW_S = limits.ROUTER_SLOW_MS / limits.SECOND_MS
_SAVE_S = limits.ROUTER_SAVE_MS / limits.SECOND_MS
_IDLE_S = limits.ROUTER_IDLE_MS / limits.SECOND_MS


def ignore_counts(_: RouteCounts) -> None:
    """Ignore what was finished for a route."""


class RoutingContext(NamedTuple):
    """Resources of a process that routes. `note_finished` is called with stored counts.

    `starts`: bounds the routers that read what is stored at once.
    """

    storage: Storage
    feeds: Feeds
    note_finished: Callable[[RouteCounts], None] = ignore_counts
    starts: AbstractAsyncContextManager[object] = nullcontext()


class TopicRouter:
    """Router of a topic under a lease with the fencing number `fence`."""

    def __init__(self, context: RoutingContext, stream: Stream, fence: int) -> None:
        self._storage, self._feeds, note_finished, self._starts = context
        self._stream = stream
        self._progress = StoredProgress(
            self._storage.topic_routing, stream.stream_id, fence, note_finished
        )
        self._counts = self._progress.counts
        self._revisions = RouteRevisions(self._storage, stream)
        self._buffers: dict[str, DeliveryBuffer] = {}
        self._lagging: dict[str, LaggingReader] = {}
        self._expired = 0
        self._tail: Tail | None = None
        self._read_at_s = 0.0
        self._dispatched: dict[int, int] = {}
        self._ended_shards: set[int] = set()
        self._refreshes = SingleFlight[LogId, None]()

    @property
    def stream_id(self) -> LogId:
        """Id of the topic's stream."""
        return self._stream.stream_id

    async def run(self) -> IdleTopic:
        """Copy messages until none came for ROUTER_IDLE_MS and all are sent and stored.

        Raises StreamNotFound or StreamRecreated once the topic was deleted, StaleGeneration once another router has its lease.
        """
        async with self._starts:
            saved = await self._progress.read()
            self._expired = saved.expired
            await self._revisions.refresh()
        if await self._begins_idle(saved):
            return self._as_idle(saved)
        branches = self._revisions.branches()
        keys = {key for one in branches for key in (one.target_key, one.own_key)}
        for key, positions in saved.lags.items():
            if key in keys:  # a revision may have been forgotten before the positions were stored
                self._lagging[key] = self._lagging_reader(key, positions)
        reports = asyncio.create_task(self._report_until_idle())
        reader = asyncio.create_task(self._read(saved.shards))
        async with AsyncExitStack() as stack:  # all is closed, also when this is cancelled again
            stack.push_async_callback(self._close_buffers)
            stack.push_async_callback(self._close_lagging)
            stack.push_async_callback(self._refreshes.close)
            stack.push_async_callback(end, reader, reports)
            await asyncio.wait([reader, reports], return_when=asyncio.FIRST_COMPLETED)
            idle = await (reports if reports.done() else reader)
        return idle

    async def _close_lagging(self) -> None:
        await asyncio.gather(*(lagging.close() for lagging in self._lagging.values()))

    async def _close_buffers(self) -> None:
        await asyncio.gather(*(buffer.close() for buffer in self._buffers.values()))

    # Reading

    async def _read(self, positions: Mapping[int, int]) -> Never:
        async with self._new_tail(positions) as tail:
            self._tail = tail
            await self._apply_pauses()
            while True:
                chunk = await tail.next(limits.ROUTER_READ_WAIT_MS)
                if chunk is not None:
                    self._read_at_s = asyncio.get_running_loop().time()
                    await self._dispatch(chunk)
                    self.note_gap(chunk.gap)
                    await tail.take(chunk)
                    self._dispatched = {}

    def _new_tail(self, positions: Mapping[int, int]) -> Tail:
        return Tail(
            self._feeds,
            self._storage.catalog,
            self._stream.name,
            positions,
            stream_id=self.stream_id,
        )

    async def _dispatch(self, chunk: Chunk) -> None:
        await self.confirm_routes(chunk)
        for block in blocks_of(chunk, self.routes_of):
            self._dispatched = {chunk.shard: block[-1].source.offset + 1}
            for copies in by_target(block):
                await self._add(copies)
        if chunk.ended:
            await self._finish_shard(chunk)

    async def confirm_routes(self, chunk: Chunk) -> None:
        """Learn of all routes that take records, which were read before.

        Of a stream, of all changes up to now: one that is in progress is waited for, so no later one has a cut among these
        records.
        """
        if not self._revisions.has_routes_of(chunk.records):
            await self._refresh()

    def routes_of(self, shard: int, entry: LogRecord) -> Sequence[TopicRoute]:
        """Return the routes that take a record, after `confirm_routes`.

        Of a topic, as was decided when it was accepted.
        """
        return self._revisions.of(shard, entry)

    async def _add(self, copies: Sequence[Copy]) -> None:
        """Add copies for one target, except those that a lagging reader reads."""
        key = copies[0].branch.target_key
        if self._lagging:
            copies = [copy for copy in copies if self.key_of(copy.branch) == key]
        if not copies or key in self._lagging:
            return
        first, buffer = copies[0], self._buffers.get(key)
        if buffer is None:
            buffer = self._buffers[key] = self._new_buffer(first.branch)
        if buffer.is_full and (buffer.is_failing or not await buffer.wait_for_capacity(_SLOW_S)):
            self._detach(key, first.source.shard, first.source.offset)
        else:
            self.add_to(buffer, key, copies)

    async def _finish_shard(self, chunk: Chunk) -> None:
        """Wait until a closed shard's copies were sent: its children's come after them.

        A buffer that takes long gets a reader of its own; one that rejoins meanwhile may have copies of the shard too.
        """
        while key := self._first_with_copies_of(chunk.shard):
            if not await self._buffers[key].wait_until_sent(chunk.shard, _SLOW_S):
                self._detach(key, chunk.shard, chunk.next_offset)
        self.note_end(chunk.shard)

    def _first_with_copies_of(self, shard: int) -> str:
        """Return the key of a buffer that has unsent copies of a shard, or ""."""
        return next((key for key, one in self._buffers.items() if shard in one.oldest()), "")

    def note_gap(self, gap: Gap | None) -> None:
        """Count the messages that expired before a reader had read them."""
        if gap is not None and gap.reason is GapReason.EXPIRED:
            self._expired += gap.next - gap.first

    def note_end(self, shard: int) -> None:
        """Note that a reader has come to the end of a closed shard."""
        self._ended_shards.add(shard)

    # Buffers

    def key_of(self, branch: RouteBranch) -> str:
        """Return the key of a branch's buffer: the target's, or its own while paused or behind."""
        own = branch.own_key
        return own if own in self._lagging else branch.target_key

    def add_to(self, buffer: DeliveryBuffer, key: str, copies: Sequence[Copy]) -> None:
        """Add copies of a key's branches, unless their routes were paused or deleted meanwhile.

        The route of a branch with a buffer of its own is paused, or behind.
        """
        of_routes = {copy.route.number: copy for copy in copies}.values()
        removed = {one.route.number for one in of_routes if self._revisions.is_removed(one.route)}
        elsewhere = {one.route.number for one in of_routes if self.key_of(one.branch) != key}
        if removed:
            dropped = [copy for copy in copies if copy.route.number in removed]
            self._counts.add_dropped(dropped, ROUTE_DELETED)
        if removed or elsewhere:
            copies = [copy for copy in copies if copy.route.number not in removed | elsewhere]
        buffer.add(copies)

    def _new_buffer(self, branch: RouteBranch) -> DeliveryBuffer:
        target = TargetSender(self._storage, branch.target)
        dead_letters = DeadLetterSender(self._storage)
        sender = BatchSender(target, dead_letters, self._counts, self._revisions.present)
        return DeliveryBuffer(sender, self._isolate)

    def _detach(self, key: str, shard: int, offset: int) -> None:
        """Give a buffer its own reader, from an offset of a shard and the other positions."""
        assert self._tail is not None
        buffer = self._buffers.pop(key)
        buffer.skip({shard: offset})
        logger.info("route_lags", extra={"topic": str(self._stream.name), "target": key})
        positions = furthest(self._tail.positions, self._progress.counted.of_target(key))
        lagging = self._lagging[key] = self._lagging_reader(key, positions, buffer)
        lagging.start()

    def _isolate(self, buffer: DeliveryBuffer, copy: Copy) -> bool:
        """Give a copy's branch that waits alone a reader of its own; return whether it has one.

        It gets none where it would hold back no other route, or where ROUTER_ISOLATED_MAX have one.
        """
        branch, own = copy.branch, copy.branch.own_key
        if own in self._lagging:
            return self._lagging[own].buffer is not buffer
        isolated = sum("#" in key for key in self._lagging)
        if isolated >= limits.ROUTER_ISOLATED_MAX or not self._revisions.has_sibling(branch):
            return False
        apart = self._new_buffer(branch)
        apart.skip(buffer.oldest(branch.number), branch.number)
        self._start_own_reader(branch, apart)
        return True

    def _start_own_reader(self, branch: RouteBranch, buffer: DeliveryBuffer) -> None:
        assert self._tail is not None, "no buffer sends before the router reads"
        own = branch.own_key
        logger.info("route_lags", extra={"topic": str(self._stream.name), "target": own})
        lagging = self._own_reader(branch, self._tail.positions, buffer)
        self._lagging[own] = lagging
        lagging.start()

    def _lagging_reader(
        self, key: str, positions: Mapping[int, int], buffer: DeliveryBuffer | None = None
    ) -> LaggingReader:
        with_history = self._revisions.with_unread_history()
        number = int(key.partition("#")[2] or 0)
        route = next((one for one in with_history if one.number == number), None)
        history = None if route is None else HistoryMatch(route)
        return LaggingReader(self, key, positions, buffer, new_tail=self._new_tail, history=history)

    def buffer_for(self, key: str) -> DeliveryBuffer:
        """Return a new buffer for a lagging reader's key, which some revision of a route has."""
        branches = self._revisions.branches()
        return self._new_buffer(
            next(one for one in branches if key in (one.target_key, one.own_key))
        )

    def try_rejoin(self, lagging: LaggingReader) -> bool:
        """Attach a buffer to the router again if it has caught up; return whether it has."""
        buffer = lagging.buffer
        if self._tail is None or buffer is None:
            return False
        if not lagging.has_caught_up(self._tail.positions | self._dispatched):
            return False
        target, _, number = lagging.key.partition("#")
        if number and self._revisions.has_unread_history(int(number)):
            return False
        taking = self._buffers.get(target, buffer)
        if number and (target in self._lagging or not _takes_over(taking, lagging)):
            return False
        # A buffer of one route becomes the target's, or leaves its copies to it from here on.
        self._buffers[target] = taking
        taking.skip(lagging.positions, int(number) if number else None)
        if taking is not buffer:
            buffer.stop()
        del self._lagging[lagging.key]
        logger.info("route_caught_up", extra={"topic": str(self._stream.name), "target": target})
        return True

    # Changes of routes

    async def _refresh(self) -> None:
        """Read the changes of the topic's routes, and act on them.

        A task of its own does so: it may have to end the reader that calls.
        """
        await self._refreshes.run_fresh(self.stream_id, self._apply_changes)

    async def _apply_changes(self) -> None:
        for route in await self._revisions.refresh():
            if route.removed:
                for buffer in self._all_buffers():
                    self._counts.add_dropped(buffer.remove(route.number), ROUTE_DELETED)
        await self._apply_pauses()

    async def _apply_pauses(self) -> None:
        """Hold the routes that are paused, and let the other lagging buffers read."""
        self._add_history_readers()
        paused = {one.own_key: one for route in self._revisions.paused() for one in route.branches}
        for own, branch in paused.items():
            if own in self._lagging:
                await self._lagging[own].hold()
            elif self._tail is not None:
                self._lagging[own] = self._own_reader(branch, self._tail.positions)
        for key, lagging in self._lagging.items():
            if key not in paused:
                lagging.start()

    def _add_history_readers(self) -> None:
        """Add a reader for each route that starts in the past, unless it has one."""
        for route in self._revisions.with_unread_history():
            assert route.history is not None
            for own in [one.own_key for one in route.branches if one.own_key not in self._lagging]:
                self._lagging[own] = self._lagging_reader(own, route.history.start)

    def _own_reader(
        self,
        branch: RouteBranch,
        read: Mapping[int, int],
        apart: DeliveryBuffer | None = None,
    ) -> LaggingReader:
        """Return a reader for a branch, at the first copy that its target may not have."""
        target = branch.target_key
        behind = self._lagging.get(target)
        buffer = self._buffers.get(target) if behind is None else behind.buffer
        positions = furthest(
            read if behind is None else behind.positions, self._progress.counted.of(branch)
        )
        if buffer is not None:
            positions = nearest(positions, buffer.oldest(branch.number))
            buffer.leave(branch.number)
        return self._lagging_reader(branch.own_key, positions, apart)

    def _all_buffers(self) -> Iterable[DeliveryBuffer]:
        lagging = [one.buffer for one in self._lagging.values() if one.buffer is not None]
        return (*self._buffers.values(), *lagging)

    # Reports

    async def _report_until_idle(self) -> IdleTopic:
        while True:
            await asyncio.sleep(_SAVE_S)
            try:
                self._stream = await self._storage.catalog.stream(self._stream.name, self.stream_id)
                if self._stream.routes_version != self._revisions.version:
                    await self._refresh()
                await self.report()
                if self._is_idle():
                    return self._as_idle(self._progress.saved)
            except StaleGeneration:
                raise
            except MillstreamError as error:
                facts = {"topic": str(self._stream.name), "reason": error.detail}
                logger.info("router_report_deferred", extra=facts)

    def _is_idle(self) -> bool:
        """Return whether nothing came for a while, and nothing is left to send or store."""
        if self._tail is None or asyncio.get_running_loop().time() < self._read_at_s + _IDLE_S:
            return False
        read = TopicPositions(dict(self._tail.positions), {}, self._expired)
        is_finished = not self._ended_shards and self._progress.is_saved(read)
        return is_finished and self._is_settled(read)

    async def _begins_idle(self, saved: TopicPositions) -> bool:
        """Return whether nothing came since an earlier router stored its positions."""
        if not self._is_settled(saved):
            return False
        reader, name = self._storage.record_reader, self._stream.name
        return not await reader.has_news(name, saved.shards, self.stream_id)

    def _is_settled(self, positions: TopicPositions) -> bool:
        """Return whether all routes take messages at these positions, in open shards, from now on."""
        shards, revisions = positions.shards, self._revisions
        is_open = bool(shards) and FULLY_READ not in shards.values()
        is_behind = positions.lags or revisions.paused() or revisions.with_unread_history()
        return is_open and not is_behind and not any(revisions.ended())

    def _as_idle(self, positions: TopicPositions) -> IdleTopic:
        return IdleTopic.of(self._stream, positions.shards, self._revisions.version)

    def sent(self) -> Mapping[int, int]:
        """Return the position of each shard before which copies were sent, or lag."""
        return {} if self._tail is None else self._positions().shards

    async def report(self) -> None:
        """Store positions and counts, and delete finished revisions. Raises StaleGeneration."""
        if self._tail is None:
            return
        await self._progress.save(self._positions)
        positions = self._progress.saved
        if finished := self._finished_shards(positions):
            self._ended_shards -= finished
            await self._retire_producers(finished)
        await self._end_histories(positions)
        await self._delete_ended(positions)

    def _positions(self) -> TopicPositions:
        assert self._tail is not None
        lags = {key: one.unsent() for key, one in self._lagging.items()}
        unsent = unsent_positions(self._tail.positions, self._buffers, lags, self._progress.counted)
        return replace(unsent, expired=self._expired)

    async def _end_histories(self, positions: TopicPositions) -> None:
        """Store which routes have received their history, as of stored positions."""
        for route in self._revisions.with_unread_history():
            assert route.history is not None
            reached = [positions.lags.get(branch.own_key) for branch in route.branches]
            ends = route.history.until
            if all(one is not None and have_passed(self._stream, one, ends) for one in reached):
                await self._storage.topic_routing.routes.end_history(self.stream_id, route.number)
                self._revisions.note_history_done(route)

    def _finished_shards(self, positions: TopicPositions) -> set[int]:
        """Return the ended shards that the router and all lagging readers have read to their ends."""
        frontiers = (positions.shards, *positions.lags.values())
        return {
            shard
            for shard in self._ended_shards
            if all(have_passed(self._stream, one, {shard: limits.OFFSET_MAX}) for one in frontiers)
        }

    async def _retire_producers(self, shards: Collection[int]) -> None:
        """Retire the producers of shards that were routed to their ends, at every target."""
        for target, ids in producers_of(self._revisions.by_number.values(), shards).items():
            with suppress(MillstreamError):  # the target forgets them with its log
                await TargetSender(self._storage, target).retire(ids)

    async def _delete_ended(self, positions: TopicPositions) -> None:
        for route in self._revisions.ended():
            keys = [key for one in route.branches for key in (one.target_key, one.own_key)]
            lags = [positions.lags[key] for key in keys if key in positions.lags]
            ends = route.until or {}
            if all(have_passed(self._stream, one, ends) for one in (positions.shards, *lags)):
                with suppress(MillstreamError):  # the target's store is away: at the next report
                    await self._delete_revision(route, ends)

    async def _delete_revision(self, route: TopicRoute, ends: Collection[int]) -> None:
        for target, ids in producers_of([route], ends).items():
            await TargetSender(self._storage, target).retire(ids)
        await self._storage.topic_routing.routes.delete_ended(self.stream_id, [route.number])
        self._revisions.discard(route.number)
        for branch in route.branches:
            await self._close_branch(branch)

    async def _close_branch(self, branch: RouteBranch) -> None:
        """Close the buffers of a branch that has received everything."""
        if lagging := self._lagging.pop(branch.own_key, None):
            await lagging.close()
        if not self._revisions.has_target(branch.target_key):
            for buffers in (self._buffers, self._lagging):
                if (buffer := buffers.pop(branch.target_key, None)) is not None:
                    await buffer.close()


def _takes_over(target: DeliveryBuffer, lagging: LaggingReader) -> bool:
    """Return whether a target's buffer takes all unsent copies of a route with its own reader.

    A target that was ahead of the router skips what it has, and the route may have been behind it.
    """
    assert lagging.buffer is not None
    return not any(lagging.buffer.pending()) and all(
        position == FULLY_READ or target.skipped(shard) <= position
        for shard, position in lagging.positions.items()
    )
