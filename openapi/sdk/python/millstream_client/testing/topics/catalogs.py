"""In-memory topics and streams by name, also those that are the source of routes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from millstream_client.testing.definitions import Catalog
from millstream_client.testing.problems import Problem, invalid, unsupported
from millstream_client.testing.streams import MemoryStream
from millstream_client.testing.topics.route import Targets
from millstream_client.testing.topics.route_catalog import without_measurements
from millstream_client.testing.topics.routed_log import RoutedLog
from millstream_client.testing.topics.spreads import Target
from millstream_client.testing.topics.targets import OF_QUEUE, OF_STREAM, OF_TOPIC, read_only

OF_QUEUE_CONFIG = {"message_bytes_max": 10 * 1024 * 1024}
"""Configuration of the topic that the first route of a queue creates."""

ROUNDS_MAX = 100
"""Rounds of deliveries within a call: a dead-letter queue may lead back to its source."""


class TopicCatalog(Catalog[RoutedLog]):
    """Topics by name, and streams and queues that have routes.

    `stream:<name>` stands for that stream. `queue:<name>` is the topic that takes the messages of that queue.
    """

    def __init__(
        self,
        make: Callable[[str, dict[str, Any]], RoutedLog],
        make_of_stream: Callable[[str], RoutedLog],
    ) -> None:
        super().__init__("topic", make)
        self._make_of_stream = make_of_stream

    def get(self, name: str) -> RoutedLog:
        """Return a topic, or a stream as one. Raises Problem."""
        if name.startswith(OF_STREAM) and name not in self.objects:
            self.objects[name] = self._of_stream(name.removeprefix(OF_STREAM))
        return super().get(name)

    def _of_stream(self, name: str) -> RoutedLog:
        if not name.startswith(OF_TOPIC):
            with suppress(Problem):
                return self._make_of_stream(name)
        raise Problem("topic_not_found", f"Stream '{name}' does not exist.")

    def put_route(
        self, name: str, route: str, fields: dict[str, Any], *, only_new: bool, dry_run: bool
    ) -> tuple[int, dict[str, Any]]:
        """Create or replace a route; the first one of a queue creates its topic. Raises Problem."""
        topic = self.objects.get(name) if name.startswith(OF_QUEUE) else self.get(name)
        topic = topic or self.make(name, self._complete(name, OF_QUEUE_CONFIG))
        status, stored = topic.routes.put(route, fields, only_new=only_new, dry_run=dry_run)
        if not dry_run:
            self.objects[name] = topic
        return status, stored

    def targets_of(self, name: str) -> list[Target]:
        """Return the targets of the routes of a topic; none if it does not exist."""
        topic = self.objects.get(name)
        routes = [] if topic is None else topic.routes.objects.values()
        return [route.config["target"] for route in routes]

    def discard(self, name: str) -> None:
        """Delete the routes of a stream or queue with it."""
        self.objects.pop(name, None)

    def put(self, name: str, fields: dict[str, Any], **conditions: Any) -> tuple[int, Any]:
        """Create or replace a topic. Raises Problem, also for that of a stream."""
        _check_writable(name)
        return super().put(name, fields, **conditions)

    def patch(self, name: str, fields: dict[str, Any]) -> dict[str, Any]:
        """Change fields of a topic. Raises Problem, also for that of a stream."""
        _check_writable(name)
        return super().patch(name, fields)

    def delete(self, name: str) -> None:
        """Delete a topic. Raises Problem, also for that of a stream."""
        _check_writable(name)
        super().delete(name)

    def page(self, query: Any) -> dict[str, Any]:
        """Return the topics whose names have a prefix, and behind them streams with routes."""
        page = without_measurements(super().page(query))
        items = [item for item in page["items"] if self._is_listed(item["name"])]
        items.sort(key=lambda item: item["name"].startswith(OF_STREAM))
        return {**page, "items": items}

    def _is_listed(self, name: str) -> bool:
        return not name.startswith(OF_STREAM) or bool(self.objects[name].routes.objects)

    def _checked_config(self, name: str, config: dict[str, Any]) -> dict[str, Any]:
        if name.startswith(OF_QUEUE):
            _check_of_queue(config)
        is_by_key = config["dedup_scope"] == "key"
        if config["type"] == "fifo":
            if config["shards"] > 1 and not is_by_key:
                detail = "A FIFO topic with several shards requires the deduplication scope 'key'"
                raise invalid("/dedup_scope", detail, "required")
        elif config["deduplicate_by_content"] or is_by_key:
            raise invalid("/dedup_scope", "Deduplication requires a FIFO topic", "not_supported")
        default = "refuse" if name.startswith(OF_QUEUE) else "drop"
        return {**config, "unmatched": config["unmatched"] or default}


def _check_writable(name: str) -> None:
    if name.startswith(OF_STREAM):
        raise read_only()


def _check_of_queue(config: dict[str, Any]) -> None:
    if config["shards"] > 1:
        detail = "The topic of a queue's routes has one shard"
        raise invalid("/shards", detail, "not_supported")
    if config["type"] == "fifo":
        detail = "The topic of a queue's routes is standard; it keeps the order of each group"
        raise invalid("/type", detail, "not_supported")


class StreamCatalog(Catalog[MemoryStream]):
    """Streams by name, also those of topics, which are read alone."""

    def __init__(
        self,
        make: Callable[[str, dict[str, Any]], MemoryStream],
        topic_of: Callable[[str], RoutedLog],
    ) -> None:
        super().__init__("stream", make)
        self._topic_of = topic_of

    def get(self, name: str) -> MemoryStream:
        """Return a stream. Raises Problem."""
        if not name.startswith(OF_TOPIC):
            return super().get(name)
        topic = name.removeprefix(OF_TOPIC)
        if not topic.startswith(OF_STREAM):
            with suppress(Problem):
                return self._topic_of(topic).log
        raise Problem("stream_not_found", f"Stream {name!r} does not exist.")

    def put(self, name: str, fields: dict[str, Any], **conditions: Any) -> tuple[int, Any]:
        """Create or replace a stream. Raises Problem."""
        _refuse_topic(name)
        return super().put(name, fields, **conditions)

    def patch(self, name: str, fields: dict[str, Any]) -> dict[str, Any]:
        """Change fields of a stream. Raises Problem."""
        _refuse_topic(name)
        return super().patch(name, fields)

    def delete(self, name: str) -> None:
        """Delete a stream. Raises Problem."""
        self.writable(name)
        super().delete(name)

    def writable(self, name: str) -> MemoryStream:
        """Return a stream that records are appended to. Raises Problem."""
        stream = self.get(name)
        if name.startswith(OF_TOPIC):
            raise Problem("stream_read_only", "A topic is written by publishing.")
        return stream


def _refuse_topic(name: str) -> None:
    if name.startswith(OF_TOPIC):
        raise unsupported("change of a topic's stream")


def deliver_all(topics: TopicCatalog, targets: Targets) -> None:
    """Deliver what the sources have and what waits, also what that brings to other topics."""
    for _ in range(ROUNDS_MAX):
        logs = [*topics.objects.values()]
        routes = [route for log in logs for route in log.routes.objects.values()]
        collected = [log.collect() for log in logs]
        delivered = [route.deliver(targets) for route in routes if route.waiting]
        if not any(collected) and not any(delivered):
            return
