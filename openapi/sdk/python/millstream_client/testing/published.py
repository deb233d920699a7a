"""Messages of in-memory topics, and the copies that routes take."""

from __future__ import annotations

import base64
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec

from millstream_client.testing.definitions import moment
from millstream_client.testing.spreads import choose
from millstream_client.testing.streams import StoredRecord


@dataclass
class PublishedMessage:
    """A message of a topic.

    `fields` are those of the publication, in the form of the REST API.
    """

    id: str
    record: StoredRecord
    fields: dict[str, Any]
    copies: list[Copy] = field(default_factory=list)

    @property
    def subject(self) -> str:
        """The subject; empty if it has none."""
        return self.record.subject

    @property
    def text(self) -> str:
        """The body as text."""
        return self.record.text

    def json(self) -> Any:
        """The body as a JSON value. Raises ValueError if it is not JSON."""
        return self.record.json()

    def document(self, topic: str) -> dict[str, Any]:
        """Return the message as matches see it."""
        optional = {"key": self.record.key, "content_type": self.record.content_type}
        document = {name: value for name, value in optional.items() if value}
        with suppress(ValueError):
            document["body"] = self.json()
        headers = self.record.headers
        size = len(self.record.data) + sum(len(k) + len(v.encode()) for k, v in headers.items())
        meta = {"topic": topic}
        return {**document, "subject": self.subject, "headers": headers, "size": size, "meta": meta}

    def shown(self) -> dict[str, Any]:
        """Return the message as the API does."""
        record, own = self.record, self.fields
        return {
            "id": self.id,
            "shard": record.shard,
            "offset": record.offset,
            "subject": record.subject,
            "key": record.key,
            "headers": record.headers,
            "headers_base64": {},
            "content_type": record.content_type,
            "dedup_id": own.get("dedup_id", ""),
            "delay_seconds": own.get("delay_seconds"),
            "ttl_seconds": own.get("ttl_seconds") or 0,
            "priority": own.get("priority", 0),
            **_shown_body(record.data),
            "published_at": moment(record.arrived_at),
        }


@dataclass
class Copy:
    """A message that a route takes, with the configuration of the route at that time."""

    message: PublishedMessage
    config: dict[str, Any]
    number: int
    state: str = "waiting"

    def left(self, now: float) -> float:
        """Return what is left of the message's own time to live; 0 without one."""
        ttl = self.message.fields.get("ttl_seconds") or 0
        return max(0.001, self.message.record.arrived_at + ttl - now) if ttl else 0

    def is_expired(self, now: float) -> bool:
        """Return whether the message's own time to live is over."""
        ttl = self.message.fields.get("ttl_seconds") or 0
        return bool(ttl and self.message.record.arrived_at + ttl <= now)

    @property
    def dedup_id(self) -> str:
        """Deduplication id that no other copy has."""
        own = self.message.fields.get("dedup_id", "")
        return ".".join(filter(None, (self.message.id, str(self.number), own)))

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
        return _text_at(self.message.document(""), source)


def unstored(fields: dict[str, Any], now: float) -> StoredRecord:
    """Return a message as a record that no log has."""
    optional = {name: fields.get(name, "") for name in ("content_type", "key", "subject")}
    headers = fields.get("headers", {})
    return StoredRecord(
        shard=0,
        offset=0,
        data=fields["body"],
        headers=headers,
        arrived_at=now,
        event_time=None,
        sequence=0,
        **optional,
    )


def _shown_body(data: bytes) -> dict[str, Any]:
    try:
        data.decode()
    except UnicodeDecodeError:
        return {"body": None, "body_base64": base64.b64encode(data).decode()}
    return {"body": data, "body_base64": None}


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
