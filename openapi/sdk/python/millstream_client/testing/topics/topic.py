"""In-memory topics: configuration, and publishing."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from millstream_client.core.defaults import DEFAULTS
from millstream_client.testing.deduplication import Deduplication
from millstream_client.testing.definitions import Clock
from millstream_client.testing.problems import Problem, invalid
from millstream_client.testing.streams import MemoryStream
from millstream_client.testing.topics.published import PublishedMessage, unstored
from millstream_client.testing.topics.routed_log import RoutedLog
from millstream_client.testing.topics.subjects import check_subject
from millstream_client.testing.topics.targets import OF_TOPIC

if TYPE_CHECKING:
    from millstream_client.testing.service import MemoryService


class TopicLog(RoutedLog):
    """A topic that has a log of its own."""

    def __init__(
        self, name: str, config: dict[str, Any], now: Clock, service: MemoryService
    ) -> None:
        log = MemoryStream(f"{OF_TOPIC}{name}", _log_config(config), now)
        super().__init__(name, config, now, log, service)

    @property
    def refuses_unmatched(self) -> bool:
        """Return whether it refuses what no route takes."""
        return bool(self.config["unmatched"] == "refuse")

    def configure(self, config: dict[str, Any]) -> None:
        """Replace the configuration, also that of the log."""
        super().configure(config)
        self.log.configure(_log_config(config))

    def shown(self) -> dict[str, Any]:
        """Return the configuration as the API does."""
        config = {name: value for name, value in super().shown().items() if name != "paused"}
        return {**config, "stream": self.log.name, "open_shards": len(self.log.shards)}

    def is_taken(self, fields: dict[str, Any]) -> bool:
        """Return whether a live route takes a message."""
        return bool(self.live_routes(unstored(fields, self.now()).document(self.meta)))

    def append(self, fields: dict[str, Any]) -> tuple[PublishedMessage, int]:
        """Append a message for the routes that take it; return the number of live ones."""
        [place] = self.log.append([{**fields, "data": fields["body"]}])
        return self.add(self.log.shard(place["shard"]).records[-1], fields)


class MemoryTopic(TopicLog):
    """A topic that is published to."""

    is_published_to = True

    def __init__(
        self, name: str, config: dict[str, Any], now: Clock, service: MemoryService
    ) -> None:
        super().__init__(name, config, now, service)
        self._accepted: Deduplication[PublishedMessage] = Deduplication(now)

    @property
    def is_fifo(self) -> bool:  # type: ignore[override]
        """Return whether messages have deduplication ids."""
        return bool(self.config["type"] == "fifo")

    def publish(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Publish messages: all of them, or none if one is refused; return a result for each."""
        try:
            return self.accept(messages)
        except Problem as problem:
            if problem.code != "unroutable":
                raise
            return [{"error": problem.item} for _ in messages]

    def accept(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Accept messages, and decide which routes take them. Raises Problem."""
        for nth, fields in enumerate(messages):
            self._check(fields, f"/messages/{nth}" if len(messages) > 1 else "")
        for nth, fields in enumerate(messages):
            if self.refuses_unmatched and not self.is_taken(fields):
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
        if earlier := self._accepted.find(dedup_key):
            return {**_result(earlier), "duplicate": True, "routes": None}
        message, live = self.append(fields)
        self._accepted.add(dedup_key, message)
        return {**_result(message), "routes": live}

    def _dedup_key(self, fields: dict[str, Any]) -> str:
        if not self.is_fifo:
            return ""
        dedup_id = fields.get("dedup_id") or hashlib.sha256(fields["body"]).hexdigest()
        return f"{fields['key']} {dedup_id}" if self.config["dedup_scope"] == "key" else dedup_id


def _result(message: PublishedMessage) -> dict[str, Any]:
    record = message.record
    return {"id": message.id, "shard": record.shard, "offset": record.offset, "duplicate": False}


def _log_config(config: dict[str, Any]) -> dict[str, Any]:
    own = {name: config[name] for name in ("shards", "retention_seconds", "retention_bytes")}
    size = config["message_bytes_max"]
    return {**DEFAULTS["StreamConfig"], **own, "record_bytes_max": size, "paused": False}
