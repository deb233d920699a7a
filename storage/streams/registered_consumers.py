"""Registered consumers of streams."""

from collections.abc import Callable

from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.streams.consumers import RegisteredConsumer
from storage.domain.streams.stream import Stream
from storage.postgres.database import Database
from storage.postgres.repositories.stream_consumers import ConsumerRows


class RegisteredConsumers:
    """Registry of consumers, for the protocol endpoints.

    Consumers are deleted with their stream. Every method raises StorageUnavailable or StorageBusy; one that changes
    something, OutcomeUnknown.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._rows = ConsumerRows(database)
        self._clock = clock

    def now_ms(self) -> int:
        """Return the time used for registrations, in milliseconds."""
        return self._clock.now_ms()

    async def register(
        self, stream: Stream, name: str, tags: dict[str, str], at_most: int
    ) -> RegisteredConsumer | str:
        """Register a consumer, or return why it was not registered.

        'exists', or 'too_many' if the stream has `at_most` consumers already.
        """
        consumer = RegisteredConsumer(
            stream_id=stream.stream_id,
            name=name,
            registered_at_ms=self._clock.now_ms(),
            tags=tags,
        )
        return await self._rows.insert(consumer, at_most) or consumer

    async def find(self, stream: Stream, name: str) -> RegisteredConsumer | None:
        """Return the consumer of that name, or None."""
        return await self._rows.find(stream.stream_id, name)

    async def page(
        self, stream: Stream, after: str = "", limit: int = limits.PAGE_ITEMS_DEFAULT
    ) -> list[RegisteredConsumer]:
        """Return a stream's consumers by name, strictly after `after`."""
        return await self._rows.page(stream.stream_id, after, limit)

    async def count(self, stream: Stream) -> int:
        """Return the number of consumers of the stream."""
        return await self._rows.count(stream.stream_id)

    async def change(
        self,
        stream: Stream,
        name: str,
        change: Callable[[RegisteredConsumer], RegisteredConsumer],
    ) -> RegisteredConsumer | None:
        """Replace a consumer's tags and policy atomically; None if it does not exist."""
        return await self._rows.change(stream.stream_id, name, change)

    async def deregister(self, stream: Stream, name: str) -> bool:
        """Deregister a consumer; return whether it existed."""
        return await self._rows.delete(stream.stream_id, name)
