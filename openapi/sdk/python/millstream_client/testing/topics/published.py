"""Messages of in-memory topics, as they are stored, shown, and seen by matches."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream_client.testing.definitions import moment
from millstream_client.testing.streams import StoredRecord

if TYPE_CHECKING:
    from millstream_client.testing.topics.copies import Copy

RESERVED = ":"
"""First character of the names of headers that the service adds."""


@dataclass
class PublishedMessage:
    """A message of a topic, or a record of a stream that has routes.

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

    @property
    def headers(self) -> dict[str, str]:
        """The headers that its sender has set."""
        headers = self.record.headers.items()
        return {name: value for name, value in headers if not name.startswith(RESERVED)}

    def json(self) -> Any:
        """The body as a JSON value. Raises ValueError if it is not JSON."""
        return self.record.json()

    def document(self, meta: Mapping[str, str]) -> dict[str, Any]:
        """Return the message as matches see it. `meta` says where it is."""
        optional = {"key": self.record.key, "content_type": self.record.content_type}
        document = {name: value for name, value in optional.items() if value}
        with suppress(ValueError):
            document["body"] = self.json()
        headers = self.headers
        size = len(self.record.data) + sum(len(k) + len(v.encode()) for k, v in headers.items())
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


def unstored(fields: dict[str, Any], now: float) -> PublishedMessage:
    """Return a message that no log has."""
    optional = {name: fields.get(name, "") for name in ("content_type", "key", "subject")}
    record = StoredRecord(
        shard=0,
        offset=0,
        data=fields["body"],
        headers=fields.get("headers", {}),
        arrived_at=now,
        event_time=None,
        sequence=0,
        **optional,
    )
    return PublishedMessage("", record, fields)


def _shown_body(data: bytes) -> dict[str, Any]:
    try:
        data.decode()
    except UnicodeDecodeError:
        return {"body": None, "body_base64": base64.b64encode(data).decode()}
    return {"body": data, "body_base64": None}
