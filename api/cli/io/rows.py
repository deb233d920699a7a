"""Messages and records as rows, as the REST API shows them in JSON, and back.

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


class NotAnItem(ValueError):
    """A line that says no message or record."""


def delivery_row(delivery: Delivery) -> Row:
    """A delivery."""
    return _row(delivery, "body")


def record_row(record: Record) -> Row:
    """A record."""
    return _row(record, "data")


def _row(thing: Any, field: str) -> Row:
    """What is empty is left out, but for what it carries."""
    told = to_row(msgspec.structs.replace(thing, **{field: b""}))
    said = {name: value for name, value in told.items() if value not in ("", {}, None)}
    return said | _shown(getattr(thing, field), thing.content_type, field)


def _shown(payload: bytes, content_type: str, field: str) -> Row:
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
    """The payload of a row that the service gave, on one line for people."""
    if field not in row:
        return f"base64:{row.get(f'{field}_base64', '')}"
    value = row[field]
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


# ── Lines that are whole items ──


def parse_json(line: bytes) -> Any:
    """A JSON value. Raises NotAnItem."""
    try:
        return msgspec.json.decode(line)
    except ValueError as error:
        raise NotAnItem(f"it is not JSON: {error}") from None


def key_in(value: Any, field: str) -> str:
    """What a field of a JSON object says, as a key. Raises NotAnItem."""
    if not isinstance(value, dict) or value.get(field) is None:
        raise NotAnItem(f"it has no field {field!r}")
    found = value[field]
    return found if isinstance(found, str) else msgspec.json.encode(found).decode()


def _item(line: bytes, field: str) -> tuple[Mapping[str, Any], Any]:
    """A line's members, and what it carries."""
    told = parse_json(line)
    if not isinstance(told, dict):
        raise NotAnItem("it is not a JSON object")
    if field in told:
        return told, told[field]
    if f"{field}_base64" in told:
        try:
            return told, base64.b64decode(told[f"{field}_base64"], validate=True)
        except (TypeError, ValueError):
            raise NotAnItem(f"'{field}_base64' is not base64") from None
    raise NotAnItem(f"it has neither '{field}' nor '{field}_base64'")


def message_from(line: bytes) -> NewMessage:
    """A message as `queue peek -o ndjson` shows it. Raises NotAnItem."""
    told, body = _item(line, "body")
    return NewMessage(
        body,
        told.get("headers"),
        told.get("content_type", ""),
        told.get("group", ""),
        told.get("dedup_id", ""),
        told.get("delay_seconds"),
        told.get("ttl_seconds"),
        told.get("priority", 0),
    )


def record_from(line: bytes) -> NewRecord:
    """A record as `stream read -o ndjson` shows it. Raises NotAnItem."""
    told, data = _item(line, "data")
    return NewRecord(
        data,
        told.get("key", ""),
        told.get("headers"),
        told.get("content_type", ""),
        _event_time(told.get("event_time")),
    )


def _event_time(text: Any) -> Any:
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise NotAnItem(f"its event_time {text!r} is no time") from None
