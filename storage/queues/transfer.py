"""Outbox of a queue: messages in transfer to its dead-letter queue, or by a move.

`storage.log.outbox` has the steps. A target remembers for ARRIVAL_WINDOW_MS what arrived, and from where: by far longer than the
age up to which a list of moving messages is acted on.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import msgspec

from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import FenceMismatch, QueueNotFound, TopicNotFound
from storage.domain.log.record_batch import (
    CONTENT_TYPE,
    DEAD_LETTER,
    DEAD_LETTER_SOURCE,
    DEDUP_ID,
    MESSAGE_ID,
    RESERVED,
    Header,
    Record,
)
from storage.domain.names import QueueName, TopicName
from storage.domain.queues.dead_letter_origin import DeadLetterOrigin
from storage.domain.queues.message import message_id
from storage.domain.queues.moves import (
    MESSAGE_SOURCE_UNKNOWN,
    QUEUE_NOT_FOUND,
    QUEUE_READ_ONLY,
    Move,
)
from storage.domain.queues.partitions import divide, home_of
from storage.domain.queues.queue import Queue, QueueType
from storage.domain.streams.idempotence import SequencedBatch
from storage.domain.topics.topic import (
    DEAD_LETTER_PREFIX,
    HOPS,
    NewPublication,
    PublicationOptions,
)
from storage.hot_store.queues.transfers import Arriving, Departures, Moving, TransferStore
from storage.log.outbox import PendingEntries, transfer
from storage.log.provisioner import LogProvisioner
from storage.log.queue_executor import QueueExecutor, address_of
from storage.postgres.repositories.moves import MoveRows

T = TypeVar("T")

TransferTarget = QueueName | TopicName


class TransferResult(msgspec.Struct):
    """The result of a transfer.

    `failure`: why messages were put back, as moves report it; empty if all were moved.
    """

    moved: int = 0
    failure: str = ""


PublishDeadLetters = Callable[
    [TopicName, SequencedBatch, Sequence[NewPublication]], Awaitable[None]
]
"""Publishes dead letters to a topic, each once by its sequence. Raises TopicNotFound."""


class MessageTransfer(NamedTuple):
    """Transfers of messages between queues, and of dead letters to topics.

    `complete_routed` transfers what has departed for the topic of a queue's routes.
    """

    hot: TransferStore
    executor: QueueExecutor
    provisioner: LogProvisioner
    rows: MoveRows
    clock: Clock
    publish: PublishDeadLetters
    complete_routed: Callable[[QueueName], Awaitable[None]]

    async def complete(self, source: QueueName) -> TransferResult:
        """Transfer all `moving` messages of `source` to their target."""
        result = TransferResult()
        queue = await self.executor.resolve(source)
        for log in queue.logs:
            await transfer(_QueueOutbox(log, self, result))
        return result


class _QueueOutbox:
    """The moving messages of a queue's log, and the result of their transfer."""

    def __init__(self, log: Queue, stores: MessageTransfer, result: TransferResult) -> None:
        self._source = log
        self._stores = stores
        self._producer = ""
        self.result = result

    async def pending(self) -> PendingEntries[Moving, TransferTarget]:
        source, moving = await self._on_source(self._moving)
        self._source, self._producer = source, moving.producer_id(source.log_id)
        moves: dict[str, Move | None] = {}
        grouped: dict[TransferTarget | None, list[Moving]] = {}
        for message in moving.messages:
            if message.move_id and message.move_id not in moves:
                moves[message.move_id] = await self._stores.rows.find(message.move_id)
            target = _target_of(source, message, moves.get(message.move_id))
            grouped.setdefault(target, []).append(message)
        return PendingEntries(grouped, len(moving.messages) < limits.MOVE_BATCH_MESSAGES)

    async def _on_source(self, verb: Callable[[Queue], Awaitable[T]]) -> T:
        return await self._stores.executor.run(self._source.name, verb, self._source)

    async def _moving(self, source: Queue) -> tuple[Queue, Departures]:
        return source, await self._stores.hot.moving(source, limits.MOVE_BATCH_MESSAGES)

    async def deliver(self, target: TransferTarget, entries: Sequence[Moving]) -> bool:
        if isinstance(target, TopicName):
            return await self._publish(target, entries)
        try:
            queue = await self._stores.executor.resolve(target)
            for log, own in self._by_log(queue, entries):
                await self._stores.executor.run(target, partial(self._accept, own), log)
        except QueueNotFound:
            return False
        except FenceMismatch:
            if not all(message.move_id for message in entries):
                raise  # dead letters wait for their queue
            self.result.failure = QUEUE_READ_ONLY
            return False
        return True

    async def _publish(self, topic: TopicName, entries: Sequence[Moving]) -> bool:
        letters = [_publication(self._source, message) for message in entries]
        batch = SequencedBatch.of(self._producer, [message.position for message in entries])
        try:
            await self._stores.publish(topic, batch, letters)
        except TopicNotFound:
            return False
        return True

    def _by_log(
        self, queue: Queue, entries: Sequence[Moving]
    ) -> list[tuple[Queue, Sequence[Moving]]]:
        """Return the entries of each log of the target, which a repeat finds there too."""
        if not queue.partitions:
            return [(queue, entries)]
        keys = [message.group or _source_of(self._source, message) for message in entries]
        shares = divide(range(len(entries)), lambda number: home_of(queue, keys[number]))
        return [(log, [entries[number] for number in numbers]) for log, numbers in shares]

    async def _accept(self, entries: Sequence[Moving], log: Queue) -> None:
        now_ms = self._stores.clock.now_ms()
        arriving = [_arriving(self._source, log, message, now_ms) for message in entries]
        following, left = await self._stores.hot.accept(
            log, arriving, self._stores.provisioner.store_epoch, self._stores.clock.script_time()
        )
        self._stores.provisioner.reserve_ahead(address_of(log), following, left)

    async def clear(
        self, target: TransferTarget | None, entries: Sequence[Moving], *, delivered: bool
    ) -> None:
        positions = [message.position for message in entries]
        cleared = await self._on_source(
            lambda log: self._stores.hot.clear(
                log, positions, self._stores.clock.script_time(), put_back=not delivered
            )
        )
        if delivered:
            self.result.moved += cleared
        elif cleared:
            is_unknown = target is None and entries[0].move_id
            other = MESSAGE_SOURCE_UNKNOWN if is_unknown else QUEUE_NOT_FOUND
            self.result.failure = self.result.failure or other


