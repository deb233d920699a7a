"""Subscriptions to shards: one for each consumer and shard, in each process.

    subscribe ──▶ active ──5 s──▶ may be taken over ──▶ ends after 5 minutes
                   └ another: ResourceInUse    └ another: the old one ends with ResourceInUse

Reads change nothing, so two subscriptions in two processes give both clients every record.
"""

import asyncio
from collections import OrderedDict

from api.aws.kinesis.errors import RESOURCE_IN_USE, refuse

LIFETIME_S = 300.0
SETTLED_S = 5.0  # minimum age before a subscription can be taken over
SUBSCRIPTIONS_MAX = 50_000  # each is a waiter, so the limit is that of waiters

Key = tuple[str, str, int]
"""Stream id, consumer and shard."""


class ShardSubscription:
    """A streaming call. `superseded` is set by the call that ends it."""

    __slots__ = ("ended", "since_s", "superseded")

    def __init__(self, since_s: float) -> None:
        self.since_s = since_s
        self.ended = False
        self.superseded = asyncio.Event()


class Subscriptions:
    """The subscriptions of one process."""

    def __init__(self) -> None:
        self._last: OrderedDict[Key, ShardSubscription] = OrderedDict()

    def open(self, key: Key, now_s: float) -> ShardSubscription:
        """Open a subscription, which ends its predecessor. Raises AwsError: ResourceInUse."""
        self._evict(now_s)
        before = self._last.get(key)
        if before is not None and now_s < before.since_s + SETTLED_S:
            refuse(RESOURCE_IN_USE, "Another active subscription exists for this consumer.")
        if before is None and len(self._last) >= SUBSCRIPTIONS_MAX:
            refuse(RESOURCE_IN_USE, "This process has reached its limit of subscriptions.")
        if before is not None:
            before.superseded.set()
        opened = self._last[key] = ShardSubscription(now_s)
        self._last.move_to_end(key)
        return opened

    def end_all(self, stream_id: str, consumer: str) -> None:
        """End every subscription of a deregistered consumer."""
        for key, subscription in self._last.items():
            if key[:2] == (stream_id, consumer):
                subscription.superseded.set()

    def _evict(self, now_s: float) -> None:
        """Drop the oldest ended subscriptions.

        A live one delays those behind it by a few minutes at most. One whose client disconnected before its first event never ends,
        and is dropped by its age.
        """
        while self._last:
            key, oldest = next(iter(self._last.items()))
            rests_s = SETTLED_S if oldest.ended else 2 * LIFETIME_S
            if now_s < oldest.since_s + rests_s:
                return
            del self._last[key]
