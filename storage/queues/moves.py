"""Message moves: drain a queue into another, or redrive dead letters, at a limited rate.

A move reports progress and runs until its source is empty. It is a row in Postgres. The process that starts it does
the work; a sweep continues those that no process works on any longer. One process at a time works on a move, by an
advisory lock.
"""

import asyncio
import secrets
from contextlib import suppress
from functools import partial

import attrs

from storage.catalog.catalog import Catalog
from storage.concurrency.isolation import Isolation
from storage.concurrency.tasks import end
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import (
    MillstreamError,
    MoveNotFound,
    MoveRefused,
    QueueNotFound,
    ValidationFailed,
)
from storage.domain.names import QueueName
from storage.domain.queues.message import WhichDead
from storage.domain.queues.moves import QUEUE_NOT_FOUND, Move, MoveState
from storage.domain.queues.queue import Queue
from storage.hot_store.queues.transfers import TransferStore
from storage.log.queue_executor import QueueExecutor
from storage.postgres.advisory_lock import try_advisory_lock
from storage.postgres.database import Database
from storage.postgres.repositories.moves import MoveRows
from storage.queues.dead_letters import QueueDeadLetters
from storage.queues.engine import Queues
from storage.queues.transfer import MessageTransfer

_TURN_S = 20.0  # a move's lock, and with it a connection, is released this often
_MOVE_CONCURRENCY_MAX = 2  # moves that one process works on: each needs a connection to Postgres