def _target_of(source: Queue, moving: Moving, move: Move | None) -> TransferTarget | None:
    """Return a message's target.

    This is that of its queue's dead letters, a move's destination, or the queue that it was dead-lettered in. A topic takes only what
    departed for one, as it has no sequence otherwise: it departs again.
    """
    namespace = source.name.namespace
    if not moving.move_id:
        target = source.spec.dead_letters
        own = None if target is None else target.resolve(namespace)
        is_numbered = moving.position != moving.offset
        return None if isinstance(own, TopicName) and not is_numbered else own
    if move is None:
        return None
    if move.destination is not None:
        return move.destination
    for name, _, value in moving.record.headers:
        if name == DEAD_LETTER_SOURCE:
            return QueueName(value.decode(), namespace)
    return None


def _publication(source: Queue, moving: Moving) -> NewPublication:
    """Return a dead letter as it is published to a topic.

    Its subject is the name of the queue, its key the message group, and its deduplication id the id of the message. An empty
    message, which a topic does not have, is published as a line feed.
    """
    record = moving.record
    own = {name: value for name, _, value in record.headers}
    id_ = own.get(MESSAGE_ID) or message_id(source.log_id, moving.offset).encode()
    facts = {
        f"{DEAD_LETTER_PREFIX}queue": source.name.name,
        f"{DEAD_LETTER_PREFIX}reason": moving.reason,
        f"{DEAD_LETTER_PREFIX}receive-count": str(moving.receive_count),
        f"{DEAD_LETTER_PREFIX}message-id": id_.decode(),
    }
    headers = [one for one in record.headers if one[0] == CONTENT_TYPE or one[0][:1] != RESERVED]
    left = limits.HEADERS_MAX - sum(one[0] not in facts for one in headers)
    return NewPublication(
        record.data or b"\n",
        _subject(source.name.name),
        moving.group,
        (
            *(one for one in headers if one[0] not in facts),
            *((name, "", fact.encode()) for name, fact in [*facts.items()][: max(0, left)]),
        ),
        options=PublicationOptions(dedup_id=id_.decode()),
    )


def _subject(queue: str) -> str:
    """Return a subject of the words of a queue's name, without empty ones."""
    words = [word for word in queue.split(".") if word]
    return ".".join(words[: limits.SUBJECT_TOKENS_MAX])


def _source_of(source: Queue, moving: Moving) -> str:
    return f"{source.log_id} {moving.offset}"


def _arriving(source: Queue, target: Queue, moving: Moving, now_ms: int) -> Arriving:
    """Return a message as it arrives in its target queue.

    A dead letter keeps its counts, and in a standard queue its age; those of a message moved by a move are reset.
    """
    dead = not moving.move_id
    fifo = target.spec.type is QueueType.FIFO
    return Arriving(
        source=_source_of(source, moving),
        record=_with_origin_headers(source, moving, now_ms if dead else None, fifo=fifo),
        arrival_ms=moving.arrival_ms,
        renewed=not dead or fifo,
        group=moving.group,
        receive_count=moving.receive_count if dead else 0,
        first_received_at_ms=moving.first_received_at_ms if dead else 0,
        priority=moving.priority,
    )


def _with_origin_headers(
    source: Queue, moving: Moving, died_at_ms: int | None, *, fifo: bool
) -> Record:
    """Return the record with its id, and a dead letter's source and reason.

    The id is kept; a dead letter's deduplication id becomes its id. `died_at_ms`: None for a message that a move brings, which has
    passed no topics from here on.
    """
    record = moving.record
    own = {name: value for name, _, value in record.headers}
    id_ = own.get(MESSAGE_ID) or message_id(source.log_id, moving.offset).encode()
    headers: list[Header] = [(MESSAGE_ID, "", id_)]
    if died_at_ms is not None:
        headers.append((DEAD_LETTER_SOURCE, "", source.name.name.encode()))
        headers.append(_origin(source, moving, died_at_ms).to_header())
        if fifo:
            headers.append((DEDUP_ID, "", id_))
    replaced = _ORIGIN_HEADERS | {name for name, _, _ in headers}
    if died_at_ms is None:
        replaced |= {HOPS}
    others = [header for header in record.headers if header[0] not in replaced]
    return msgspec.structs.replace(record, headers=(*others, *headers))


_ORIGIN_HEADERS = frozenset((DEAD_LETTER, DEAD_LETTER_SOURCE))


def _origin(source: Queue, moving: Moving, died_at_ms: int) -> DeadLetterOrigin:
    return DeadLetterOrigin(
        source=f"queue:{source.name.name}",
        reason=moving.reason,
        died_at_ms=died_at_ms,
        failures=moving.failures,
        crash_count=moving.crash_count,
        last_failure_reason=moving.last_failure_reason,
        details=moving.details,
    )
