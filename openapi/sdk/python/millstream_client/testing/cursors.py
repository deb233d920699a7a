"""Opaque cursors and tokens: JSON in base64."""

import base64
import binascii
from typing import Any

import msgspec

from millstream_client.testing.problems import Problem


def encode_cursor(*fields: Any) -> str:
    """Return an opaque text of fields."""
    return base64.urlsafe_b64encode(msgspec.json.encode(fields)).decode()


def decode_cursor(cursor: str) -> list[Any]:
    """Return the fields of a cursor. Raises Problem."""
    try:
        fields: list[Any] = msgspec.json.decode(base64.urlsafe_b64decode(cursor))
    except (binascii.Error, msgspec.DecodeError, ValueError):
        detail = "The cursor was not issued by this service."
        raise Problem("invalid_cursor", detail) from None
    return fields