@attrs.define(eq=False, slots=False, kw_only=True)
class Moves:
    """The moves of a deployment."""

    _hot: TransferStore
    _executor: QueueExecutor
    _transfer: MessageTransfer
    _queues: Queues
    _dead_letters: QueueDeadLetters
    _catalog: Catalog
    _rows: MoveRows
    _database: Database
    _clock: Clock
    _isolation: Isolation
    _working: dict[str, asyncio.Task[None]] = attrs.field(factory=dict, init=False)
    _turns: asyncio.Semaphore = attrs.field(
        factory=lambda: asyncio.Semaphore(_MOVE_CONCURRENCY_MAX), init=False
    )

    async def close(self) -> None:
        """Stop working; open moves continue in another process, or at the next start."""
        for task in list(self._working.values()):
            await end(task)

    async def start(
        self,
        source: QueueName,
        destination: QueueName | None = None,
        per_second: int = 0,
        *,
        is_redrive: bool = False,
    ) -> Move:
        """Start a move of the ready messages of `source` to `destination`, groups in their order.

        Without a destination, each goes back to the queue it was dead-lettered in; then, and for a redrive, the source must be
        another queue's dead-letter queue. `per_second`: messages at most, 0 for no limit. Raises QueueNotFound; MoveRefused with
        `reason` 'not_a_dead_letter_queue' or 'already_running'; ValidationFailed, also for a destination of another type.
        """
        _check_rate(per_second)
        queue = await self._catalog.queue(source)
        if destination is not None:
            _check_destination(queue, await self._catalog.queue(destination))
        is_redrive = is_redrive or destination is None
        if is_redrive and not await self._catalog.dead_letter_sources(source, limit=1):
            raise MoveRefused(
                "The source must be another queue's dead-letter queue.",
                reason="not_a_dead_letter_queue",
            )
        to_move = (await self._queues.stats(source)).ready
        return await self._begin(source, destination, per_second, to_move)

    async def redrive(self, source: QueueName, which: WhichDead, per_second: int) -> Move:
        """Start a redrive of the queue's own dead letters, oldest first, `per_second` at most.

        Raises QueueNotFound; MoveRefused with `reason` 'already_running'; ValidationFailed.
        """
        _check_rate(per_second)
        return await self._begin(source, None, per_second, await self._meant(source, which), which)

    async def _meant(self, source: QueueName, which: WhichDead) -> int:
        """Return the number of dead letters that a redrive selects; for a group, an upper bound."""
        if which.references:
            return len(which.references)
        if which.reason:
            reasons = await self._dead_letters.reasons(source)
            return sum(one.count for one in reasons if one.reason == which.reason)
        return (await self._queues.stats(source)).dead_lettered

    async def _begin(
        self,
        source: QueueName,
        destination: QueueName | None,
        per_second: int,
        to_move: int,
        which_dead: WhichDead | None = None,
    ) -> Move:
        move = Move(
            move_id=secrets.token_hex(16),
            source=source,
            destination=destination,
            per_second=per_second,
            state=MoveState.RUNNING,
            moved=0,
            to_move=to_move,
            failure="",
            started_at_ms=self._clock.now_ms(),
            which_dead=which_dead,
        )
        if not await self._rows.insert(move):
            raise MoveRefused(
                "A move from this queue is already running.", reason="already_running"
            )
        self._work_on(move)
        return move

    async def cancel(self, move_id: str) -> Move:
        """Stop a move; messages that were moved stay where they are.

        Raises MoveNotFound; MoveRefused with `reason` 'not_running'.
        """
        if await self._rows.change_state(move_id, MoveState.RUNNING, MoveState.CANCELLING):
            return await self.get(move_id)
        await self.get(move_id)
        raise MoveRefused("The move is not running.", reason="not_running")

    async def get(self, move_id: str) -> Move:
        """Return one move.

        Raises MoveNotFound.
        """
        move = await self._rows.find(move_id)
        if move is None:
            raise MoveNotFound
        return move

    async def list(self, source: QueueName, limit: int = limits.PAGE_ITEMS_DEFAULT) -> list[Move]:
        """Return the moves from a queue, the newest first."""
        return await self._rows.of(source, limit)

    async def resume(self) -> int:
        """Continue open moves; return their number.

        For the sweeper.
        """
        moves = await self._rows.open()
        for move in moves:
            self._work_on(move)
        return len(moves)

    def _work_on(self, move: Move) -> None:
        if move.move_id not in self._working:
            task = asyncio.create_task(self._work(move.move_id))
            self._working[move.move_id] = task
            task.add_done_callback(lambda _: self._working.pop(move.move_id))

    async def _work(self, move_id: str) -> None:
        """Work in turns until the move is over, another process has it, or a store is unreachable.

        Then a sweep continues it.
        """
        take_turn = partial(self._take_turn, move_id)
        with suppress(MillstreamError):
            while await self._isolation.visit("moves", f"moves/{move_id}", take_turn, False):
                continue

    async def _take_turn(self, move_id: str) -> bool:
        """Work on a move for a limited time; return whether there is more to do here."""
        async with self._turns, try_advisory_lock(self._database, f"move:{move_id}") as mine:
            until = asyncio.get_running_loop().time() + _TURN_S
            while mine and asyncio.get_running_loop().time() < until:
                if not await self._step(move_id):
                    return False
            return mine

    async def _step(self, move_id: str) -> bool:
        """Move some messages at the move's rate; return whether there are more to move."""
        move = await self.get(move_id)
        if move.state not in (MoveState.RUNNING, MoveState.CANCELLING):
            return False
        if move.which_dead is not None:
            return await self._redrive_some(move, move.which_dead)
        batch = min(move.per_second or limits.MOVE_BATCH_MESSAGES, limits.MOVE_BATCH_MESSAGES)
        departed = 0
        try:
            if move.state is MoveState.RUNNING:
                departed = await self._depart(move, batch)
            carried = await self._transfer.complete(move.source)
        except QueueNotFound:
            await self._rows.end(move_id, MoveState.FAILED, QUEUE_NOT_FOUND)
            return False
        await self._rows.add_moved(move_id, carried.moved)
        if carried.failure:
            await self._rows.end(move_id, MoveState.FAILED, carried.failure)
        elif move.state is MoveState.CANCELLING:
            await self._rows.end(move_id, MoveState.CANCELLED)
        elif departed < batch:
            await self._rows.end(move_id, MoveState.COMPLETED)
        else:
            if move.per_second:
                await asyncio.sleep(batch / move.per_second)
            return True
        return False

    async def _depart(self, move: Move, messages_max: int) -> int:
        """Start the transfer of ready messages, from one partition after the other."""
        departed = 0
        for log in (await self._executor.resolve(move.source)).logs:
            left = messages_max - departed
            if left:
                departed += await self._executor.run(
                    move.source,
                    lambda log: self._hot.depart(
                        log,
                        left,  # noqa: B023 - called before the next round
                        move.move_id,
                        self._clock.script_time(),
                    ),
                    log,
                )
        return departed

    async def _redrive_some(self, move: Move, which: WhichDead) -> bool:
        """Redrive some messages at the move's rate; return whether there are more."""
        batch = min(move.per_second or limits.MOVE_BATCH_MESSAGES, limits.MOVE_BATCH_MESSAGES)
        if move.state is MoveState.CANCELLING:
            await self._rows.end(move.move_id, MoveState.CANCELLED)
            return False
        try:
            redriven, last = await self._dead_letters.redrive_page(
                move.source, which, move.examined_to, batch
            )
        except QueueNotFound:
            await self._rows.end(move.move_id, MoveState.FAILED, QUEUE_NOT_FOUND)
            return False
        await self._rows.add_moved(move.move_id, redriven, -1 if last is None else last)
        if last is None:
            await self._rows.end(move.move_id, MoveState.COMPLETED)
            return False
        if move.per_second:
            await asyncio.sleep(redriven / move.per_second)
        return True


def _check_destination(source: Queue, destination: Queue) -> None:
    if destination.name == source.name:
        raise ValidationFailed.at("/destination", "must be another queue", "same_queue")
    if destination.spec.type is not source.spec.type:
        detail = f"The destination must have the same type as this queue, '{source.spec.type}'"
        raise ValidationFailed.at("/destination", detail, "type_mismatch")


def _check_rate(per_second: int) -> None:
    if not 0 <= per_second <= limits.MOVE_RATE_MAX:
        raise ValidationFailed.at(
            "/per_second", f"must be 0 to {limits.MOVE_RATE_MAX}", "out_of_range"
        )
