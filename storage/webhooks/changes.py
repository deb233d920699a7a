"""Announcements of changed webhooks to the deliverers of this process."""

from storage.postgres.listener import Listener, OnChange
from storage.postgres.repositories.webhooks import CHANNEL


class WebhookChanges:
    """Observers of changed webhooks.

    Changes during an outage of Postgres are not announced; a heartbeat finds them.
    """

    def __init__(self, listener: Listener) -> None:
        self._observers: list[OnChange] = []
        listener.subscribe(CHANNEL, self._on_change, lambda: None)

    def observe(self, on_change: OnChange) -> None:
        """Call `on_change` with the id of each webhook that is changed."""
        self._observers.append(on_change)

    def _on_change(self, webhook_id: str) -> None:
        for on_change in self._observers:
            on_change(webhook_id)
