"""Leased deliveries of a queue subscriber: their expiry, and which are to be extended."""

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

import msgspec

from storage.domain.queues.message import ReceivedMessage

Representation = TypeVar("Representation")


class LeasedDelivery(msgspec.Struct, Generic[Representation]):
    """One leased delivery.

    `seq`: the frame it was sent in. `representation`: its representation, until its arrival is confirmed.
    """

    seq: int
    visible_at_ms: int
    size_bytes: int
    representation: Representation | None


class LeasedDeliveries(Generic[Representation]):
    """Unsettled deliveries by receipt handle, in the order in which they were sent."""

    __slots__ = ("_deliveries",)

    def __init__(self) -> None:
        self._deliveries: dict[str, LeasedDelivery[Representation]] = {}

    def __len__(self) -> int:
        return len(self._deliveries)

    @property
    def handles(self) -> list[str]:
        """The receipt handles of all."""
        return list(self._deliveries)

    def hold(
        self,
        seq: int,
        messages: Sequence[ReceivedMessage],
        represent: Callable[[ReceivedMessage], Representation],
    ) -> None:
        """Add messages that were sent in frame `seq`."""
        for message in messages:
            self._deliveries[message.receipt_handle] = LeasedDelivery(
                seq, message.visible_at_ms, len(message.body), represent(message)
            )

    def seq_of(self, receipt_handle: str) -> int | None:
        """Return the frame that a delivery was sent in, while it is held."""
        delivery = self._deliveries.get(receipt_handle)
        return None if delivery is None else delivery.seq

    def discard(self, receipt_handle: str) -> None:
        """Remove a delivery that was settled or lost."""
        self._deliveries.pop(receipt_handle, None)

    def extended(self, receipt_handle: str, visible_at_ms: int) -> None:
        """Store the extended lease of a delivery."""
        if (delivery := self._deliveries.get(receipt_handle)) is not None:
            delivery.visible_at_ms = visible_at_ms

    def arrived(self, handles: Iterable[str]) -> None:
        """Drop the representations of deliveries whose arrival is confirmed."""
        for handle in handles:
            if (delivery := self._deliveries.get(handle)) is not None:
                delivery.representation = None

    def again(self, handles: Iterable[str], seq: int) -> list[Representation]:
        """Return the representations of deliveries still held, to be sent again in frame `seq`."""
        representations = []
        for handle in handles:
            delivery = self._deliveries.get(handle)
            if delivery is not None and delivery.representation is not None:
                delivery.seq = seq
                representations.append(delivery.representation)
        return representations

    def lapsed(self, now_ms: int) -> list[str]:
        """Return the deliveries whose lease is over: other consumers may have them."""
        return [handle for handle, one in self._deliveries.items() if one.visible_at_ms <= now_ms]

    def ending(self, before_ms: int) -> list[str]:
        """Return the deliveries that are held until then at most."""
        return [handle for handle, one in self._deliveries.items() if one.visible_at_ms < before_ms]
