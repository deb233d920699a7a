"""Two-phase transfer of messages between queues, across slots, without loss or duplicates.

    1 the source puts a message among its `moving` ones     (receive, depart)
    2 the target adds it, and remembers where it came from
    3 the source clears it

A process that finds messages at step 1 does steps 2 and 3: the caller that moved them there, or a sweep. A step may be
done twice, also by two processes concurrently. The target's memory by far outlasts the age up to which a list of
moving messages is acted on, so a process that was stopped in between delivers nothing again.
"""

import asyncio
from collections.abc import Sequence

import msgspec

from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import QueueNotFound
from storage.domain.log.record_batch import (
    DEAD_LETTER,
    DEAD_LETTER_SOURCE,
    DEDUP_ID,
    MESSAGE_ID,
    Header,
    Record,
)
from storage.domain.names import QueueName
from storage.domain.queues.dead_letter_origin import DeadLetterOrigin
from storage.domain.queues.message import message_id
from storage.domain.queues.moves import MESSAGE_SOURCE_UNKNOWN, QUEUE_NOT_FOUND, Move
from storage.domain.queues.queue import Queue, QueueType
from storage.hot_store.transfers import Arriving, Moving, TransferStore
from storage.log.provisioner import LogProvisioner
from storage.log.queue_executor import QueueExecutor, address_of
from storage.postgres.repositories.moves import MoveRows


class TransferResult(msgspec.Struct):
    """The result of a transfer.

    `failure`: why messages were put back, as moves report it; empty if all were moved.
    """

    moved: int = 0
    failure: str = ""


class MessageTransfer:
    """Executor of steps 2 and 3 for the messages in transfer from a queue."""

    def __init__(
        self,
        hot: TransferStore,
        executor: QueueExecutor,
        provisioner: LogProvisioner,
        rows: MoveRows,
        clock: Clock,
    ) -> None:
        self._hot = hot
        self._executor = executor
        self._provisioner = provisioner
        self._rows = rows
        self._clock = clock

    async def complete(self, source: QueueName) -> TransferResult:
        """Transfer all `moving` messages of `source` to their target."""
        result = TransferResult()
        while batch := await self._complete_batch(source, result):
            if batch < limits.MOVE_BATCH_MESSAGES:
                break
        return result

    async def _complete_batch(self, name: QueueName, result: TransferResult) -> int:
        loop = asyncio.get_running_loop()
        until = loop.time() + limits.MOVE_STEP_MS_MAX / limits.SECOND_MS
        source, moving = await self._executor.run(name, self._pending)
        for target, batch in (await self._by_target(source, moving)).items():
            if loop.time() > until:
                break  # too old to act on: what is still moving is listed again
            arrived = target is not None and await self._deliver(source, target, batch)
            cleared = await self._acknowledge(source, batch, put_back=not arrived)
            if arrived:
                result.moved += cleared
            elif cleared:
                is_unknown = target is None and batch[0].move_id
                result.failure = MESSAGE_SOURCE_UNKNOWN if is_unknown else QUEUE_NOT_FOUND
        return len(moving)

    async def _pending(self, source: Queue) -> tuple[Queue, list[Moving]]:
        return source, await self._hot.moving(source, limits.MOVE_BATCH_MESSAGES)

    async def _by_target(
        self, source: Queue, moving: Sequence[Moving]
    ) -> dict[QueueName | None, list[Moving]]:
        moves: dict[str, Move | None] = {}
        grouped: dict[QueueName | None, list[Moving]] = {}
        for message in moving:
            if message.move_id and message.move_id not in moves:
                moves[message.move_id] = await self._rows.find(message.move_id)
            target = _target_of(source, message, moves.get(message.move_id))
            grouped.setdefault(target, []).append(message)
        return grouped

    async def _deliver(self, source: Queue, target: QueueName, batch: Sequence[Moving]) -> bool:
        """Deliver messages to the target (step 2); return False if there is no such queue."""

        async def accept(queue: Queue) -> None:
            now_ms = self._clock.now_ms()
            arriving = [_arriving(source, queue, one, now_ms) for one in batch]
            following, left = await self._hot.accept(
                queue, arriving, self._provisioner.store_epoch, self._clock.script_time()
            )
            self._provisioner.reserve_ahead(address_of(queue), following, left)

        try:
            await self._executor.run(target, accept)
        except QueueNotFound:
            return False
        return True

    async def _acknowledge(self, source: Queue, batch: Sequence[Moving], *, put_back: bool) -> int:
        offsets = [one.offset for one in batch]
        return await self._executor.run(
            source.name,
            lambda queue: self._hot.clear(
                queue, offsets, self._clock.script_time(), put_back=put_back
            ),
        )


def _target_of(source: Queue, moving: Moving, move: Move | None) -> QueueName | None:
    """Return a message's target queue.

    This is its queue's dead-letter queue, a move's destination, or the queue that it was dead-lettered in.
    """
    namespace = source.name.namespace
    if not moving.move_id:
        target = source.spec.dead_letters
        return None if target is None else QueueName(target.queue, namespace)
    if move is None:
        return None
    if move.destination is not None:
        return move.destination
    for name, _, value in moving.record.headers:
        if name == DEAD_LETTER_SOURCE:
            return QueueName(value.decode(), namespace)
    return None


def _arriving(source: Queue, target: Queue, moving: Moving, now_ms: int) -> Arriving:
    """Return a message as it arrives in its target queue.

    A dead letter keeps its counts, and in a standard queue its age; those of a message moved by a move are reset.
    """
    dead = not moving.move_id
    fifo = target.spec.type is QueueType.FIFO
    return Arriving(
        source=f"{source.log_id} {moving.offset}",
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

    The id is kept; a dead letter's deduplication id becomes its id. `died_at_ms`: None for a message that is not dead-lettered.
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
        response=moving.response,
    )
