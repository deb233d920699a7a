"""In-memory topics: configuration, publishing, and which routes take a message."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

from millstream_client.core.defaults import DEFAULTS
from millstream_client.testing.definitions import Catalog, Clock, Defined, moment
from millstream_client.testing.matches import matches
from millstream_client.testing.problems import Problem, invalid, unsupported
from millstream_client.testing.published import PublishedMessage, unstored
from millstream_client.testing.queues import DEDUP_WINDOW_S
from millstream_client.testing.spreads import named_targets
from millstream_client.testing.streams import MemoryStream
from millstream_client.testing.subjects import check_subject
from millstream_client.testing.topic_routes import (
    PREFIX,
    MemoryRoute,
    RouteCatalog,
    Targets,
    without_measurements,
)

OF_STREAM = "stream:"
OF_QUEUE = "queue:"
"""Prefix of the name under which a stream is the source of routes."""


class MemoryTopic(Defined):
    """A topic, with its `messages` and `routes`."""

    def __init__(self, name: str, config: dict[str, Any], now: Clock, targets: Targets) -> None:
        super().__init__(name, config, now)
        self._targets = targets
        self._numbers = 0
        self._published: list[PublishedMessage] = []
        self._dedup: dict[str, tuple[PublishedMessage, float]] = {}
        self.log = MemoryStream(f"{PREFIX}{name}", self._log_config(config), now)
        self.routes = RouteCatalog(self._make_route, self._check_cycle)

    @property
    def is_fifo(self) -> bool:
        """Return whether messages have deduplication ids."""
        return bool(self.config["type"] == "fifo")

    @property
    def messages(self) -> list[PublishedMessage]:
        """Messages that the topic keeps, by acceptance."""
        starts = {shard.index: shard.start for shard in self.log.shards}
        self._published = [
            message
            for message in self._published
            if message.record.offset >= starts[message.record.shard]
        ]
        return self._published

    def next_number(self) -> int:
        """Return the number of the next revision of a route."""
        self._numbers += 1
        return self._numbers

    def configure(self, config: dict[str, Any]) -> None:
        """Replace the configuration, also that of the log."""
        super().configure(config)
        self.log.configure(self._log_config(config))

    def shown(self) -> dict[str, Any]:
        """Return the configuration as the API does."""
        config = {name: value for name, value in super().shown().items() if name != "paused"}
        return {**config, "stream": self.log.name, "open_shards": len(self.log.shards)}

    def stats(self) -> dict[str, Any]:
        """Return the counts."""
        waiting = [copy for route in self.routes.objects.values() for copy in route.waiting]
        oldest = min((copy.message.record.arrived_at for copy in waiting), default=self.now())
        return {
            "messages": len(self.messages),
            "bytes_held": sum(len(message.record.data) for message in self.messages),
            "routes": len(self.routes.objects),
            "lag_messages": len({copy.message.id for copy in waiting}),
            "lag_seconds": self.now() - oldest,
        }

    def message(self, message_id: str) -> PublishedMessage:
        """Return a message by its id. Raises Problem."""
        for message in self.messages:
            if message.id == message_id:
                return message
        raise Problem("message_not_found", "The topic has no message of this id.")

    def message_routes(self, message_id: str) -> dict[str, Any]:
        """Return the routes that take a message, and the state of each."""
        message = self.message(message_id)
        names = {route.number: route.name for route in self.routes.objects.values()}
        routes = [
            {"route": names.get(copy.number), "number": copy.number, "state": copy.state}
            | ({"member": copy.member} if copy.member and copy.state != "shadow" else {})
            for copy in sorted(message.copies, key=lambda copy: copy.number)
        ]
        at = moment(message.record.arrived_at)
        return {"id": message.id, "published_at": at, "routes": routes}

    # ── Publishing ──

    def publish(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Publish messages: all of them, or none if one is refused; return a result for each."""
        try:
            return self.accept(messages)
        except Problem as problem:
            if problem.code != "unroutable":
                raise
            return [{"error": problem.item} for _ in messages]

    def accept(
        self, messages: list[dict[str, Any]], *, is_copy: bool = False
    ) -> list[dict[str, Any]]:
        """Accept messages, and decide which routes take them. Raises Problem."""
        for nth, fields in enumerate(messages):
            self._check(fields, f"/messages/{nth}" if len(messages) > 1 else "")
        for nth, fields in enumerate(messages):
            if self.config["unmatched"] == "refuse" and not any(self._live_routes(fields)):
                detail = f"Message {nth}: no route takes it, and the topic refuses it."
                raise Problem("unroutable", detail)
        return [self._accept(fields) for fields in messages]

    def _check(self, fields: dict[str, Any], pointer: str) -> None:
        if not fields.get("body"):
            raise invalid("/body", "A message must have at least one byte", "too_short")
        if len(fields["body"]) > self.config["message_bytes_max"]:
            raise Problem("message_too_large", "The message is too large.")
        check_subject(fields.get("subject", ""))
        if self.is_fifo:
            self._check_fifo(fields, pointer)
        elif fields.get("dedup_id"):
            detail = "A deduplication id requires a FIFO topic"
            raise invalid(f"{pointer}/dedup_id", detail, "not_supported")

    def _check_fifo(self, fields: dict[str, Any], pointer: str) -> None:
        if not fields.get("key"):
            raise invalid(f"{pointer}/key", "A message of a FIFO topic requires a key", "required")
        if not fields.get("dedup_id") and not self.config["deduplicate_by_content"]:
            detail = "A message of a FIFO topic requires a deduplication id"
            raise invalid(f"{pointer}/dedup_id", detail, "required")
        for name in ("delay_seconds", "priority"):
            if fields.get(name):
                detail = f"Messages of a FIFO topic have no {name}"
                raise invalid(f"{pointer}/{name}", detail, "not_supported")

    def _accept(self, fields: dict[str, Any]) -> dict[str, Any]:
        dedup_key = self._dedup_key(fields)
        earlier, accepted_at = self._dedup.get(dedup_key, (None, 0.0))
        if dedup_key and earlier and self.now() - accepted_at < DEDUP_WINDOW_S:
            return {**_result(earlier), "duplicate": True, "routes": None}
        taken_by = [*self._live_routes(fields), *self._shadow_routes(fields)]
        [place] = self.log.append([{**fields, "data": fields["body"]}])
        record = self.log.shard(place["shard"]).records[-1]
        message_id = f"{self.log.id}-{record.shard}-{record.offset}"
        message = PublishedMessage(message_id, record, fields)
        self._published.append(message)
        if dedup_key:
            self._dedup[dedup_key] = (message, self.now())
        for route in taken_by:
            route.take(message)
        return {**_result(message), "routes": sum(route.is_live for route in taken_by)}

    def _dedup_key(self, fields: dict[str, Any]) -> str:
        if not self.is_fifo:
            return ""
        dedup_id = fields.get("dedup_id") or hashlib.sha256(fields["body"]).hexdigest()
        return f"{fields['key']} {dedup_id}" if self.config["dedup_scope"] == "key" else dedup_id

    def _live_routes(self, fields: dict[str, Any]) -> list[MemoryRoute]:
        """Return the routes that deliver a message: those that match, or else the unmatched."""
        live = [route for route in self.routes.objects.values() if route.is_live]
        matching = [route for route in live if self._matches(route, fields)]
        return matching or [route for route in live if route.takes_unmatched]

    def _shadow_routes(self, fields: dict[str, Any]) -> Iterator[MemoryRoute]:
        is_unmatched = not any(not one.takes_unmatched for one in self._live_routes(fields))
        for route in self.routes.objects.values():
            if not route.is_live and (
                self._matches(route, fields) or (route.takes_unmatched and is_unmatched)
            ):
                yield route

    def _matches(self, route: MemoryRoute, fields: dict[str, Any]) -> bool:
        if route.takes_unmatched:
            return False
        record = unstored(fields, self.now())
        document = PublishedMessage("", record, fields).document(self.name)
        return matches(route.config["match"], document)

    # ── Routes ──

    def _make_route(self, name: str, config: dict[str, Any]) -> MemoryRoute:
        return MemoryRoute(name, config, self.now, self)

    def _check_cycle(self, target: str) -> None:
        """Raise Problem if a topic leads back to this one."""
        reached, pending = set[str](), [target]
        while pending:
            current = pending.pop()
            if current == self.name:
                raise Problem("route_cycle", f"Messages would return to topic '{self.name}'.")
            if current not in reached:
                reached.add(current)
                pending += _topic_targets(self._targets, current)

    @staticmethod
    def _log_config(config: dict[str, Any]) -> dict[str, Any]:
        own = {name: config[name] for name in ("shards", "retention_seconds", "retention_bytes")}
        size = config["message_bytes_max"]
        return {**DEFAULTS["StreamConfig"], **own, "record_bytes_max": size, "paused": False}


