"""Sender of copies to one target: each copy once, whoever repeats it."""

from collections.abc import Sequence

import attrs

from consumers.routing.copies import COPY_HEADERS, Copy
from storage.bootstrap import Storage
from storage.domain.names import QueueName, StreamName
from storage.domain.streams.idempotence import SequencedBatch


@attrs.define(eq=False)
class TargetSender:
    """Idempotent appends to a target, by a producer for each shard and route."""

    _storage: Storage
    target: QueueName | StreamName

    async def send(self, copies: Sequence[Copy]) -> None:
        """Add the copies that the target does not have, all or none. Raises what its append does."""
        batch = SequencedBatch([one.producer_id for one in copies], [one.offset for one in copies])
        if isinstance(self.target, QueueName):
            queue = await self._storage.catalog.queue(self.target)
            messages = [one.as_message(queue.spec.type) for one in copies]
            await self._storage.queues.send_idempotent_batch(self.target, batch, messages)
        else:
            records = [one.as_record() for one in copies]
            await self._storage.streams.append_idempotent_batch(
                self.target, batch, records, own=COPY_HEADERS
            )

    async def retire(self, producer_ids: Sequence[str]) -> None:
        """Retire producers that have sent everything; does nothing without the target."""
        if isinstance(self.target, QueueName):
            await self._storage.queues.retire_writers(self.target, producer_ids)
        else:
            await self._storage.streams.retire_writers(self.target, producer_ids)
