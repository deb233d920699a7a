"""Conversion of messages and records to rows, in the JSON form of the REST API, and back.

stored bytes               content type          in a row
a JSON value               application/json      "body": that value
UTF-8 text                 any other             "body": string
anything else              any                   "body_base64"
"""

import base64
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from api.cli.shell.output import Row, to_row
from millstream_client import NewMessage, NewRecord, Record
from millstream_client.messages import Delivery

JSON = "application/json"


class InvalidInputLine(ValueError):
    """The line is not a message or record."""


def delivery_row(delivery: Delivery) -> Row:
    """Return a delivery as a row."""
    return _row(delivery, "body")


def record_row(record: Record) -> Row:
    """Return a record as a row."""
    return _row(record, "data")


def _row(thing: Any, field: str) -> Row:
    """Return a row without empty fields, except the payload."""
    values = to_row(msgspec.structs.replace(thing, **{field: b""}))
    fields = {name: value for name, value in values.items() if value not in ("", {}, None)}
    return fields | _payload_field(getattr(thing, field), thing.content_type, field)


def _payload_field(payload: bytes, content_type: str, field: str) -> Row:
    if content_type.partition(";")[0].strip().lower() == JSON:
        try:
            return {field: msgspec.json.decode(payload)}
        except ValueError:
            pass
    try:
        return {field: payload.decode()}
    except UnicodeDecodeError:
        return {f"{field}_base64": base64.b64encode(payload).decode()}


def payload_text(row: Row, field: str) -> str:
    """Return the payload of a row of the service as one line of text."""
    if field not in row:
        return f"base64:{row.get(f'{field}_base64', '')}"
    value = row[field]
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


# ── Lines that are whole items ──


def parse_json(line: bytes) -> Any:
    """Parse a JSON value. Raises InvalidInputLine."""
    try:
        return msgspec.json.decode(line)
    except ValueError as error:
        raise InvalidInputLine(f"invalid JSON: {error}") from None


def key_in(value: Any, field: str) -> str:
    """Return the value of a field of a JSON object, as a key. Raises InvalidInputLine."""
    if not isinstance(value, dict) or value.get(field) is None:
        raise InvalidInputLine(f"field {field!r} is missing")
    key = value[field]
    return key if isinstance(key, str) else msgspec.json.encode(key).decode()


def _item(line: bytes, field: str) -> tuple[Mapping[str, Any], Any]:
    """Parse a line into its members and its payload."""
    members = parse_json(line)
    if not isinstance(members, dict):
        raise InvalidInputLine("not a JSON object")
    if field in members:
        return members, members[field]
    if f"{field}_base64" in members:
        try:
            return members, base64.b64decode(members[f"{field}_base64"], validate=True)
        except (TypeError, ValueError):
            raise InvalidInputLine(f"'{field}_base64' is not valid base64") from None
    raise InvalidInputLine(f"'{field}' or '{field}_base64' is required")


def message_from(line: bytes) -> NewMessage:
    """Parse a message in the format of `queue peek -o ndjson`. Raises InvalidInputLine."""
    members, body = _item(line, "body")
    return NewMessage(
        body,
        members.get("headers"),
        members.get("content_type", ""),
        members.get("group", ""),
        members.get("dedup_id", ""),
        members.get("delay_seconds"),
        members.get("ttl_seconds"),
        members.get("priority", 0),
    )


def record_from(line: bytes) -> NewRecord:
    """Parse a record in the format of `stream read -o ndjson`. Raises InvalidInputLine."""
    members, data = _item(line, "data")
    return NewRecord(
        data,
        members.get("key", ""),
        members.get("headers"),
        members.get("content_type", ""),
        _event_time(members.get("event_time")),
    )


def _event_time(text: Any) -> Any:
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise InvalidInputLine(f"event_time {text!r} is not a valid time") from None
