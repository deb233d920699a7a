"""Messages of an in-memory queue."""

from dataclasses import dataclass, field
from typing import Any

from millstream_client.bodies import decode_json
from millstream_client.testing.definitions import moment

RECEIVER = {"consumer": "memory", "principal": "test", "protocol": "rest"}
RECEIVER |= {"address": "memory", "client": "millstream-client"}
RESERVED = ("topic", "subject", "route", "key", "reply_to")
"""Fields that a delivery has and a list has not."""


@dataclass
class StoredMessage:
    """A message of a queue, in one state: ready, delayed, in_flight or dead_lettered."""

    id: str
    offset: int
    body: bytes
    content_type: str
    headers: dict[str, str]
    group: str
    dedup_id: str
    priority: int
    sent_at: float
    due_at: float
    expires_at: float = 0.0
    state: str = "ready"
    receive_count: int = 0
    failures: int = 0
    crash_count: int = 0
    first_received_at: float = 0.0
    was_received: bool = False
    receipt_handle: str = ""
    reason: str = ""
    details: str = ""
    died_at: float = 0.0
    topic: str = ""
    subject: str = ""
    route: str = ""
    key: str = ""
    reply_to: str = ""
    hops: int = 0
    dead_letter: dict[str, Any] | None = field(default=None, repr=False)

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()

    def json(self) -> Any:
        """The body as a JSON value. Raises ValueError if it is not JSON."""
        return decode_json(self.body)

    def reset(self) -> None:
        """Forget deliveries and failures."""
        self.receive_count = self.failures = self.crash_count = 0
        self.reason = self.details = ""

    def _content(self) -> dict[str, Any]:
        optional = {
            "content_type": self.content_type,
            "headers": self.headers,
            "group": self.group,
            "dedup_id": self.dedup_id,
            "dead_letter": self.dead_letter,
        }
        counts = {"failures": self.failures, "crash_count": self.crash_count}
        return {
            "id": self.id,
            "offset": self.offset,
            "body": self.body,
            **{name: value for name, value in optional.items() if value},
            "sent_at": moment(self.sent_at),
            "receive_count": self.receive_count,
            **counts,
        }

    def delivered(self) -> dict[str, Any]:
        """Return the message as a receive does."""
        reserved = {name: getattr(self, name) for name in RESERVED}
        return {
            **self._content(),
            **{name: value for name, value in reserved.items() if value},
            "receipt_handle": self.receipt_handle,
            "first_received_at": moment(self.first_received_at),
            "visible_at": moment(self.due_at),
        }

    def browsed(self) -> dict[str, Any]:
        """Return the message as a list does."""
        received = {"first_received_at": moment(self.first_received_at)}
        received["last_received_by"] = RECEIVER  # type: ignore[assignment]
        is_waiting = self.state in {"delayed", "in_flight"}
        return {
            **self._content(),
            "state": self.state,
            **({"due_at": moment(self.due_at)} if is_waiting else {}),
            **(received if self.receive_count else {}),
        }

    def died(self) -> dict[str, Any]:
        """Return the dead letter as a list does."""
        details = {"details": self.details} if self.details else {}
        return {
            **self._content(),
            "reason": self.reason,
            "died_at": moment(self.died_at),
            **details,
        }
