"""From a `subscribe` frame to a subscription."""

from collections.abc import Mapping

import msgspec

from api.native.cursors import decode_cursor
from api.native.fields import moment_ms
from api.websocket.frames import From, Mode, StartIn, Subscribe
from api.websocket.publisher import Publisher, PublishMetrics
from api.websocket.session import Session, Subscription
from api.websocket.subscriptions.group import Share
from api.websocket.subscriptions.queue import Work, WorkEngine
from api.websocket.subscriptions.stream import Read
from consumers.feeds.feed import Feeds
from consumers.subscriptions.group_membership import Member
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.errors import ValidationFailed
from storage.domain.names import GroupName, QueueName, StreamName


class Sources(msgspec.Struct, frozen=True):
    """What there is to subscribe to, and what is needed for it."""

    storage: Storage
    feeds: Feeds
    metrics: PublishMetrics
    publisher: Publisher
    engine: WorkEngine

    async def open(self, session: Session, asked: Subscribe) -> Subscription:
        """What was asked for, not yet delivering. Raises ValidationFailed, Forbidden, and what is not found."""
        _check_name(session, asked)
        kind, _, word = asked.source.partition(":")
        if kind == "queue":
            return await self._work(session, asked, word)
        if _mode(asked) is Mode.GROUP:
            return await self._share(session, asked, word)
        return await self._read(session, asked, word)

    async def _work(self, session: Session, asked: Subscribe, word: str) -> Work:
        _check_queue(asked)
        queue = QueueName(word, session.principal.namespace)
        self.storage.access.authorise(session.principal, Action.QUEUE_RECEIVE, str(queue))
        await self.storage.catalog.queue(queue)
        return Work(session, asked, queue, self.engine)

    async def _share(self, session: Session, asked: Subscribe, word: str) -> Share:
        _check_group(asked)
        principal = session.principal
        name = GroupName(asked.group, principal.namespace)
        self.storage.access.authorise(principal, Action.GROUP_COMMIT, str(name))
        stream = StreamName(word, principal.namespace)
        group = await self.storage.groups.get(name)
        if group.spec.stream != word:
            detail = f"The group reads stream '{group.spec.stream}'"
            raise ValidationFailed.at("/source", detail, "conflict")
        member = Member(self.storage.groups, name, f"{session.id}.{len(session.subs)}")
        share = Share(
            session, asked, stream, self.feeds, self.metrics.streams, self.storage.groups, member
        )
        await share.open()
        return share

    async def _read(self, session: Session, asked: Subscribe, word: str) -> Read:
        _check_read(asked)
        stream = StreamName(word, session.principal.namespace)
        self.storage.access.authorise(session.principal, Action.STREAM_READ, str(stream))
        positions, since_ms = await self._start(stream, asked)
        read = Read(
            session,
            asked,
            stream,
            self.feeds,
            self.metrics.streams,
            self.storage.streams,
            self.storage.catalog,
        )
        await read.open(positions, since_ms)
        return read

    async def _start(
        self, name: StreamName, asked: Subscribe
    ) -> tuple[Mapping[int, int], int | None]:
        """Positions, or a time. Raises InvalidCursor, ValidationFailed."""
        start = asked.start or StartIn()
        given = [start.start, start.time, start.cursor, start.offsets]
        if sum(one is not None for one in given) > 1:
            detail = "Only one of 'from', 'time', 'cursor' and 'offsets' is given"
            raise ValidationFailed.at("/start", detail, "conflict")
        if start.time is not None:
            return {}, moment_ms(start.time)
        if start.offsets is not None:
            return start.offsets, None
        if start.cursor is not None:
            stream = await self.storage.catalog.stream(name)
            about = ("records", stream.stream_id)
            return decode_cursor(start.cursor, about, dict[int, int]), None
        if start.start is From.EARLIEST:
            return {}, None
        shards = await self.storage.streams.shards(name)
        return {
            state.shard.index: state.next
            for state in shards
            if state.shard.is_open or state.shard.index == asked.shard
        }, None


def _mode(asked: Subscribe) -> Mode:
    return asked.mode or (Mode.GROUP if asked.group else Mode.READ)


def _check_name(session: Session, asked: Subscribe) -> None:
    if asked.sub in session.subs:
        detail = f"The session has a subscription '{asked.sub}' already"
        raise ValidationFailed.at("/sub", detail, "conflict")
    if len(session.subs) >= limits.SUBSCRIPTIONS_MAX:
        detail = f"A session has at most {limits.SUBSCRIPTIONS_MAX} subscriptions"
        raise ValidationFailed.at("/sub", detail, "too_many")


def _refuse(asked: Subscribe, mode: str, *names: str) -> None:
    """Raise ValidationFailed for what a mode does not know."""
    for name in names:
        if getattr(asked, name):
            raise ValidationFailed.at(f"/{name}", f"This is not for mode '{mode}'", "conflict")
    if asked.shard is not None and mode != "read":
        raise ValidationFailed.at("/shard", f"This is not for mode '{mode}'", "conflict")


def _check_queue(asked: Subscribe) -> None:
    if asked.mode not in (None, Mode.WORK):
        raise ValidationFailed.at("/mode", "A queue is read by mode 'work'", "conflict")
    _refuse(asked, "work", "group", "start", "filter")


def _check_group(asked: Subscribe) -> None:
    if not asked.group:
        raise ValidationFailed.at("/group", "Mode 'group' names its group", "required")
    _refuse(asked, "group", "start", "filter", "visibility_timeout_seconds", "auto_extend")


def _check_read(asked: Subscribe) -> None:
    if asked.mode is Mode.WORK:
        raise ValidationFailed.at("/mode", "Mode 'work' is for queues", "conflict")
    _refuse(asked, "read", "group", "visibility_timeout_seconds", "auto_extend")
    faults = asked.filter.faults() if asked.filter is not None else []
    if faults:
        raise ValidationFailed("The filter is not valid.", *faults)
