"""Routes of in-memory topics: they take copies of messages, and bring them to targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from millstream_client.testing.definitions import Clock, Defined
from millstream_client.testing.problems import Problem
from millstream_client.testing.topics.copies import Copy
from millstream_client.testing.topics.matches import UNMATCHED
from millstream_client.testing.topics.published import PublishedMessage
from millstream_client.testing.topics.spreads import KINDS, label_of

if TYPE_CHECKING:
    from millstream_client.testing.queues import MemoryQueue
    from millstream_client.testing.streams import MemoryStream
    from millstream_client.testing.topics.routed_log import RoutedLog

OF_REVISION = ("match", "target", "transform", "format", "key", "mode")
NOT_FOUND = 404


class Targets(Protocol):
    """Queues, streams and topics by name, which raise Problem for a missing one."""

    def queue(self, name: str) -> MemoryQueue:
        """Return a queue."""

    def stream(self, name: str) -> MemoryStream:
        """Return a stream."""

    def topic(self, name: str) -> RoutedLog:
        """Return a topic."""


class MemoryRoute(Defined):
    """A route of a topic, a stream or a queue."""

    def __init__(self, name: str, config: dict[str, Any], now: Clock, topic: RoutedLog) -> None:
        super().__init__(name, config, now)
        self.topic = topic
        self.number = topic.next_number()
        self.waiting: list[Copy] = []
        self.counts = {"delivered": 0, "dropped": 0, "dead_lettered": 0, "shadowed": 0}
        self.failures: dict[str, str] = {}

    @property
    def failure(self) -> str:
        """Last failure of a target that has not succeeded since; empty if there is none."""
        return next(iter(self.failures.values()), "")

    @property
    def is_live(self) -> bool:
        """Return whether it delivers messages."""
        return bool(self.config["mode"] == "live")

    @property
    def takes_unmatched(self) -> bool:
        """Return whether it takes what no other live route takes."""
        return bool(self.config["match"] == UNMATCHED)

    def configure(self, config: dict[str, Any]) -> None:
        """Replace the configuration; other copies begin another revision."""
        if any(config[name] != self.config[name] for name in OF_REVISION):
            self.number = self.topic.next_number()
        super().configure(config)

    def shown(self) -> dict[str, Any]:
        """Return the configuration as the API does."""
        target = {**dict.fromkeys((*KINDS, "url")), **self.config["target"]}
        facts = {"topic": self.topic.name, "target": target, "number": self.number}
        return {**super().shown(), **facts, "cost": "indexed"}

    def take(self, message: PublishedMessage) -> None:
        """Add a copy of a message."""
        copy = Copy(message, self, self.config, self.number)
        message.copies.append(copy)
        if self.is_live:
            self.waiting.append(copy)
        else:
            copy.state = "shadow"
            self.counts["shadowed"] += 1

    def stats(self) -> dict[str, Any]:
        """Return the counts."""
        oldest = min((copy.message.record.arrived_at for copy in self.waiting), default=self.now())
        return {
            "state": self._state,
            **self.counts,
            "lag_messages": len(self.waiting),
            "lag_seconds": self.now() - oldest,
            "last_failure": self.failure,
            **self._members(),
        }

    def _members(self) -> dict[str, Any]:
        """Return how far each member of a spread is behind."""
        members = self.config["target"].get("spread") if self.is_live else None
        if not members:
            return {}
        return {"members": [{"member": one, **self._lag(label_of(one))} for one in members]}

    def _lag(self, label: str) -> dict[str, Any]:
        waiting = [copy for copy in self.waiting if label_of(copy.target) == label]
        oldest = min((copy.message.record.arrived_at for copy in waiting), default=self.now())
        return {"lag_messages": len(waiting), "lag_seconds": self.now() - oldest}

    @property
    def _state(self) -> str:
        if self.config["paused"]:
            return "paused"
        if self.failure and self.waiting:
            return "failing"
        return "active" if self.is_live else "shadow"

    # ── Delivery ──

    def deliver(self, targets: Targets) -> bool:
        """Deliver in order, except to targets that are missing; return whether any was."""
        if self.config["paused"]:
            return False
        before, missing = len(self.waiting), set[str]()
        for copy in [*self.waiting]:
            label = label_of(copy.target)
            if label not in missing and not self._try(targets, copy, label):
                missing.add(label)
        self.waiting = [copy for copy in self.waiting if copy.state == "waiting"]
        return len(self.waiting) < before

    def _try(self, targets: Targets, copy: Copy, label: str) -> bool:
        """Finish a copy; return False if its target is missing."""
        try:
            failure = self._finish(targets, copy)
        except Problem as problem:
            self.failures[label] = problem.detail
            return False
        self.failures.pop(label, None)
        if failure:
            self.failures[label] = failure
        copy.state = "finished"
        return True

    def _finish(self, targets: Targets, copy: Copy) -> str:
        """Bring a copy to the target or the dead-letter queue, or drop it; return why.

        Raises Problem.
        """
        if copy.is_expired(self.now()):
            return self._drop("The time to live of the message was over.")
        try:
            self._send(targets, copy)
        except Problem as problem:
            policy = self.config["on_failure"]
            if problem.status == NOT_FOUND and policy == "wait":
                raise
            if self.config["dead_letter_queue"] is None or copy.has_no_dead_letter:
                return self._drop(problem.detail)
            return self._dead_letter(targets, copy, problem)
        self.counts["delivered"] += 1
        return ""

    def _drop(self, failure: str) -> str:
        self.counts["dropped"] += 1
        return failure

    def _send(self, targets: Targets, copy: Copy) -> None:
        target, now = copy.target, self.now()
        if target.get("queue") is not None:
            queue = targets.queue(target["queue"])
            queue.send([copy.as_message(now, is_fifo=queue.is_fifo)])
        elif target.get("stream") is not None:
            targets.stream(target["stream"]).append([copy.as_record()])
        else:
            topic = targets.topic(target["topic"])
            topic.accept([copy.as_publication(now, is_fifo=topic.is_fifo)])

    def _dead_letter(self, targets: Targets, copy: Copy, problem: Problem) -> str:
        queue = targets.queue(self.config["dead_letter_queue"])
        queue.send([copy.as_dead_letter(problem, self.now(), is_fifo=queue.is_fifo)])
        self.counts["dead_lettered"] += 1
        return problem.detail
