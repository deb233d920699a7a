"""Topic engine: topics, and publishing to them.

publish ─▶ match with the route table of version v ─▶ append record + numbers of its routes, with the token of v
                                                        └ another token: nothing happened; refresh, match again
"""

from collections.abc import Mapping, Sequence
from typing import Unpack

import attrs
from msgspec.structs import replace

from storage.catalog.catalog import Catalog
from storage.domain import limits
from storage.domain.definitions import Put, PutOptions
from storage.domain.errors import (
    FanOutTooLarge,
    FenceMismatch,
    MillstreamError,
    StorageBusy,
    StreamNotFound,
    TopicNotFound,
    Unroutable,
)
from storage.domain.filters.documents import Document
from storage.domain.filters.subjects import check_subject
from storage.domain.log.record_batch import Record
from storage.domain.names import LogId, TopicName
from storage.domain.streams.stream import Appended, Stream, StreamSpec
from storage.domain.streams.topic_spec import TopicSpec, Unmatched
from storage.domain.topics.topic import (
    PUBLISHED_HEADERS,
    NewPublication,
    Published,
)
from storage.streams.engine import Streams
from storage.topics.route_table import RouteTable, RouteTables


@attrs.define(eq=False, slots=False, kw_only=True)
class Topics:
    """Topics of a deployment. Every verb raises TopicNotFound for one that does not exist."""

    _catalog: Catalog
    _streams: Streams
    _tables: RouteTables

    # Topics

    async def put(
        self, name: TopicName, spec: StreamSpec, **options: Unpack[PutOptions]
    ) -> Put[Stream]:
        """Create the topic, or replace its configuration, which is a stream's."""
        spec = spec if spec.topic is not None else replace(spec, topic=TopicSpec())
        return await self._catalog.put_stream(name.stream, spec, **options)

    async def get(self, name: TopicName) -> Stream:
        """Return the topic as the stream that it is."""
        try:
            return await self._catalog.stream(name.stream)
        except StreamNotFound:
            raise _not_found(name) from None

    async def delete(self, name: TopicName, *, if_match: int | None = None) -> Stream:
        """Delete the topic with its messages and routes; return its last definition."""
        try:
            return await self._catalog.delete_stream(name.stream, if_match=if_match)
        except StreamNotFound:
            raise _not_found(name) from None

    # Publishing

    async def publish(
        self,
        name: TopicName,
        messages: Sequence[NewPublication],
        *,
        idempotency_key: str = "",
    ) -> list[Published | MillstreamError]:
        """Accept messages, and decide which routes take them; return one result each, in order.

        A message is on disk with the numbers of its routes when this returns. Messages for one shard are accepted together or
        not at all. A repeat with the same idempotency key within ten minutes adds nothing. Raises what `Streams.append` does,
        and ValidationFailed for a subject; results may also be Unroutable and FanOutTooLarge.
        """
        for message in messages:
            check_subject(message.subject)
        stream = await self.get(name)
        results: dict[int, Published | MillstreamError] = {}
        pending = list(range(len(messages)))
        table = await self._tables.get(name, stream.stream_id)
        for _ in range(limits.STALE_ROUTES_RETRIES_MAX):
            attempt = _PublishAttempt(stream, table, [messages[number] for number in pending])
            answers = await self._append(name, stream.stream_id, attempt, idempotency_key)
            results |= dict(zip(pending, answers, strict=True))
            pending = [one for one in pending if isinstance(results[one], FenceMismatch)]
            if not pending:
                return [results[number] for number in range(len(messages))]
            table = await self._tables.refresh(name, stream.stream_id)
        busy = StorageBusy("The topic's routes are changing; try again.")
        results |= dict.fromkeys(pending, busy)
        return [results[number] for number in range(len(messages))]

    async def _append(
        self, name: TopicName, stream_id: LogId, attempt: "_PublishAttempt", idempotency_key: str
    ) -> list[Published | MillstreamError]:
        if not attempt.records:
            return attempt.results([])
        appended = await self._streams.append(
            name.stream,
            attempt.records,
            idempotency_key=idempotency_key,
            own=PUBLISHED_HEADERS,
            stream_id=stream_id,
            fence=attempt.fence,
        )
        return attempt.results(appended)


class _PublishAttempt:
    """Records of messages that are matched with one version of the route table.

    Messages that are refused have a result instead of a record.
    """

    def __init__(
        self, stream: Stream, table: RouteTable, messages: Sequence[NewPublication]
    ) -> None:
        self.fence = table.fence
        self.records: list[Record] = []
        self._spec = stream.spec.topic or TopicSpec()
        self._meta = {"topic": stream.name.name.partition(":")[2]}
        self._routes = [self._add(table, message) for message in messages]

    def _add(self, table: RouteTable, message: NewPublication) -> int | MillstreamError:
        """Add the message's record; return the number of its routes, or why it is refused."""
        numbers = table.numbers_for(document_of(message, self._meta))
        if not numbers and self._spec.unmatched is Unmatched.REFUSE:
            return Unroutable()
        if len(numbers) * len(message.body) > limits.FAN_OUT_BYTES_MAX:
            return FanOutTooLarge(fan_out_bytes_max=limits.FAN_OUT_BYTES_MAX)
        self.records.append(message.record(numbers))
        return len(numbers)

    def results(
        self, appended: Sequence[Appended | MillstreamError]
    ) -> list[Published | MillstreamError]:
        """Return one result for each message, given those of its records in order."""
        answers = iter(appended)
        return [
            routes if isinstance(routes, MillstreamError) else _published(next(answers), routes)
            for routes in self._routes
        ]


def document_of(message: NewPublication, meta: Mapping[str, object]) -> Document:
    """Return what matches see of a message."""
    return Document(
        subject=message.subject,
        key=message.key,
        headers=message.headers,
        body=message.body,
        meta=meta,
    )


def _published(answer: Appended | MillstreamError, routes: int) -> Published | MillstreamError:
    if isinstance(answer, MillstreamError):
        return answer
    return Published(answer.shard, answer.offset, routes, answer.duplicate)


def _not_found(name: TopicName) -> TopicNotFound:
    return TopicNotFound(f"Topic '{name.name}' does not exist.")