class TopicCatalog(Catalog[MemoryTopic]):
    """Topics by name."""

    def __init__(self, make: Callable[[str, dict[str, Any]], MemoryTopic]) -> None:
        super().__init__("topic", make)

    def get(self, name: str) -> MemoryTopic:
        """Return a topic. Raises Problem."""
        if name.startswith(OF_STREAM):
            raise unsupported("route of a stream")
        if name.startswith(OF_QUEUE):
            raise unsupported("route of a queue")
        return super().get(name)

    def page(self, query: Any) -> dict[str, Any]:
        """Return the topics whose names have a prefix."""
        return without_measurements(super().page(query))

    @staticmethod
    def _checked_config(config: dict[str, Any]) -> dict[str, Any]:
        is_by_key = config["dedup_scope"] == "key"
        if config["type"] == "fifo":
            if config["shards"] > 1 and not is_by_key:
                detail = "A FIFO topic with several shards requires the deduplication scope 'key'"
                raise invalid("/dedup_scope", detail, "required")
        elif config["deduplicate_by_content"] or is_by_key:
            raise invalid("/dedup_scope", "Deduplication requires a FIFO topic", "not_supported")
        return {**config, "unmatched": config["unmatched"] or "drop"}


class StreamCatalog(Catalog[MemoryStream]):
    """Streams by name, also those of topics, which are read alone."""

    def __init__(
        self,
        make: Callable[[str, dict[str, Any]], MemoryStream],
        topic_of: Callable[[str], MemoryTopic],
    ) -> None:
        super().__init__("stream", make)
        self._topic_of = topic_of

    def get(self, name: str) -> MemoryStream:
        """Return a stream. Raises Problem."""
        if not name.startswith(PREFIX):
            return super().get(name)
        try:
            return self._topic_of(name.removeprefix(PREFIX)).log
        except Problem:
            raise Problem("stream_not_found", f"Stream {name!r} does not exist.") from None

    def writable(self, name: str) -> MemoryStream:
        """Return a stream that records are appended to. Raises Problem."""
        stream = self.get(name)
        if name.startswith(PREFIX):
            raise Problem("stream_read_only", "A topic is written by publishing.")
        return stream


def deliver_all(topics: TopicCatalog, targets: Targets) -> None:
    """Deliver what waits in all topics, also what their routes bring to other topics."""
    is_moving = True
    while is_moving:
        routes = [
            route for topic in topics.objects.values() for route in topic.routes.objects.values()
        ]
        is_moving = any([route.deliver(targets) for route in routes if route.waiting])


def _topic_targets(targets: Targets, name: str) -> list[str]:
    try:
        routes = targets.topic(name).routes.objects.values()
    except Problem:
        return []
    named = [one for route in routes for one in named_targets(route.config["target"])]
    return [target["topic"] for target in named if target.get("topic") is not None]


def _result(message: PublishedMessage) -> dict[str, Any]:
    record = message.record
    return {"id": message.id, "shard": record.shard, "offset": record.offset, "duplicate": False}
