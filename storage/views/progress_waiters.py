"""Waiters for the progress of views, which each commit of a batch announces."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from storage.postgres.listener import Listener
from storage.postgres.repositories.view_batches import CHANNEL


class ProgressWaiters:
    """Waiters of this process, by the id of their view.

    To be made before the listener runs.
    """

    def __init__(self, listener: Listener) -> None:
        self._waiters: dict[str, set[asyncio.Event]] = defaultdict(set)
        listener.subscribe(CHANNEL, self._wake, self._wake_all)

    @contextmanager
    def waiting(self, view_id: str) -> Iterator[asyncio.Event]:
        """Yield an event that is set whenever the view has advanced, or may have, also before."""
        event = asyncio.Event()
        event.set()
        self._waiters[view_id].add(event)
        try:
            yield event
        finally:
            waiters = self._waiters[view_id]
            waiters.discard(event)
            if not waiters:
                del self._waiters[view_id]

    def _wake(self, view_id: str) -> None:
        for event in self._waiters.get(view_id, ()):
            event.set()

    def _wake_all(self) -> None:
        for view_id in self._waiters:
            self._wake(view_id)
