"""Sender of batches: each copy ends in the target or a dead-letter queue, or is dropped.

    attempt ──▶ target
       ▲          ├── refuses a copy for good ──▶ that copy alone: dead-letter queue of its route, or dropped without one
       │          ├── does not exist ──────────▶ as each route's `on_failure` says
       └── later ◀┴── anything else

Copies of a shard and route are finished in order: parts of a batch leave in turn, and a dead letter before what lies behind it.
A route that alone is blocked, since its dead-letter queue is missing or full, is left to a buffer of its own.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from consumers.routing.copies import Copy
from consumers.routing.dead_letters import DeadLetterSender, DeliveryFailure
from consumers.routing.delivery_counts import EXPIRED, ROUTE_DELETED, DeliveryCounts
from consumers.routing.target_sender import TargetSender, UnfitCopy
from storage.domain import limits
from storage.domain.errors import ErrorCategory, ErrorCode, MillstreamError
from storage.domain.names import QueueName
from storage.domain.topics.route import RouteFailurePolicy, TopicRoute

T = TypeVar("T")

logger = logging.getLogger(__name__)

_OF_THE_MESSAGE = frozenset({ErrorCategory.INVALID, ErrorCategory.TOO_LARGE})


def never_apart(_: Copy) -> bool:
    """Leave a route that waits alone to its buffer."""
    return False


class BatchSender:
    """Sends batches of copies, one at a time, until each copy is finished.

    `present` returns a revision of a route with its present settings. `on_progress` is called after each attempt, and
    `on_blocked` with a copy of a route that waits alone; it returns whether the route's unfinished copies are sent by another buffer.
    """

    def __init__(
        self,
        target: TargetSender,
        dead_letters: DeadLetterSender,
        counts: DeliveryCounts,
        present: Callable[[TopicRoute], TopicRoute],
    ) -> None:
        self._target = target
        self._dead_letters = dead_letters
        self._counts = counts
        self._present = present
        self.unfinished: list[Copy] = []
        self.is_failing = False
        self.on_progress: Callable[[], None] = lambda: None
        self.on_blocked: Callable[[Copy], bool] = never_apart
        self._apart: set[int] = set()

    async def send(self, batch: Sequence[Copy]) -> None:
        """Send a batch until each copy is finished."""
        self.unfinished = [*batch]
        self._apart.clear()
        is_shadow = batch[0].route.spec.is_shadow
        await self._deliver(batch if is_shadow else await self._not_ended(batch))

    async def _not_ended(self, batch: Sequence[Copy]) -> Sequence[Copy]:
        return await self._drop_expired(await self._skip_finished(batch))

    async def _deliver(self, copies: Sequence[Copy]) -> None:
        pause = _RetryPause()
        while copies := self._not_apart(copies):
            copies = await self._attempt(copies)
            if copies and self.is_failing:
                await pause.wait()
                copies = self._drop_deleted(copies)

    async def _attempt(self, copies: Sequence[Copy]) -> Sequence[Copy]:
        """Send copies; return those to send again."""
        if copies[0].route.spec.is_shadow:  # a buffer has shadow routes alone, or none
            return self._count_shadows(copies)
        try:
            await self._target.send(copies)
        except UnfitCopy as unfit:
            return await self._deliver_around(copies, unfit)
        except MillstreamError as error:
            return await self._after_refusal(copies, error)
        except Exception as error:  # a buffer must not end
            return self._crashed(copies, error)
        self._counts.add_delivered(copies)
        self._finish(copies)
        return ()

    def _count_shadows(self, copies: Sequence[Copy]) -> Sequence[Copy]:
        self._counts.add_shadowed(copies)
        return self._finish(copies)

    async def _deliver_around(self, copies: Sequence[Copy], unfit: UnfitCopy) -> Sequence[Copy]:
        """Send the copies before an unfit one, and give up that one; return those behind it."""
        await self._deliver(copies[: unfit.number])
        failure = DeliveryFailure(unfit.reason, unfit.detail)
        await self._give_up(self._not_apart([copies[unfit.number]]), failure)
        return copies[unfit.number + 1 :]

    async def _after_refusal(
        self, copies: Sequence[Copy], error: MillstreamError
    ) -> Sequence[Copy]:
        if error.code.category is ErrorCategory.NOT_FOUND:
            return await self._without_target(copies, error)
        if error.code.category not in _OF_THE_MESSAGE and not _may_fit_in_part(copies, error):
            return self._failed(copies, error.detail)
        if len(copies) == 1:
            await self._give_up(copies, DeliveryFailure(error.code, error.detail))
            return ()
        middle = len(copies) // 2
        await self._deliver(copies[:middle])
        return copies[middle:]

    async def _without_target(
        self, copies: Sequence[Copy], error: MillstreamError
    ) -> Sequence[Copy]:
        """Give up the copies of routes that do not wait for a missing target; return the others."""
        waiting: Sequence[Copy] = [copy for copy in copies if self._waits(copy)]
        given_up = [copy for copy in copies if not self._waits(copy)]
        if given_up:
            await self._give_up(given_up, DeliveryFailure(error.code, error.detail))
            waiting = self._set_apart(waiting)
        return self._failed(waiting, error.detail) if waiting else ()

    def _waits(self, copy: Copy) -> bool:
        return self._present(copy.route).spec.on_failure is RouteFailurePolicy.WAIT

    # Dead letters

    async def _skip_finished(self, copies: Sequence[Copy]) -> Sequence[Copy]:
        """Leave out what an earlier router dead-lettered, or delivered before a dead letter."""
        if not any(self._present(route).dead_letter_queue for route in _routes_of(copies)):
            return copies
        parts = self._by_dead_letter_queue(copies)
        await self._recall(parts)
        finished: list[Copy] = []
        for queue, part in parts.items():
            if queue is not None:
                finished += self._finished_before(queue, part)
        before = {id(copy) for copy in finished}
        return [copy for copy in copies if id(copy) not in before] if finished else copies

    def _finished_before(self, queue: QueueName, copies: Sequence[Copy]) -> Sequence[Copy]:
        """Count and return the copies up to the last dead letter.

        Those before it count as delivered: some of them may have been dead-lettered too.
        """
        lasts = [(copy, self._dead_letters.last(queue, copy)) for copy in copies]
        delivered = [copy for copy, last in lasts if copy.source.offset < last]
        dead = [copy for copy, last in lasts if copy.source.offset == last]
        self._counts.add_delivered(delivered)
        self._counts.add_dead_lettered(dead, None)
        finished = [*delivered, *dead]
        if finished:
            self._finish(finished)
        return finished

    async def _recall(self, parts: Mapping[QueueName | None, Sequence[Copy]]) -> None:
        for queue, part in parts.items():
            if queue is not None:
                ids = [*dict.fromkeys(copy.dead_producer_id for copy in part)]
                await self._insist(part, partial(self._dead_letters.recall, queue, ids))

    async def _insist(self, copies: Sequence[Copy], read: Callable[[], Awaitable[T]]) -> T:
        """Return what is read about copies, after as many failures as there are."""
        pause = _RetryPause()
        while True:
            try:
                return await read()
            except MillstreamError as error:
                self._failed(copies, error.detail)
            except Exception as error:  # a buffer must not end
                self._crashed(copies, error)
            await pause.wait()

    async def _drop_expired(self, copies: Sequence[Copy]) -> Sequence[Copy]:
        """Drop the copies whose time to live is over, but not what an earlier router delivered."""
        expired = self._target.expired(copies)
        if not expired:
            return copies
        delivered = await self._insist(expired, partial(self._target.delivered, expired))
        if delivered:
            self._counts.add_delivered(delivered)
            self._finish(delivered)
        before, gone = {id(one) for one in delivered}, {id(one) for one in expired}
        self._drop([one for one in expired if id(one) not in before], EXPIRED)
        return [one for one in copies if id(one) not in gone]

    async def _give_up(self, copies: Sequence[Copy], failure: DeliveryFailure) -> None:
        """Dead-letter messages, or drop those of routes without a dead-letter queue."""
        pause = _RetryPause()
        while copies:
            copies = [
                copy
                for queue, part in self._by_dead_letter_queue(copies).items()
                for copy in await self._dead_letter(queue, part, failure)
            ]
            copies = self._set_apart(copies)
            if copies:
                await pause.wait()
                copies = self._drop_deleted(copies)

    async def _dead_letter(
        self, queue: QueueName | None, copies: Sequence[Copy], failure: DeliveryFailure
    ) -> Sequence[Copy]:
        """Send messages to a dead-letter queue; return those to send again."""
        if queue is None:
            return self._drop(copies, failure.detail)
        try:
            await self._dead_letters.send(queue, copies, failure)
        except MillstreamError as error:
            if error.code.category not in _OF_THE_MESSAGE and not _may_fit_in_part(copies, error):
                return self._failed(copies, f"Dead-letter queue: {error.detail}")
            if len(copies) == 1:
                return self._drop(copies, f"{failure.detail} Dead-letter queue: {error.detail}")
            return await self._dead_letter_halves(queue, copies, failure)
        except Exception as error:  # a buffer must not end
            return self._crashed(copies, error)
        self._counts.add_dead_lettered(copies, failure.detail)
        return self._finish(copies)

    async def _dead_letter_halves(
        self, queue: QueueName, copies: Sequence[Copy], failure: DeliveryFailure
    ) -> Sequence[Copy]:
        """Send the halves of a batch in turn, of which some message does not fit the queue."""
        middle = len(copies) // 2
        left = await self._dead_letter(queue, copies[:middle], failure)
        if left:
            return [*left, *copies[middle:]]
        return await self._dead_letter(queue, copies[middle:], failure)

    def _by_dead_letter_queue(self, copies: Sequence[Copy]) -> dict[QueueName | None, list[Copy]]:
        queues = {
            route.number: self._present(route).dead_letter_queue for route in _routes_of(copies)
        }
        parts: dict[QueueName | None, list[Copy]] = {}
        for copy in copies:
            queue = None if copy.has_no_dead_letter else queues[copy.route.number]
            parts.setdefault(queue, []).append(copy)
        return parts

    # Blocked routes

    def _set_apart(self, copies: Sequence[Copy]) -> Sequence[Copy]:
        """Leave the copies of blocked routes to other buffers, if they can; return the rest."""
        of_routes = {copy.route.number: copy for copy in copies}
        for number, copy in of_routes.items():
            if self.on_blocked(copy):
                self.leave(number)
        return self._not_apart(copies)

    def leave(self, number: int) -> None:
        """Leave the copies of a route to another buffer; those on their way may arrive."""
        self._apart.add(number)
        self.unfinished = [*self._not_apart(self.unfinished)]
        self.is_failing = False
        self.on_progress()

    def _not_apart(self, copies: Sequence[Copy]) -> Sequence[Copy]:
        if not self._apart:
            return copies
        return [copy for copy in copies if copy.route.number not in self._apart]

    # Outcomes

    def _drop_deleted(self, copies: Sequence[Copy]) -> Sequence[Copy]:
        """Drop the copies of routes that were deleted meanwhile; return the others."""
        deleted = [copy for copy in copies if self._present(copy.route).removed]
        if deleted:
            self._drop(deleted, ROUTE_DELETED)
        return [copy for copy in copies if not self._present(copy.route).removed]

    def _drop(self, copies: Sequence[Copy], reason: str) -> Sequence[Copy]:
        self._counts.add_dropped(copies, reason)
        return self._finish(copies)

    def _finish(self, copies: Sequence[Copy]) -> Sequence[Copy]:
        """Take copies that were counted off the unfinished ones: counts and positions agree."""
        self.is_failing = False
        if not self._apart and len(copies) == len(self.unfinished):
            self.unfinished = []
        else:
            finished = {id(copy) for copy in copies}
            self.unfinished = [copy for copy in self.unfinished if id(copy) not in finished]
        self.on_progress()
        return ()

    def _failed(self, copies: Sequence[Copy], reason: str) -> Sequence[Copy]:
        self.is_failing = True
        self._counts.set_failure(copies, reason)
        self.on_progress()
        return copies

    def _crashed(self, copies: Sequence[Copy], error: Exception) -> Sequence[Copy]:
        facts = {"target": str(self._target.target)}
        logger.error("route_failed", exc_info=error, extra=facts)
        return self._failed(copies, repr(error))


def _may_fit_in_part(copies: Sequence[Copy], error: MillstreamError) -> bool:
    """Return whether a full queue may take some of these copies; all may never fit."""
    return error.code is ErrorCode.QUEUE_FULL and len(copies) > 1


def _routes_of(copies: Iterable[Copy]) -> Iterable[TopicRoute]:
    """Return each revision of a route that has copies among these."""
    return {copy.route.number: copy.route for copy in copies}.values()


class _RetryPause:
    """Pauses that double, between attempts."""

    def __init__(self) -> None:
        self._pause_ms = limits.ROUTER_RETRY_MS_MIN

    async def wait(self) -> None:
        await asyncio.sleep(self._pause_ms / limits.SECOND_MS)
        self._pause_ms = min(2 * self._pause_ms, limits.ROUTER_RETRY_MS_MAX)
