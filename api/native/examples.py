"""Form of the OpenAPI document's examples, and values that several of them share.

The module that declares an operation has its example; `api.spec.examples` collects them.
"""

from typing import Any

import msgspec


class Example(msgspec.Struct, frozen=True):
    """Request at `path`, and its response.

    `before`: (method, path, body) of the requests it needs first.
    """

    path: str
    request: Any = None
    status: int = 200
    answer: Any = None
    before: tuple[tuple[str, str, Any], ...] = ()


MESSAGE_ID = "1c7e4a90-5b3d-8f21-a6c0-000000000007"
CREATED = {"created": True, "dry_run": False, "changes": []}
"""Outcome of a PUT that created its object."""
AT = "2026-01-31T12:00:00.000Z"
LATER = "2026-01-31T12:00:30.000Z"
PROCESS_ID = "c0a81f6e2d93b574"
BROWSED = {
    "id": MESSAGE_ID,
    "offset": 2,
    "state": "ready",
    "body": "hello",
    "sent_at": AT,
    "receive_count": 0,
    "failures": 0,
    "crash_count": 0,
}
RECORD = {"offset": 0, "data": {"page": "/"}, "key": "user-1", "arrival_time": AT}
STREAM_ID = "0c5ad1f7d2b94e63"
MEMBERSHIP = {
    "member": "bob",
    "generation": 1769860800004,
    "assigned": [{"shard": 1, "committed": None, "position": 0}],
    "revoked": [],
    "heartbeat_seconds": 5,
}
KEY_ID = "0123456789AB"
API_KEY = "msk_0123456789AB_0123456789abcdefghijklmnopqrstuv2xeBay"
GRANT = {"effect": "allow", "actions": ["queue:send"], "resources": ["orders-*"]}
RATES = {
    "calls_per_second": 100,
    "messages_per_second": None,
    "bytes_per_second": None,
    "burst_seconds": 1,
}
