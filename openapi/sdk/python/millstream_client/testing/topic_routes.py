"""Routes of in-memory topics: they take copies of messages, and bring them to targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from millstream_client.core.defaults import DEFAULTS
from millstream_client.testing.definitions import Catalog, Clock, Defined, moment
from millstream_client.testing.matches import UNMATCHED, check_match
from millstream_client.testing.problems import Problem, invalid, unsupported
from millstream_client.testing.published import Copy, PublishedMessage
from millstream_client.testing.spreads import (
    check_spread,
    completed,
    label_of,
    named_targets,
)

if TYPE_CHECKING:
    from millstream_client.testing.queues import MemoryQueue
    from millstream_client.testing.streams import MemoryStream
    from millstream_client.testing.topics import MemoryTopic

HOPS_MAX = 8
PREFIX = "topic:"
TARGETS = ("queue", "stream", "topic")
OF_REVISION = ("match", "target", "transform", "format", "key", "mode")
SIMPLE = {"transform": None, "format": "body", "start": "latest", "start_time": None}
"""Settings of routes that the in-memory service has only with this value."""

NOT_FOUND = 404


class Targets(Protocol):
    """Queues, streams and topics by name, which raise Problem for a missing one."""

    def queue(self, name: str) -> MemoryQueue:
        """Return a queue."""

    def stream(self, name: str) -> MemoryStream:
        """Return a stream."""

    def topic(self, name: str) -> MemoryTopic:
        """Return a topic."""


class MemoryRoute(Defined):
    """A route of a topic."""

    def __init__(self, name: str, config: dict[str, Any], now: Clock, topic: MemoryTopic) -> None:
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
        target = {**dict.fromkeys((*TARGETS, "url")), **self.config["target"]}
        facts = {"topic": self.topic.name, "target": target, "number": self.number}
        return {**super().shown(), **facts, "cost": "indexed"}

    def take(self, message: PublishedMessage) -> None:
        """Add a copy of a message."""
        copy = Copy(message, self.config, self.number)
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
            if self.config["dead_letter_queue"] is None:
                return self._drop(problem.detail)
            return self._dead_letter(targets, copy, problem)
        self.counts["delivered"] += 1
        return ""

    def _drop(self, failure: str) -> str:
        self.counts["dropped"] += 1
        return failure

    def _send(self, targets: Targets, copy: Copy) -> None:
        target = copy.target
        if target.get("queue") is not None:
            queue = targets.queue(target["queue"])
            queue.send([self._as_message(copy, queue.is_fifo)])
        elif target.get("stream") is not None:
            targets.stream(target["stream"]).append([self._as_record(copy)])
        else:
            topic = targets.topic(target["topic"])
            topic.accept([self._as_publication(copy, topic)], is_copy=True)

    def _as_message(self, copy: Copy, is_fifo: bool) -> dict[str, Any]:
        own = copy.message.fields
        delay = own.get("delay_seconds")
        message = {
            **self._origin(copy),
            "delay_seconds": (self.config["delay_seconds"] or None) if delay is None else delay,
            "ttl_seconds": copy.left(self.now()) or self.config["ttl_seconds"],
            "reply_to": own.get("reply_to", ""),
        }
        if not is_fifo:
            return {**message, "key": copy.key, "priority": own.get("priority", 0)}
        return {**message, "group": copy.key, "dedup_id": copy.dedup_id}

    def _as_record(self, copy: Copy) -> dict[str, Any]:
        message = self._origin(copy)
        return {**message, "data": message["body"], "key": copy.key}

    def _as_publication(self, copy: Copy, topic: MemoryTopic) -> dict[str, Any]:
        own = copy.message.fields
        hops = own.get("hops", 0) + 1
        if hops > HOPS_MAX:
            raise Problem("too_many_hops", f"The message has passed {HOPS_MAX} topics.", status=422)
        names = ("delay_seconds", "reply_to", *(() if topic.is_fifo else ("priority",)))
        return {
            **self._origin(copy),
            **{name: own[name] for name in names if own.get(name) is not None},
            "ttl_seconds": copy.left(self.now()),
            "key": copy.key,
            "dedup_id": copy.dedup_id if topic.is_fifo else "",
            "hops": hops,
        }

    def _origin(self, copy: Copy) -> dict[str, Any]:
        record = copy.message.record
        return {
            "body": record.data,
            "content_type": record.content_type,
            "headers": record.headers,
            "topic": self.topic.name,
            "subject": record.subject,
            "route": self.name,
        }

    def _dead_letter(self, targets: Targets, copy: Copy, problem: Problem) -> str:
        queue = targets.queue(self.config["dead_letter_queue"])
        origin = {
            "source": f"route:{self.topic.name}/{self.name}",
            "reason": problem.code,
            "died_at": moment(self.now()),
            "failures": 1,
            "crash_count": 0,
            "last_failure_reason": "",
            "details": problem.detail,
        }
        key = copy.message.record.key
        group = key or f"shard {copy.message.record.shard}"
        place = {"group": group, "dedup_id": copy.dedup_id} if queue.is_fifo else {}
        queue.send([{**self._origin(copy), "key": key, "dead_letter": origin, **place}])
        self.counts["dead_lettered"] += 1
        return problem.detail


class RouteCatalog(Catalog[MemoryRoute]):
    """Routes of a topic by name."""

    def __init__(
        self,
        make: Callable[[str, dict[str, Any]], MemoryRoute],
        check_cycle: Callable[[str], None],
    ) -> None:
        super().__init__("route", make)
        self._check_cycle = check_cycle

    def put(self, name: str, fields: dict[str, Any], **conditions: Any) -> tuple[int, Any]:
        """Create or replace a route; return the status and the stored route."""
        if "target" not in fields:
            raise invalid("/target", "Field required", "required")
        status, stored = super().put(name, fields, **conditions)
        return status, {**stored, "secret": None, "in_force": not stored["dry_run"]}

    def _check(self, fields: dict[str, Any]) -> None:
        for name, value in fields.items():
            if name not in DEFAULTS[self.schema]:
                raise invalid(f"/{name}", f"Unknown field {name!r}", "unknown_field")
            if value != SIMPLE.get(name, value):
                raise unsupported(f"{name} of routes other than {SIMPLE[name]!r}")
        if "target" in fields:
            self._check_target(fields["target"])
        check_match(fields.get("match"))

    def _check_target(self, target: dict[str, Any]) -> None:
        given = {name: value for name, value in target.items() if value is not None}
        if "url" in given:
            raise unsupported("route to a URL")
        for name in given.keys() - {*TARGETS, "spread", "by"}:
            raise invalid(f"/target/{name}", "Only a URL has it", "not_supported")
        if len(given.keys() - {"by"}) != 1:
            detail = "Specify exactly one of queue, stream, topic, spread and url"
            raise invalid("/target", detail, "exclusive")
        if "spread" in given:
            check_spread(given)
            for number, member in enumerate(given["spread"]):
                self._check_named(member, f"/target/spread/{number}")
            return
        if "by" in given:
            raise invalid("/target/by", "Only a spread has it", "not_supported")
        self._check_named(given, "/target")

    def _check_named(self, target: dict[str, Any], pointer: str) -> None:
        """Check the name of a queue, stream or topic. Raises Problem."""
        if str(target.get("stream") or "").startswith(PREFIX):
            raise invalid(f"{pointer}/stream", "A topic is written by publishing", "not_allowed")
        if target.get("topic") is not None:
            self._check_cycle(target["topic"])

    @staticmethod
    def _checked_config(config: dict[str, Any]) -> dict[str, Any]:
        """Complete the target, and check what depends on it."""
        target = {name: config["target"].get(name) for name in TARGETS}
        if config["target"].get("spread") is not None:
            target = completed(config["target"])
        if not any(one.get("queue") is not None for one in named_targets(target)):
            for name in ("delay_seconds", "ttl_seconds"):
                if config[name]:
                    detail = "Only the messages of a queue or a URL have it"
                    raise invalid(f"/{name}", detail, "not_supported")
        if config["on_failure"] == "dead_letter" and config["dead_letter_queue"] is None:
            detail = "on_failure 'dead_letter' requires a dead-letter queue"
            raise invalid("/dead_letter_queue", detail, "required")
        return {**config, "target": target}

    def page(self, query: Any) -> dict[str, Any]:
        """Return the routes whose names have a prefix."""
        return without_measurements(super().page(query))


def without_measurements(page: dict[str, Any]) -> dict[str, Any]:
    """Return a page of definitions that are not measured."""
    for item in page["items"]:
        del item["measurement"]
    return page
