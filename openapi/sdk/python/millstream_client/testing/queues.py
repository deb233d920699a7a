"""In-memory queues: visibility timeouts, attempts, dead letters, order, deduplication."""

from __future__ import annotations

import hashlib
import random
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from millstream_client.testing.deduplication import Deduplication
from millstream_client.testing.definitions import Clock, moment
from millstream_client.testing.message_store import (
    DEAD,
    DELAYED,
    IN_FLIGHT,
    READY,
    MessageStore,
)
from millstream_client.testing.messages import RESERVED, StoredMessage
from millstream_client.testing.problems import Problem, invalid

WITH_CAUSE = ("nack", "reject")


class MemoryQueue(MessageStore):
    """A queue. Its configuration has the fields of the REST API."""

    def __init__(
        self,
        name: str,
        config: dict[str, Any],
        now: Clock,
        queue_of: Callable[[str], MemoryQueue],
    ) -> None:
        super().__init__(name, config, now)
        self._queue_of = queue_of
        self._sent: Deduplication[dict[str, Any]] = Deduplication(now)
        self._attempts: dict[str, list[str]] = {}
        self._last_due_at = 0.0

    @property
    def is_fifo(self) -> bool:
        """Return whether messages of a group are delivered in order."""
        return bool(self.config["type"] == "fifo")

    # ── Sending ──

    def send(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Send messages, all of them or none."""
        for message in messages:
            self._check(message)
        return [self._send(message) for message in messages]

    def _check(self, fields: dict[str, Any]) -> None:
        if len(fields["body"]) > self.config["message_bytes_max"]:
            raise Problem("message_too_large", "The message is too large.")
        if fields.get("priority") and fields.get("group"):
            detail = "A message with a group cannot have a priority"
            raise invalid("/priority", detail, "not_supported")
        if self.is_fifo and not fields.get("group"):
            raise invalid("/group", "A message of a FIFO queue requires a group", "required")
        if self.is_fifo and fields.get("delay_seconds"):
            detail = "FIFO queues do not support a delay per message"
            raise invalid("/delay_seconds", detail, "not_supported")

    def _send(self, fields: dict[str, Any]) -> dict[str, Any]:
        dedup_id = self._dedup_id(fields)
        if earlier := self._sent.find(dedup_id):
            self._counts["deduplicated"] += 1
            return {**earlier, "duplicate": True}
        message = self._stored(fields, self.now())
        self._add(message)
        sent = {"id": message.id, "offset": message.offset}
        self._sent.add(dedup_id, sent)
        return {**sent, "duplicate": False}

    def _dedup_id(self, fields: dict[str, Any]) -> str:
        dedup_id = str(fields.get("dedup_id", ""))
        if not dedup_id and self.config["deduplicate_by_content"]:
            dedup_id = hashlib.sha256(fields["body"]).hexdigest()
        is_by_group = dedup_id and self.config["dedup_scope"] == "group"
        return f"{fields.get('group', '')} {dedup_id}" if is_by_group else dedup_id

    def _stored(self, fields: dict[str, Any], now: float) -> StoredMessage:
        delay = fields.get("delay_seconds")
        due_at = now + (self.config["delay_seconds"] if delay is None or self.is_fifo else delay)
        if self.is_fifo:
            due_at = self._last_due_at = max(due_at, self._last_due_at)
        ttl = fields.get("ttl_seconds") or self.config["ttl_seconds"]
        return StoredMessage(
            id=str(uuid.uuid4()),
            offset=0,
            body=fields["body"],
            content_type=fields.get("content_type", ""),
            headers=fields.get("headers", {}),
            group=fields.get("group", ""),
            dedup_id=fields.get("dedup_id", ""),
            **{name: fields.get(name, "") for name in RESERVED},
            dead_letter=fields.get("dead_letter"),
            hops=fields.get("hops", 0),
            priority=fields.get("priority", 0),
            sent_at=now,
            due_at=due_at,
            expires_at=due_at + ttl if ttl else 0.0,
            state=DELAYED if due_at > now else READY,
        )

    # ── Receiving ──

    def receive(
        self, messages_max: int, visibility_timeout_seconds: float | None, attempt_id: str = ""
    ) -> list[dict[str, Any]]:
        """Receive messages that are ready; a repeated attempt on a FIFO queue returns the same."""
        self._settle_time()
        if self.config["paused"]:
            return []
        earlier = self._attempts.get(attempt_id, []) if self.is_fifo and attempt_id else []
        leased = [one for one in self._messages.values() if one.receipt_handle in earlier]
        if earlier and len(leased) == len(earlier):
            return [message.delivered() for message in leased]
        timeout = visibility_timeout_seconds
        timeout = self.config["visibility_timeout_seconds"] if timeout is None else timeout
        received = self._received(messages_max, timeout)
        if self.is_fifo:
            self._attempts[attempt_id] = [message.receipt_handle for message in received]
        return [message.delivered() for message in received]

    def _received(self, messages_max: int, timeout: float) -> list[StoredMessage]:
        received: list[StoredMessage] = []
        for message in self._receivable():
            if len(received) == messages_max:
                break
            if not self._depart(message):
                received.append(self._take(message, timeout))
        return received

    def _receivable(self) -> list[StoredMessage]:
        ready = [message for message in self._messages.values() if message.state == READY]
        if not self.is_fifo:
            return sorted(ready, key=lambda one: (-one.priority, not one.was_received, one.offset))
        barred = {message.group for message in self._messages.values() if self._bars(message)}
        return [message for message in ready if message.group not in barred]

    @staticmethod
    def _bars(message: StoredMessage) -> bool:
        """Return whether a message keeps its group from being received."""
        return message.state == IN_FLIGHT or (message.state == DELAYED and message.was_received)

    def _take(self, message: StoredMessage, timeout: float) -> StoredMessage:
        now = self.now()
        message.state, message.due_at = IN_FLIGHT, now + timeout
        message.receive_count += 1
        message.was_received = True
        message.first_received_at = message.first_received_at or now
        message.receipt_handle = f"{self.name}:{message.offset}:{uuid.uuid4().hex}"
        self._counts["receive_count"] += 1
        return message

    def _depart(self, message: StoredMessage) -> bool:
        """Move a message that was received too often to the dead-letter queue."""
        target = self.config["dead_letters"]
        if not target or message.receive_count < target["receives_max"]:
            return False
        crashed = f"visibility timeout passed {message.crash_count} times"
        counted = crashed if message.crash_count else f"received {message.receive_count} times"
        message.dead_letter = {
            "source": f"queue:{self.name}",
            "reason": message.reason or counted,
            "died_at": moment(self.now()),
            "failures": message.failures,
            "crash_count": message.crash_count,
            "last_failure_reason": message.reason,
            "details": message.details,
        }
        del self._messages[message.offset]
        message.reset()
        message.was_received = False
        self._counts["moved_out"] += 1
        self._queue_of(target["queue"])._accept(message)
        return True

    def _accept(self, message: StoredMessage) -> None:
        self._counts["moved_in"] += 1
        self._add(message)

    # ── Settling ──

    def settle(self, settlements: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Settle deliveries; return one result for each."""
        self._settle_time()
        return [self._settle(settlement) for settlement in settlements]

    def _settle(self, settlement: dict[str, Any]) -> dict[str, Any]:
        try:
            message = self._settled(settlement["receipt_handle"], settlement["action"])
        except Problem as problem:
            return {"status": "error", "error": problem.item}
        visible_at = None if message is None else self._apply(message, settlement)
        return (
            {"status": "ok"}
            if visible_at is None
            else {
                "status": "ok",
                "visible_at": moment(visible_at),
            }
        )

    def _settled(self, handle: str, action: str) -> StoredMessage | None:
        name, _, rest = handle.rpartition(":")[0].rpartition(":")
        if name != self.name or not rest.isdecimal():
            detail = "The receipt handle was not issued by this queue."
            raise Problem("receipt_handle_invalid", detail)
        message = self._messages.get(int(rest))
        if message is None or message.state == DEAD:
            if action == "ack":
                return None
            raise Problem("message_not_found", "The message is no longer in the queue.")
        is_late = message.state != IN_FLIGHT and action != "ack"
        if message.receipt_handle != handle or is_late:
            detail = "This receipt handle belongs to an earlier delivery of the message."
            raise Problem("receipt_handle_expired", detail)
        return message

    def _apply(self, message: StoredMessage, settlement: dict[str, Any]) -> float | None:
        """Apply a settlement; return when the message is visible."""
        action, now = settlement["action"], self.now()
        if action == "ack":
            del self._messages[message.offset]
            self._counts["acknowledged"] += 1
            return None
        if action == "extend":
            timeout = settlement.get("visibility_timeout_seconds")
            default = self.config["visibility_timeout_seconds"]
            message.due_at = now + (default if timeout is None else timeout)
            return message.due_at
        if action in WITH_CAUSE:
            message.failures += 1
            message.reason = settlement.get("reason", "")
            message.details = settlement.get("details", "")
        if action == "reject" or (action == "nack" and self._is_exhausted(message)):
            self._die(message, message.reason)
            return None
        self._return(message, now + self._delay(message, settlement))
        return message.due_at

    def _delay(self, message: StoredMessage, settlement: dict[str, Any]) -> float:
        delay = settlement.get("delay_seconds")
        if settlement["action"] != "nack":
            return 0.0
        return backoff(self.config["backoff"], message.failures) if delay is None else delay

    def purge(self) -> int:
        """Delete everything but dead letters, and the deduplication ids; return the number."""
        self._sent.clear()
        return super().purge()

    # ── Routes ──

    def transferable(self) -> list[StoredMessage]:
        """Return the ready messages in order, for its routes; none while it is paused."""
        self._settle_time()
        return [] if self.config["paused"] else self._receivable()

    def clear(self, message: StoredMessage) -> None:
        """Remove a message that the topic of its routes has."""
        del self._messages[message.offset]
        self._counts["moved_out"] += 1

    def reject(self, message: StoredMessage, reason: str) -> None:
        """Make a message that no route takes a dead letter."""
        self._die(message, reason)


def backoff(policy: Mapping[str, Any] | None, failures: int) -> float:
    """Return the delay after a failure whose consumer specifies none."""
    if policy is None:
        return 0.0
    first, delays = policy["initial_seconds"], policy["delays_seconds"]
    growth = {
        "fixed": lambda: first,
        "linear": lambda: first * failures,
        "exponential": lambda: first * policy["multiplier"] ** (failures - 1),
        "list": lambda: delays[min(failures, len(delays)) - 1],
    }
    delay: float = min(growth[policy["kind"]](), policy["max_seconds"])
    chance = random.random()  # noqa: S311 - jitter
    return {"none": delay, "full": delay * chance, "equal": delay / 2 * (1 + chance)}[
        policy["jitter"]
    ]
