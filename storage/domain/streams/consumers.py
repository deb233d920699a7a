"""Registered consumers of a stream and account settings: stored for API endpoints."""

from typing import Any

import msgspec


class RegisteredConsumer(msgspec.Struct, frozen=True, kw_only=True):
    """A named reader of a stream. `policy` is stored as text and has no effect."""

    stream_id: str
    name: str
    registered_at_ms: int
    tags: dict[str, str] = {}
    policy: str | None = None


AccountSettings = dict[str, Any]
"""Settings of a namespace, by name; each API endpoint has its own names."""
