"""Registered consumers of a stream: stored for API endpoints."""

import msgspec


class RegisteredConsumer(msgspec.Struct, frozen=True, kw_only=True):
    """A named reader of a stream. `policy` is stored as text and has no effect."""

    stream_id: str
    name: str
    registered_at_ms: int
    tags: dict[str, str] = {}
    policy: str | None = None
