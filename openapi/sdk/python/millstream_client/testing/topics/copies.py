"""Copies of messages for the targets of in-memory routes, and their dead letters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from millstream_client.testing.definitions import moment
from millstream_client.testing.problems import Problem
from millstream_client.testing.topics.published import PublishedMessage
from millstream_client.testing.topics.spreads import choose

if TYPE_CHECKING:
    from millstream_client.testing.topics.route import MemoryRoute

HOPS_MAX = 8


@dataclass
class Copy:
    """A message that a route takes, with the configuration of the route at that time."""

    message: PublishedMessage
    route: MemoryRoute
    config: dict[str, Any]
    number: int
    state: str = "waiting"

    def is_expired(self, now: float) -> bool:
        """Return whether the message's own time to live is over."""
        ttl = self.message.fields.get("ttl_seconds") or 0
        return bool(ttl and self.message.record.arrived_at + ttl <= now)

    @property
    def target(self) -> dict[str, Any]:
        """Queue, stream or topic that gets the copy."""
        target: dict[str, Any] = self.config["target"]
        return self.member or target

    @property
    def member(self) -> dict[str, Any] | None:
        """The member of a spread that gets the copy; None for another target."""
        target = self.config["target"]
        if not target.get("spread"):
            return None
        value = {"key": self.key, "subject": self.message.subject}.get(target["by"], "")
        return choose(target["spread"], value or self.message.id)

    @property
    def key(self) -> str:
        """Key of the copy, by the route."""
        source = self.config["key"]
        if isinstance(source, dict):
            return str(source["constant"])
        if source in {None, "key"}:
            return self.message.record.key
        if source == "subject":
            return self.message.subject
        return _text_at(self.message.document(self.route.topic.meta), source)

    # ── For targets ──

    def as_message(self, now: float, *, is_fifo: bool) -> dict[str, Any]:
        """Return the copy for a queue. Raises Problem."""
        own = self.message.fields
        delay, config = own.get("delay_seconds"), self.route.config
        message = {
            **self._content(),
            "delay_seconds": (config["delay_seconds"] or None) if delay is None else delay,
            "ttl_seconds": self._left(now) or config["ttl_seconds"],
            "reply_to": own.get("reply_to", ""),
            "hops": self._hops(),
        }
        if not is_fifo:
            return {**message, "key": self.key, "priority": own.get("priority", 0)}
        return {**message, "group": self.key, "dedup_id": self.dedup_id}

    def as_record(self) -> dict[str, Any]:
        """Return the copy for a stream. Raises Problem."""
        content = self._content()
        event_time, hops = self.message.record.event_time, self._hops()
        facts = {"key": self.key, "event_time": event_time, "hops": hops}
        return {**content, "data": content["body"], **facts}

    def as_publication(self, now: float, *, is_fifo: bool) -> dict[str, Any]:
        """Return the copy for another topic. Raises Problem."""
        own = self.message.fields
        names = ("delay_seconds", "reply_to", *(() if is_fifo else ("priority",)))
        return {
            **self._content(),
            **{name: own[name] for name in names if own.get(name) is not None},
            "ttl_seconds": self._left(now),
            "key": self.key,
            "dedup_id": self.dedup_id if is_fifo else "",
            "hops": _one_more(self.message.record.hops),
        }

    @property
    def has_no_dead_letter(self) -> bool:
        """True if the message is itself a dead letter of one that had passed too many topics."""
        return self.message.record.hops > HOPS_MAX

    def as_dead_letter(self, problem: Problem, now: float, *, is_fifo: bool) -> dict[str, Any]:
        """Return the message as it was published, for a dead-letter queue."""
        record = self.message.record
        origin = {
            "source": f"route:{self.route.topic.name}/{self.route.name}",
            "reason": problem.code,
            "died_at": moment(now),
            "failures": 1,
            "crash_count": 0,
            "last_failure_reason": "",
            "details": problem.detail,
        }
        group = record.key or f"shard {record.shard}"
        place = {"group": group, "dedup_id": self.dedup_id} if is_fifo else {}
        headers = {**self.message.headers, **self._source_headers}
        own = {
            "headers": headers,
            "key": record.key,
            "hops": record.hops + 1,
            "dead_letter": origin,
        }
        return {**self._content(), **own, **place}

    @property
    def dedup_id(self) -> str:
        """Deduplication id that no other copy has."""
        own = self.message.fields.get("dedup_id", "")
        return ".".join(filter(None, (self.message.id, str(self.number), own)))

    def _left(self, now: float) -> float:
        """Return what is left of the message's own time to live; 0 without one."""
        ttl = self.message.fields.get("ttl_seconds") or 0
        return max(0.001, self.message.record.arrived_at + ttl - now) if ttl else 0

    def _hops(self) -> int:
        """Return the number of routes that the copy has passed.

        A message that was published to this topic itself has none. Raises Problem after too many.
        """
        hops = self.message.record.hops
        return _one_more(hops) if hops or not self.route.topic.is_published_to else 0

    def _content(self) -> dict[str, Any]:
        """Return the content with its origin: the topic, or the place in a stream, and the route."""
        record, topic = self.message.record, self.route.topic
        is_of_stream = topic.is_of_stream
        place = self._source_headers if is_of_stream else {}
        return {
            "body": record.data,
            "content_type": record.content_type,
            "headers": {**self.message.headers, **place},
            "topic": "" if is_of_stream else topic.name,
            "subject": record.subject,
            "route": self.route.name,
        }

    @property
    def _source_headers(self) -> dict[str, str]:
        record = self.message.record
        return {
            ":source_stream": self.route.topic.log.name,
            ":source_shard": str(record.shard),
            ":source_offset": str(record.offset),
            ":source_time": str(int(record.arrived_at * 1000)),
        }


def _one_more(hops: int) -> int:
    if hops >= HOPS_MAX:
        raise Problem("too_many_hops", f"The message has passed {HOPS_MAX} topics.", status=422)
    return hops + 1


def _text_at(document: dict[str, Any], pointer: str) -> str:
    """Return the text of the value at a JSON Pointer; empty without one."""
    value: Any = document
    for token in pointer.split("/")[1:]:
        word = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and word in value:
            value = value[word]
        elif isinstance(value, list) and word.isdecimal() and int(word) < len(value):
            value = value[int(word)]
        else:
            return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
