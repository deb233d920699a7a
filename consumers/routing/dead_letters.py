"""Dead letters of routes: each once in the dead-letter queue, and then not in the target.

A dead letter is an idempotent append of a producer of its own, with the message's offset as its sequence. Members of a spread
have different ones, as they do not wait for one another. It leaves when every
earlier message of its shard and branch is finished, and before the next one. So what lies at or below the last sequence that
the queue has is finished, whatever the target accepts now: a router reads that sequence before it repeats copies (ADR 0093).
"""

from collections.abc import Sequence
from typing import NamedTuple

import attrs

from consumers.routing.copies import Copy
from consumers.routing.target_sender import last_sequences
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.clock import Clock, SystemClock
from storage.domain.names import QueueName
from storage.domain.queues.dead_letter_origin import DeadLetterOrigin
from storage.domain.streams.idempotence import NO_WATERMARK, SequencedBatch


class DeliveryFailure(NamedTuple):
    """Reason why a target does not get a message: a code and a sentence."""

    reason: str
    detail: str


@attrs.define(eq=False)
class DeadLetterSender:
    """Sender of the dead letters of one target's routes."""

    _storage: Storage
    _clock: Clock = attrs.field(factory=SystemClock)
    _lasts: dict[tuple[QueueName, str], int] = attrs.field(factory=dict, init=False)

    async def send(
        self, queue: QueueName, copies: Sequence[Copy], failure: DeliveryFailure
    ) -> None:
        """Add the messages of copies to a queue, all or none. Raises what a send does."""
        queue_type = (await self._storage.catalog.queue(queue)).spec.type
        batch = SequencedBatch(
            [copy.dead_producer_id for copy in copies], [copy.source.offset for copy in copies]
        )
        messages = [copy.as_dead_letter(queue_type, self._origin(copy, failure)) for copy in copies]
        await self._storage.queues.send_idempotent_batch(queue, batch, messages)

    async def recall(self, queue: QueueName, producer_ids: Sequence[str]) -> None:
        """Read the last sequences of producers, at their first copies."""
        unread = [one for one in producer_ids if (queue, one) not in self._lasts]
        if unread:
            lasts = await last_sequences(self._storage, queue, unread)
            self._lasts |= {(queue, one): lasts.get(one, NO_WATERMARK) for one in unread}

    def last(self, queue: QueueName, copy: Copy) -> int:
        """Return the offset of the last dead letter of the copy's producer, as it was recalled."""
        return self._lasts[queue, copy.dead_producer_id]

    def _origin(self, copy: Copy, failure: DeliveryFailure) -> DeadLetterOrigin:
        name = copy.route.name
        return DeadLetterOrigin(
            source=f"route:{name.topic.name}/{name.route}",
            reason=failure.reason,
            died_at_ms=self._clock.now_ms(),
            failures=1,
            crash_count=0,
            details=failure.detail[: limits.DETAILS_CHARACTERS_MAX],
        )
