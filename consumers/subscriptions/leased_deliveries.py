"""The deliveries of a queue that a subscriber holds: until when, and which are to be extended."""

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

import msgspec

from storage.domain.queues.message import ReceivedMessage

Kept = TypeVar("Kept")


class Delivery(msgspec.Struct, Generic[Kept]):
    """One of them. `seq`: the frame it went out with. `kept`: what it looks like, until its arrival is known."""

    seq: int
    visible_at_ms: int
    size_bytes: int
    kept: Kept | None


class Deliveries(Generic[Kept]):
    """What was handed out and is not settled, by receipt handle, in the order in which it was handed out."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[str, Delivery[Kept]] = {}

    def __len__(self) -> int:
        return len(self._held)

    @property
    def handles(self) -> list[str]:
        """The receipt handles of all."""
        return list(self._held)

    def hold(
        self, seq: int, messages: Sequence[ReceivedMessage], kept: Callable[[ReceivedMessage], Kept]
    ) -> None:
        """These have gone out in frame `seq`."""
        for message in messages:
            self._held[message.receipt_handle] = Delivery(
                seq, message.visible_at_ms, len(message.body), kept(message)
            )

    def seq_of(self, receipt_handle: str) -> int | None:
        """The frame that a delivery went out with, while it is held."""
        found = self._held.get(receipt_handle)
        return None if found is None else found.seq

    def forget(self, receipt_handle: str) -> None:
        """It is settled, or lost."""
        self._held.pop(receipt_handle, None)

    def extended(self, receipt_handle: str, visible_at_ms: int) -> None:
        """It is held for longer."""
        if (found := self._held.get(receipt_handle)) is not None:
            found.visible_at_ms = visible_at_ms

    def arrived(self, handles: Iterable[str]) -> None:
        """What they look like need not be kept any more."""
        for handle in handles:
            if (found := self._held.get(handle)) is not None:
                found.kept = None

    def again(self, handles: Iterable[str], seq: int) -> list[Kept]:
        """What those that are still held look like, to be sent once more in frame `seq`."""
        found = []
        for handle in handles:
            delivery = self._held.get(handle)
            if delivery is not None and delivery.kept is not None:
                delivery.seq = seq
                found.append(delivery.kept)
        return found

    def lapsed(self, now_ms: int) -> list[str]:
        """Those whose time is over: others may have them."""
        return [handle for handle, one in self._held.items() if one.visible_at_ms <= now_ms]

    def ending(self, before_ms: int) -> list[str]:
        """Those that are held until then at most."""
        return [handle for handle, one in self._held.items() if one.visible_at_ms < before_ms]
