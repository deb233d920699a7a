"""Readers of a stream that are known by name, and what an account has set: kept for front doors."""

from typing import Any

import msgspec


class RegisteredConsumer(msgspec.Struct, frozen=True, kw_only=True):
    """A named reader of a stream. `policy` is kept as text and is not in effect."""

    stream_id: str
    name: str
    registered_at_ms: int
    tags: dict[str, str] = {}
    policy: str | None = None


AccountSettings = dict[str, Any]
"""What a namespace has set, by name; each front door has names of its own."""
