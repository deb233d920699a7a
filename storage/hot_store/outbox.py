"""Operations of an outbox of events, which leave it once their target has them."""

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol

from storage.domain.clock import ScriptTime
from storage.domain.sources.source import SourceCounts, SourceFailure


class OutboxAddress(NamedTuple):
    """Address of an outbox, in the slot of its owner's id."""

    namespace: str
    owner_id: str


class OutboxEntry(NamedTuple):
    """An entry; its sequence rises within its outbox, also after the store lost data."""

    sequence: int
    payload: bytes


class OfferedEvent(NamedTuple):
    """An event for an outbox; `dedup_ms` is how long its id is remembered."""

    event_id: str
    payload: bytes
    dedup_ms: int


class Acceptance(IntEnum):
    """Outcome of an event that is offered to an outbox."""

    ACCEPTED = 0
    DUPLICATE = 1
    FULL = 2


class OutboxStore(Protocol):
    """Outboxes.

    Every method raises StorageUnavailable, one that changes something OutcomeUnknown.
    """

    async def accept(
        self, outbox: OutboxAddress, event: OfferedEvent, bytes_max: int, now: ScriptTime
    ) -> Acceptance:
        """Put an event into the outbox, unless its id was accepted within its `dedup_ms`."""
        ...

    async def pending(
        self, outbox: OutboxAddress, entries_max: int
    ) -> tuple[list[OutboxEntry], bool]:
        """Return the first entries, by sequence, and whether none is behind them."""
        ...

    async def clear(self, outbox: OutboxAddress, sequences: Sequence[int]) -> None:
        """Remove entries that are in their target."""
        ...

    async def note_rejected(
        self, outbox: OutboxAddress, failure: SourceFailure, now: ScriptTime
    ) -> None:
        """Count a rejected request, and list it among the last ones."""
        ...

    async def note_handshake(self, outbox: OutboxAddress, now: ScriptTime) -> None:
        """Count a request that tested the URL."""
        ...

    async def counts(self, outbox: OutboxAddress) -> SourceCounts:
        """Return the counters."""
        ...

    async def failures(self, outbox: OutboxAddress) -> list[SourceFailure]:
        """Return the last rejected requests, the newest first."""
        ...

    async def delete(self, outbox: OutboxAddress) -> None:
        """Delete the outbox with everything in it."""
        ...
