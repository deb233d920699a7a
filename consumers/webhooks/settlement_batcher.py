"""Settlement batcher: settlements made during a call leave together in the next."""

import asyncio
from collections.abc import Sequence

from storage.concurrency.tasks import end, give
from storage.domain import limits
from storage.domain.errors import MillstreamError
from storage.domain.names import QueueName
from storage.domain.queues.message import Settled, Settlement
from storage.queues.engine import Queues

Said = tuple[Settlement, "asyncio.Future[Settled]"]


class SettlementBatcher:
    """Batcher of the settlements of one queue's messages."""

    def __init__(self, queues: Queues, queue: QueueName) -> None:
        self._queues = queues
        self._queue = queue
        self._waiting: list[Said] = []
        self._working: asyncio.Task[None] | None = None

    async def settle(self, settlement: Settlement) -> Settled:
        """Settle a message and return the result.

        Raises what `Queues.settle` does.
        """
        done: asyncio.Future[Settled] = asyncio.get_running_loop().create_future()
        self._waiting.append((settlement, done))
        if self._working is None:
            self._working = asyncio.create_task(self._work())
        return await done

    async def close(self) -> None:
        """Stop; waiting callers are cancelled."""
        if self._working is not None:
            await end(self._working)
        for _, done in self._waiting:
            done.cancel()

    async def _work(self) -> None:
        try:
            while self._waiting:
                batch = self._waiting[: limits.SETTLEMENTS_MAX]
                self._waiting = self._waiting[limits.SETTLEMENTS_MAX :]
                await self._answer(batch)
        finally:
            self._working = None

    async def _answer(self, batch: Sequence[Said]) -> None:
        try:
            settled = await self._queues.settle(self._queue, [verdict for verdict, _ in batch])
        except MillstreamError as error:
            for _, done in batch:
                give(done, error)
        except BaseException:
            for _, done in batch:
                done.cancel()
            raise
        else:
            for (_, done), answer in zip(batch, settled, strict=True):
                give(done, answer)
