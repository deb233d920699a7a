"""The reference model of a queue, in plain Python, with which the real one is compared.

It knows nothing of scripts or keys; it holds every message in one dict, and defines what must be true.
The invariants are numbered as in the design.
"""

from dataclasses import dataclass, field
from math import inf

from msgspec.structs import replace

from storage.domain.limits import DEDUP_WINDOW_MS, IDEMPOTENCY_WINDOW_MS, VISIBILITY_TIMEOUT_MS_MAX
from storage.domain.queues.policies import PoisonPolicy
from storage.domain.queues.queue import DedupScope, QueueSpec, QueueType

READY, DELAYED, IN_FLIGHT, DEAD = "ready", "delayed", "in_flight", "dead_lettered"
PARKED = "parked"


@dataclass
class Message:
    """A message; `state` is its only state (Q1)."""

    offset: int
    body: bytes
    group: str
    since_ms: int
    state: str
    until_ms: int = 0
    receive_count: int = 0
    failures: int = 0
    crash_count: int = 0
    delivery: object = None
    received_ms: int = 0
    was_out: bool = False
    expires_ms: int = 0
    priority: int = 0
    last_failure: tuple[str, int] = ("", 0)
    """Reason of the last nack or reject, and the crashes before it."""
    death_reason: str = ""

    @property
    def departure_reason(self) -> str:
        """Reason that travels with a message that was received too often."""
        reason, crashes = self.last_failure
        if reason and crashes == self.crash_count:
            return reason
        return self.crash_reason if self.crash_count else f"received {self.receive_count} times"

    @property
    def crash_reason(self) -> str:
        return f"visibility timeout passed {self.crash_count} times"


