"""Group subscriptions: deliver the shards assigned to this socket; acks commit offsets."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress

from msgspec import UNSET

from api.websocket.connection import SocketClosed
from api.websocket.frames import (
    Ack,
    Assigned,
    AssignedPlace,
    GiveUp,
    Mode,
    Revoked,
    Revoking,
    ServerOk,
    Settling,
    Subscribe,
)
from api.websocket.session import PushSession
from api.websocket.subscriptions.backoff import GROUP
from api.websocket.subscriptions.stream import ShardReaders, StreamSource
from consumers.feeds.blocks import Chunk
from consumers.subscriptions.group_membership import Changes, OrderedGroupMember
from storage.concurrency.batcher import Batcher
from storage.domain import limits
from storage.domain.errors import (
    ErrorCode,
    MillstreamError,
    OffsetOutOfRange,
    ShardNotFound,
    ValidationFailed,
)
from storage.domain.groups.group import Commit, CommitResult, GroupOffset, MemberShard
from storage.groups.engine import Groups


class GroupSubscription(ShardReaders):
    """Subscription that delivers the shards of one group member."""

    __slots__ = (
        "_announced",
        "_at_end",
        "_beat_now",
        "_beats",
        "_commits",
        "_committed",
        "_groups",
        "_member",
        "_passed",
        "_paused",
        "_starting",
    )

    def __init__(
        self,
        session: PushSession,
        request: Subscribe,
        source: StreamSource,
        groups: Groups,
        member: OrderedGroupMember,
    ) -> None:
        super().__init__(session, request, source)
        self._groups = groups
        self._member = member
        self._committed: dict[int, int] = {}
        self._passed: dict[
            int, int
        ] = {}  # ends of records that were filtered out behind the commit
        self._at_end: set[int] = set()  # closed shards that were delivered completely
        self._announced: set[int] = set()  # shards that the client considers assigned
        self._commits = Batcher[Ack, None](self._commit, backlog_max=limits.PUSH_PENDING_MAX)
        self._paused = False
        self._beat_now = asyncio.Event()
        self._beats: asyncio.Task[None] | None = None
        self._starting: asyncio.Task[None] | None = None

    @property
    def mode(self) -> Mode:
        return Mode.GROUP

    @property
    def group(self) -> str | None:
        return self._member.name.name

    async def open(self) -> None:
        """Join the group. Raises GroupNotFound, GroupFull, ValidationFailed."""
        await self._apply(await self._member.beat())
        self._beats = asyncio.create_task(self._beat_on())

    # Membership: it lives as long as the session, across sockets

    async def _beat_on(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._member.group.spec.heartbeat_ms / limits.SECOND_MS):
                    await self._beat_now.wait()
            self._beat_now.clear()
            await self._commit_passed()
            try:
                changes = await self._member.beat()
                await self._apply(changes)
            except MillstreamError as error:
                if not error.code.retryable:
                    await self._fail(error)
                    return

    async def _apply(self, changes: Changes) -> None:
        await self._follow_pause()
        await self._drop(changes.revoked)
        await self._prepare_revocation(changes.revoking)
        await self._add(changes.assigned)

    async def _follow_pause(self) -> None:
        """Stop or continue reading if the group was paused or resumed."""
        if self._member.group.spec.paused is self._paused:
            return
        self._paused = self._member.group.spec.paused
        if self._paused:
            await self._stop_reading(list(self._readers))
        else:
            self._start_reading(self._positions.keys() - self._member.revoking)
        if self._running:
            with suppress(SocketClosed):
                await (self._backoff.pause(GROUP) if self._paused else self._backoff.resume(GROUP))

    def _start_reading(self, shards: Iterable[int]) -> None:
        if not self._paused:
            super()._start_reading(shards)

    async def _drop(self, shards: Sequence[int]) -> None:
        await self._stop_reading(shards)
        for shard in shards:
            self._positions.pop(shard, None)
            self._committed.pop(shard, None)
            self._passed.pop(shard, None)
            self._at_end.discard(shard)
        if shards:
            await self._send_revoked(shards)

    async def _prepare_revocation(self, shards: Sequence[int]) -> None:
        await self._stop_reading(shards)
        await self._commit_passed()
        open_ = [shard for shard in shards if not self._is_done(shard)]
        if open_ and self._running:
            with suppress(SocketClosed):
                await self._send_revoking(open_)
        self._give_up([shard for shard in shards if shard not in open_])

    async def _send_revoking(self, shards: Sequence[int]) -> None:
        patience_s = self._member.group.spec.revoke_timeout_ms / limits.SECOND_MS
        await self._session.send(Revoking(self.name, list(shards), patience_s))

    async def _add(self, places: Sequence[MemberShard]) -> None:
        for place in places:
            offset = await self._groups.position(self._member.group, place)
            self._positions[place.shard] = offset
            self._committed[place.shard] = offset
        if places and self._running:
            with suppress(SocketClosed):
                await self._send_assigned([place.shard for place in places])
            self._start_reading(place.shard for place in places)

    async def _send_assigned(self, shards: Sequence[int]) -> None:
        self._announced.update(shards)
        assigned = [AssignedPlace(shard, self._positions[shard]) for shard in shards]
        await self._session.send(Assigned(self.name, self._member.generation, assigned))

    async def _send_revoked(self, shards: Sequence[int]) -> None:
        if self._running:
            self._announced.difference_update(shards)
            with suppress(SocketClosed):
                await self._session.send(Revoked(self.name, list(shards)))

    def start(self) -> None:
        """Start delivery; the client first receives its assignment.

        The assignment may have changed while the client was disconnected.
        """
        self._running = True
        self._starting = asyncio.create_task(self._start())

    async def _start(self) -> None:
        revoked = sorted(self._announced - self._positions.keys())
        with suppress(SocketClosed):
            if revoked:
                await self._send_revoked(revoked)
            if self._positions:
                await self._send_assigned(sorted(self._positions))
            if self._member.revoking:
                await self._send_revoking(sorted(self._member.revoking))
            if self._paused:
                await self._backoff.pause(GROUP)
            self._start_reading(self._positions.keys() - self._member.revoking)

    async def stop(self) -> None:
        """Stop delivery; assigned shards stay assigned."""
        if self._starting is not None:
            self._starting.cancel()
        await super().stop()

    async def end(self, *, release: bool) -> None:
        """Leave the group, so that other members get the shards immediately."""
        if self._beats is not None and self._beats is not asyncio.current_task():
            self._beats.cancel()
        await self.stop()
        await self._commits.finish()
        await self._commit_passed()
        with suppress(MillstreamError):
            await self._member.leave()

    async def _recovered(self, shard: int, error: MillstreamError) -> bool:
        """Also recover when a restored store ends before the group's position."""
        if isinstance(error, OffsetOutOfRange):
            self._positions[shard] = int(error.facts["next_offset"])
            return True
        if isinstance(
            error, ShardNotFound
        ):  # its records have expired: the next heartbeat assigns what follows
            self._beat_now.set()
            await asyncio.sleep(limits.PUSH_BACKOFF_MS_MAX / limits.SECOND_MS)
            return True
        return await super()._recovered(shard, error)

    # Delivery

    async def _deliver(self, shard: int, chunk: Chunk) -> Chunk:
        await self._groups.observe_high_watermark(self._member.group, shard, chunk.tip)
        return await super()._deliver(shard, chunk)

    def _pass_over(self, shard: int, first: int, next_offset: int) -> None:
        if self._committed.get(shard, 0) >= first or self._passed.get(shard) == first:
            self._passed[shard] = next_offset

    async def _commit_passed(self) -> None:
        """Commit records that were filtered out, up to the first one to be acknowledged."""
        offsets = {
            shard: offset
            for shard, offset in self._passed.items()
            if offset > self._committed.get(shard, 0)
        }
        if offsets:
            await self._commit_together(offsets)

    def _is_done(self, shard: int) -> bool:
        """Return whether everything delivered from a shard is committed."""
        return self._committed.get(shard, 0) >= self._positions.get(shard, 0)

    async def _start_successors(self, shard: int) -> None:
        """Finish an ended shard if all of it is committed; a heartbeat assigns its children."""
        if shard in self._positions and self._is_done(shard):
            await self._finish(shard)

    def _ended(self, shard: int, offset: int) -> None:
        self._at_end.add(shard)

    async def _finish(self, shard: int) -> None:
        end = self._positions[shard]
        commit = Commit(shard, end, self._member.member_id, self._member.generation)
        if await self._groups.finish(self._member.group, commit):
            self._beat_now.set()

    def _rewind(self, shard: int, offset: int) -> None:
        if shard in self._positions:  # records committed from a lost frame are not sent again
            self._positions[shard] = max(offset, self._committed.get(shard, 0))
            self._at_end.discard(shard)

    # Acks and released shards

    async def settle(self, frame: Settling) -> None:
        """Commit an ack. Raises ValidationFailed for a settlement that streams do not support."""
        if isinstance(frame, Ack) and frame.reply is not UNSET:
            raise ValidationFailed.at("/reply", "Replies are to messages of a queue", "conflict")
        if not isinstance(frame, Ack) or frame.shard is None or frame.up_to is None:
            detail = "Acknowledge records of a group with 'shard' and 'up_to'"
            raise ValidationFailed.at("/up_to", detail, "required")
        await self._commits.add(frame)

    def give_up(self, frame: GiveUp) -> None:
        """Release revoking shards that the client has finished."""
        self._give_up(frame.shards)

    def _give_up(self, shards: Sequence[int]) -> None:
        if self._member.release(shards):
            self._beat_now.set()

    async def _commit(self, acks: Sequence[Ack]) -> None:
        offsets: dict[int, int] = {}
        for ack in acks:
            assert ack.shard is not None
            assert ack.up_to is not None
            offsets[ack.shard] = max(ack.up_to, offsets.get(ack.shard, 0))
        results = await self._commit_together(offsets)
        for ack in acks:
            assert ack.shard is not None
            with suppress(SocketClosed):
                await self._answer(ack, results[ack.shard])

    async def _commit_together(self, offsets: dict[int, int]) -> dict[int, CommitResult]:
        member = self._member
        commits = [
            Commit(shard, offset, member.member_id, member.generation)
            for shard, offset in offsets.items()
        ]
        try:
            outcomes = await self._groups.commit(member.name, commits)
        except MillstreamError as error:
            return dict.fromkeys(offsets, error)
        results = dict(zip(offsets, outcomes, strict=True))
        for shard, result in results.items():
            self._note(shard, result)
            if shard in self._at_end and self._is_done(shard):
                with suppress(MillstreamError):  # otherwise the sweeper does it
                    await self._finish(shard)
        return results

    def _note(self, shard: int, result: CommitResult) -> None:
        if not isinstance(result, GroupOffset):
            if result.code in (ErrorCode.STALE_GENERATION, ErrorCode.MEMBER_UNKNOWN):
                self._beat_now.set()  # the heartbeat reports the change
            return
        if shard in self._positions:
            self._committed[shard] = result.offset
            if self._is_done(shard):
                self._give_up([shard])

    async def _answer(self, ack: Ack, result: CommitResult) -> None:
        if isinstance(result, MillstreamError):
            await self._session.send_bytes(
                self._session.wire.failure(result, id_=ack.id, sub=self.name)
            )
        elif ack.id is not None:
            await self._session.send(ServerOk(ack.id))
