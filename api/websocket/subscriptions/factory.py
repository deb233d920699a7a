"""From a `subscribe` frame to a subscription."""

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from api.native.cursors import decode_records_cursor
from api.native.fields import moment_ms
from api.websocket.frames import From, Mode, StartIn, Subscribe
from api.websocket.publisher import Publisher, PublishMetrics
from api.websocket.session import PushSession, Subscription
from api.websocket.subscriptions.group import GroupSubscription
from api.websocket.subscriptions.queue import QueueSubscription, QueueSubscriptionServices
from api.websocket.subscriptions.stream import StreamSource, StreamSubscription
from consumers.feeds.feed import Feeds
from consumers.subscriptions.group_membership import OrderedGroupMember
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.errors import InvalidCursor, StreamRecreated, ValidationFailed
from storage.domain.names import GroupName, LogId, QueueName, StreamName
from storage.domain.streams.lineage import check_positions

Name = TypeVar("Name", QueueName, StreamName, GroupName)


class SubscriptionFactory(msgspec.Struct, frozen=True):
    """Factory of subscriptions, with the services that they need."""

    storage: Storage
    feeds: Feeds
    metrics: PublishMetrics
    publisher: Publisher
    engine: QueueSubscriptionServices

    async def open(self, session: PushSession, request: Subscribe) -> Subscription:
        """Create the requested subscription, which does not deliver yet.

        Raises ValidationFailed, Forbidden, and the not-found error of the resource.
        """
        _check_name(session, request)
        kind, _, resource = request.source.partition(":")
        if kind == "queue":
            return await self._open_queue(session, request, resource)
        if _mode(request) is Mode.GROUP:
            return await self._open_group(session, request, resource)
        return await self._open_stream(session, request, resource)

    def _authorised(
        self, session: PushSession, action: Action, kind: type[Name], name: str
    ) -> Name:
        """Return the name in the session's namespace. Raises Forbidden, ValidationFailed."""
        scoped = kind(name, session.principal.namespace)
        self.storage.authorizer.authorise(session.principal, action, str(scoped))
        return scoped

    async def _open_queue(
        self, session: PushSession, request: Subscribe, resource: str
    ) -> QueueSubscription:
        _check_queue(request)
        queue = self._authorised(session, Action.QUEUE_RECEIVE, QueueName, resource)
        await self.storage.catalog.queue(queue)
        return QueueSubscription(session, request, queue, self.engine)

    async def _open_group(
        self, session: PushSession, request: Subscribe, resource: str
    ) -> GroupSubscription:
        _check_group(request)
        name = self._authorised(session, Action.GROUP_COMMIT, GroupName, request.group)
        stream = StreamName(resource, name.namespace)
        group = await self.storage.groups.get(name)
        if group.spec.stream != resource:
            detail = f"The group reads stream '{group.spec.stream}'"
            raise ValidationFailed.at("/source", detail, "conflict")
        member = OrderedGroupMember(self.storage.groups, name, f"{session.id}.{len(session.subs)}")
        source = self._source(stream, group.stream_id)
        share = GroupSubscription(session, request, source, self.storage.groups, member)
        await share.open()
        return share

    async def _open_stream(
        self, session: PushSession, request: Subscribe, resource: str
    ) -> StreamSubscription:
        _check_read(request)
        stream = self._authorised(session, Action.STREAM_READ, StreamName, resource)
        try:
            return await self._seek(session, request, stream)
        except StreamRecreated:
            if request.start is not None and request.start.cursor is not None:
                raise InvalidCursor("The cursor belongs to a deleted stream.") from None
            raise

    async def _seek(
        self, session: PushSession, request: Subscribe, stream: StreamName
    ) -> StreamSubscription:
        """Create the subscription of a stream at its start. Raises StreamRecreated."""
        stream_id = _stream_id(request) or (await self.storage.catalog.stream(stream)).stream_id
        positions, since_ms = await self._start(stream, stream_id, request)
        source, storage = self._source(stream, stream_id), self.storage
        read = StreamSubscription(session, request, source, storage.record_reader, storage.catalog)
        await read.open(positions, since_ms)
        return read

    def _source(self, stream: StreamName, stream_id: LogId) -> StreamSource:
        return StreamSource(stream, stream_id, self.feeds, self.metrics.streams)

    async def _start(
        self, name: StreamName, stream_id: LogId, request: Subscribe
    ) -> tuple[Mapping[int, int], int | None]:
        """Return start positions, or a start time. Raises InvalidCursor, ValidationFailed."""
        start = request.start or StartIn()
        given = [start.start, start.time, start.cursor, start.offsets]
        if sum(one is not None for one in given) > 1:
            detail = "Specify only one of 'from', 'time', 'cursor' and 'offsets'"
            raise ValidationFailed.at("/start", detail, "conflict")
        if start.time is not None:
            return {}, moment_ms(start.time)
        if start.offsets is not None:
            _check_shard(request, start.offsets)
            return await self._checked(name, stream_id, start.offsets), None
        if start.cursor is not None:
            positions = decode_records_cursor(start.cursor)[1]
            return await self._checked(name, stream_id, positions), None
        if start.start is From.EARLIEST:
            return {}, None
        shards = await self.storage.record_reader.shards(name, stream_id)
        return {
            state.shard.index: state.next
            for state in shards
            if state.shard.is_open or state.shard.index == request.shard
        }, None

    async def _checked(
        self, name: StreamName, stream_id: LogId, positions: Mapping[int, int]
    ) -> Mapping[int, int]:
        """Return the positions. Raises OffsetOutOfRange, ShardNotFound, StreamRecreated."""
        check_positions(positions, await self.storage.record_reader.shards(name, stream_id))
        return positions