@dataclass
class ReferenceQueue:
    """A queue and its clock."""

    spec: QueueSpec
    now_ms: int
    messages: dict[int, Message] = field(default_factory=dict)
    coming: list[int] = field(default_factory=list)
    """Offsets of the next new messages: of a queue with partitions, which the model does not choose."""
    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(
            ("acknowledged", "expired", "purged", "deduplicated", "receive_count"), 0
        )
    )
    dedup: dict[str, tuple[int, int]] = field(default_factory=dict)
    answers: dict[str, tuple[object, list[int], int]] = field(default_factory=dict)
    last_due_ms: int = 0
    departed: list[Message] = field(default_factory=list)
    parked: dict[str, int | None] = field(default_factory=dict)
    sent: dict[int, bytes] = field(default_factory=dict)
    parked_before: bool = False
    """Return whether a group was ever resumed, which resets the counts of its poison message."""

    @property
    def fifo(self) -> bool:
        return self.spec.type is QueueType.FIFO

    def send(
        self, messages: list[tuple[bytes, int, str, str, int, int]], key: str = ""
    ) -> list[tuple[int, bool]] | None:
        """Send, and return (offset, duplicate) per message; None if the key was reused.

        A message is (body, delay, group, deduplication id, time to live, priority).
        """
        if key and key in self.answers:
            content, offsets, at = self.answers[key]
            if self.now_ms - at < IDEMPOTENCY_WINDOW_MS:
                return [(offset, True) for offset in offsets] if content == messages else None
        sent = [self._send_one(*message) for message in messages]
        if key:
            self.answers[key] = (messages, [offset for offset, _ in sent], self.now_ms)
        return sent

    def _send_one(
        self, body: bytes, delay_ms: int, group: str, dedup_id: str, ttl_ms: int, priority: int
    ) -> tuple[int, bool]:
        if self.spec.deduplicate_by_content and not dedup_id:
            dedup_id = f"content {body!r}"
        if dedup_id and self.spec.dedup_scope is DedupScope.GROUP:
            dedup_id = f"{group} {dedup_id}"
        if dedup_id:
            known = self.dedup.get(dedup_id)
            if known and self.now_ms - known[1] < DEDUP_WINDOW_MS:  # Q7
                self.counts["deduplicated"] += 1
                return known[0], True
            self.dedup[dedup_id] = (self._next_offset, self.now_ms)
        due_ms = self.now_ms + delay_ms
        if self.fifo:  # all have the same delay, and order is kept
            due_ms = max(self.now_ms + self.spec.delay_ms, self.last_due_ms)
            self.last_due_ms = due_ms
        state = DELAYED if due_ms > self.now_ms else READY
        offset = self._next_offset
        del self.coming[:1]
        message = Message(offset, body, group, self.now_ms, state, until_ms=due_ms)
        message.priority = priority
        message.was_out = state == DELAYED or priority > 0
        message.expires_ms = due_ms + ttl_ms if ttl_ms else 0
        self.messages[offset] = message
        self.sent[offset] = body
        return offset, False

    @property
    def _next_offset(self) -> int:
        return self.coming[0] if self.coming else len(self.sent)

    def settle_time(self) -> None:
        """Apply the passing of time up to now (Q8: nothing before it is due)."""
        for message in sorted(self.messages.values(), key=lambda one: one.until_ms):
            if message.state == IN_FLIGHT and message.until_ms <= self.now_ms:
                message.crash_count += 1
                if self._exhausted(message) and not self._outlived(message):
                    self._give_up(message, message.crash_reason)
                else:
                    self._return(message)
            elif message.state == DELAYED and message.until_ms <= self.now_ms:
                message.state = READY
        for message in list(self.messages.values()):
            retention_ms = (
                self.spec.dead_letter_retention_ms
                if message.state == DEAD
                else self.spec.retention_ms
            )
            over = message.since_ms + retention_ms <= self.now_ms
            outlived = message.state in (READY, DELAYED) and self._outlived(message)
            if over or outlived:
                del self.messages[message.offset]
                self.counts["expired"] += 1

    def _outlived(self, message: Message) -> bool:
        return 0 < message.expires_ms <= self.now_ms

    def _exhausted(self, message: Message) -> bool:
        most = self.spec.attempts_max
        if self.spec.on_poison is PoisonPolicy.BLOCK:
            return False
        return most is not None and message.failures + message.crash_count >= most

    def _return(self, message: Message, *, final: bool = False) -> None:
        message.state = DEAD if final else READY
        message.was_out = True
        if final:
            message.delivery = None
            message.since_ms = self.now_ms

    def ready(self) -> list[Message]:
        """Ready messages of a standard queue in order: by priority, then returned ones first."""
        waiting = [message for message in self.messages.values() if message.state == READY]
        return sorted(waiting, key=lambda one: (-one.priority, not one.was_out, one.offset))

    def depart(self, messages_max: int) -> list[Message]:
        """Remove and return what a receive of this size dead-letters, by offset."""
        target = self.spec.dead_letters
        left: list[Message] = []
        for message in self.ready() if target else []:
            if messages_max == 0:
                break
            if target and message.receive_count >= target.receives_max:
                left.append(self.messages.pop(message.offset))
            else:
                messages_max -= 1
        self.departed += left
        return sorted(left, key=lambda message: message.offset)

    def free_groups(self) -> dict[str, list[int]]:
        """Waiting offsets per group that no unsettled message of the group precedes (Q6)."""
        barriers: dict[str, float] = {}
        for message in self.messages.values():
            is_out = message.state == IN_FLIGHT or (
                message.state == DELAYED and message.receive_count
            )
            if is_out:
                lowest = barriers.get(message.group, message.offset)
                barriers[message.group] = min(lowest, message.offset)
        groups: dict[str, list[int]] = {}
        for message in sorted(self.messages.values(), key=lambda one: one.offset):
            barrier = barriers.get(message.group, inf)
            if self.shown_state(message) == READY and message.offset < barrier:
                groups.setdefault(message.group, []).append(message.offset)
        return groups

    def take(self, offset: int, visibility_timeout_ms: int, delivery: object) -> Message:
        """Receive one message."""
        message = self.messages[offset]
        assert message.state == READY
        message.state = IN_FLIGHT
        message.until_ms = self.now_ms + visibility_timeout_ms
        message.receive_count += 1  # Q3
        message.delivery = delivery
        message.received_ms = self.now_ms
        message.was_out = True
        self.counts["receive_count"] += 1
        return message

    def settle(
        self, offset: int, delivery: object, action: str, time_ms: int, reason: str = ""
    ) -> str:
        """Settle: 'ok', 'receipt_handle_expired' or 'message_not_found'."""
        message = self.messages.get(offset)
        if message is None or message.state == DEAD:
            if message is None:
                return "ok" if action == "ack" else "message_not_found"
            return "message_not_found" if action != "ack" else "ok"
        if message.delivery is not delivery:  # Q2
            return "receipt_handle_expired"
        if action == "ack":
            del self.messages[offset]  # Q4
            self.counts["acknowledged"] += 1
            return "ok"
        if message.state != IN_FLIGHT:
            return "receipt_handle_expired"
        self._apply(message, action, time_ms, reason)
        return "ok"

    def _apply(self, message: Message, action: str, time_ms: int, reason: str) -> None:
        if action == "extend":
            message.until_ms = min(
                self.now_ms + time_ms, message.received_ms + VISIBILITY_TIMEOUT_MS_MAX
            )
            return
        message.delivery = None
        if action in ("nack", "reject"):
            message.failures += 1
            message.last_failure = (reason, message.crash_count)
        if action == "reject" or (action == "nack" and self._exhausted(message)):
            self._give_up(message, reason)  # Q9
            return
        self._return(message)
        if action == "nack" and time_ms:
            message.state, message.until_ms = DELAYED, self.now_ms + time_ms

    def _give_up(self, message: Message, reason: str) -> None:
        """Dead-letter the message, or park its group."""
        message.delivery = None
        message.death_reason = reason
        parks = self.spec.on_poison is PoisonPolicy.PARK_GROUP
        self._return(message, final=not parks)
        if parks:
            self.parked.setdefault(message.group, message.offset)

    def resume(self, group: str) -> int | None:
        """Resume a group, and return how many messages were parked; its poison message is reset."""
        if group not in self.parked:
            return None
        self.parked_before = True
        waiting = sum(
            self.shown_state(message) == PARKED and message.group == group
            for message in self.messages.values()
        )
        blamed = self.parked.pop(group)
        poison = None if blamed is None else self.messages.get(blamed)
        if poison:
            poison.failures = poison.crash_count = 0
            poison.last_failure = ("", 0)
        return waiting

    def shown_state(self, message: Message) -> str:
        """The state shown to users."""
        return PARKED if message.state == READY and message.group in self.parked else message.state

    def redelay(self, delay_ms: int) -> None:
        """Apply a changed delay of a FIFO queue to what was never received (Q6, Q8)."""
        due_ms = 0
        for message in sorted(self.messages.values(), key=lambda one: one.offset):
            if message.state not in (READY, DELAYED) or message.received_ms:
                continue
            due_ms = max(due_ms, message.since_ms + delay_ms)
            if message.state == DELAYED or due_ms > self.now_ms:
                message.expires_ms += (due_ms - message.until_ms) if message.expires_ms else 0
                message.until_ms = due_ms
                message.state = DELAYED if due_ms > self.now_ms else READY
        self.last_due_ms = due_ms
        self.spec = replace(self.spec, delay_ms=delay_ms)

    def purge(self) -> int:
        """Delete everything except dead letters."""
        gone = [message.offset for message in self.messages.values() if message.state != DEAD]
        for offset in gone:
            del self.messages[offset]
        self.dedup.clear()
        self.parked.clear()
        self.counts["purged"] += len(gone)
        return len(gone)

    def drop(self, offset: int) -> bool:
        """Delete one message in any state."""
        if self.messages.pop(offset, None) is None:
            return False
        self.counts["purged"] += 1
        return True

    def redrive(self) -> int:
        """Make dead letters ready again, with counts reset (Q3)."""
        dead = [message for message in self.messages.values() if message.state == DEAD]
        for message in dead:
            message.receive_count = message.failures = message.crash_count = 0
            message.last_failure = ("", 0)
            message.state, message.since_ms = READY, self.now_ms
            message.expires_ms = 0
        return len(dead)

    def stats(self) -> dict[str, int]:
        """Counts by state, and of deleted messages."""
        states = [self.shown_state(message) for message in self.messages.values()]
        by_state = {state: states.count(state) for state in (READY, DELAYED, IN_FLIGHT, PARKED)}
        by_state[DEAD] = states.count(DEAD)
        moved = {"moved_out": len(self.departed), "moving": 0, "moved_in": 0}
        return {**by_state, **self.counts, **moved, "sent": len(self.sent)}
