"""Stored messages of an in-memory queue: states, expiry, counts, and redrives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from millstream_client.testing.definitions import Clock, Defined, moment
from millstream_client.testing.messages import StoredMessage
from millstream_client.testing.problems import Problem, unsupported

READY, DELAYED, IN_FLIGHT, DEAD = "ready", "delayed", "in_flight", "dead_lettered"


class MessageStore(Defined):
    """Messages of a queue by offset, each in one state."""

    def __init__(self, name: str, config: dict[str, Any], now: Clock) -> None:
        super().__init__(name, config, now)
        self._messages: dict[int, StoredMessage] = {}
        self._next_offset = 0
        self._counts: Counter[str] = Counter()

    @property
    def messages(self) -> list[StoredMessage]:
        """Messages in all states but dead letters, by offset."""
        self._settle_time()
        return [message for message in self._messages.values() if message.state != DEAD]

    @property
    def dead_letters(self) -> list[StoredMessage]:
        """Dead letters, oldest first."""
        self._settle_time()
        dead = [message for message in self._messages.values() if message.state == DEAD]
        return sorted(dead, key=lambda message: (message.died_at, message.offset))

    def _add(self, message: StoredMessage) -> None:
        message.offset = self._next_offset
        self._next_offset += 1
        self._messages[message.offset] = message

    def _return(self, message: StoredMessage, due_at: float) -> None:
        message.receipt_handle = ""
        message.due_at = due_at
        message.state = DELAYED if due_at > self.now() else READY

    def _is_exhausted(self, message: StoredMessage) -> bool:
        most = self.config["attempts_max"]
        return most is not None and message.failures + message.crash_count >= most

    def _die(self, message: StoredMessage, reason: str) -> None:
        message.receipt_handle = ""
        message.state, message.reason, message.died_at = DEAD, reason, self.now()

    # ── Time ──

    def _settle_time(self) -> None:
        """Apply the passing of time."""
        now = self.now()
        for message in list(self._messages.values()):
            if message.state == IN_FLIGHT and message.due_at <= now:
                message.crash_count += 1
                if self._is_exhausted(message):
                    self._die(message, f"visibility timeout passed {message.crash_count} times")
                else:
                    self._return(message, now)
            elif message.state == DELAYED and message.due_at <= now:
                message.state = READY
            if self._is_expired(message, now):
                del self._messages[message.offset]
                self._counts["expired"] += 1

    def _is_expired(self, message: StoredMessage, now: float) -> bool:
        if message.state == DEAD:
            return message.died_at + float(self.config["dead_letter_retention_seconds"]) <= now
        is_waiting = message.state in {READY, DELAYED}
        is_outlived = is_waiting and 0 < message.expires_at <= now
        return is_outlived or message.sent_at + float(self.config["retention_seconds"]) <= now

    # ── Operations ──

    def stats(self) -> dict[str, Any]:
        """Return the counts by state and of deleted messages."""
        states = Counter(message.state for message in [*self.messages, *self.dead_letters])
        ready_at = [message.sent_at for message in self.messages if message.state == READY]
        zeros = dict.fromkeys(("moving", "parked", "dropped", "bytes_sent"), 0)
        counted = ("acknowledged", "expired", "purged", "deduplicated", "receive_count")
        return {
            **zeros,
            **{state: states[state] for state in (READY, DELAYED, IN_FLIGHT, DEAD)},
            **{name: self._counts[name] for name in (*counted, "moved_in", "moved_out")},
            "sent": self._next_offset,
            "bytes_held": sum(len(message.body) for message in self._messages.values()),
            "oldest_ready_at": moment(min(ready_at)) if ready_at else None,
            "fenced": False,
            "durability": "memory",
            "replication_factor": 1,
            "min_insync_replicas": 1,
        }

    def find(self, identity: str) -> StoredMessage:
        """Return a message or dead letter by id or offset. Raises Problem."""
        self._settle_time()
        for message in self._messages.values():
            if identity in {message.id, str(message.offset)}:
                return message
        raise Problem("message_not_found", "The message is no longer in the queue.")

    def delete_message(self, identity: str) -> None:
        """Delete one message in any state. Raises Problem."""
        del self._messages[self.find(identity).offset]
        self._counts["purged"] += 1

    def purge(self) -> int:
        """Delete everything but dead letters; return the number."""
        messages = self.messages
        for message in messages:
            del self._messages[message.offset]
        self._counts["purged"] += len(messages)
        return len(messages)

    def redrive(self, which: Mapping[str, Any]) -> int:
        """Make dead letters ready again; return their number."""
        if which.get("per_second"):
            raise unsupported("redrive with per_second")
        chosen = [message for message in self.dead_letters if _matches(message, which)]
        for message in chosen[: which.get("messages_max")]:
            message.reset()
            message.state, message.sent_at, message.expires_at = READY, self.now(), 0.0
        return len(chosen[: which.get("messages_max")])

    def reasons(self) -> list[dict[str, Any]]:
        """Return the dead letters counted by reason."""
        times: dict[str, list[float]] = {}
        for message in self.dead_letters:
            times.setdefault(message.reason, []).append(message.died_at)
        return [
            {
                "reason": reason,
                "count": len(died),
                "first_died_at": moment(min(died)),
                "last_died_at": moment(max(died)),
            }
            for reason, died in times.items()
        ]


def _matches(message: StoredMessage, which: Mapping[str, Any]) -> bool:
    chosen = which.get("messages")
    return (
        which.get("reason", "") in {"", message.reason}
        and which.get("group", "") in {"", message.group}
        and (chosen is None or message.id in chosen or str(message.offset) in chosen)
    )