def _check_shard(request: Subscribe, offsets: Mapping[int, int]) -> None:
    """Raise ValidationFailed for offsets of shards that the subscription does not read."""
    if request.shard is not None and offsets.keys() - {request.shard}:
        detail = f"Only shard {request.shard} is read"
        raise ValidationFailed.at("/start/offsets", detail, "conflict")


def _stream_id(request: Subscribe) -> LogId | None:
    """Return the id of the stream that the start belongs to, if it is given.

    Raises InvalidCursor, ValidationFailed.
    """
    start = request.start or StartIn()
    if start.stream_id is not None and start.offsets is None:
        detail = "Specify 'stream_id' only with 'offsets'"
        raise ValidationFailed.at("/start/stream_id", detail, "conflict")
    return start.stream_id if start.cursor is None else decode_records_cursor(start.cursor)[0]


def _mode(request: Subscribe) -> Mode:
    return request.mode or (Mode.GROUP if request.group else Mode.READ)


def _check_name(session: PushSession, request: Subscribe) -> None:
    if request.sub in session.subs:
        detail = f"The session already has a subscription '{request.sub}'"
        raise ValidationFailed.at("/sub", detail, "conflict")
    if len(session.subs) >= limits.SUBSCRIPTIONS_MAX:
        detail = f"A session can have at most {limits.SUBSCRIPTIONS_MAX} subscriptions"
        raise ValidationFailed.at("/sub", detail, "too_many")


def _refuse(request: Subscribe, mode: str, *names: str) -> None:
    """Raise ValidationFailed for fields that the mode does not support."""
    for name in names:
        if getattr(request, name):
            raise ValidationFailed.at(f"/{name}", f"Not supported in mode '{mode}'", "conflict")
    if request.shard is not None and mode != "read":
        raise ValidationFailed.at("/shard", f"Not supported in mode '{mode}'", "conflict")


def _check_queue(request: Subscribe) -> None:
    if request.mode not in (None, Mode.WORK):
        raise ValidationFailed.at("/mode", "A queue requires mode 'work'", "conflict")
    _refuse(request, "work", "group", "start", "filter")


def _check_group(request: Subscribe) -> None:
    if not request.group:
        raise ValidationFailed.at("/group", "Mode 'group' requires a group", "required")
    _refuse(request, "group", "start", "visibility_timeout_seconds", "auto_extend")


def _check_read(request: Subscribe) -> None:
    if request.mode is Mode.WORK:
        raise ValidationFailed.at("/mode", "Mode 'work' requires a queue", "conflict")
    _refuse(request, "read", "group", "visibility_timeout_seconds", "auto_extend")
