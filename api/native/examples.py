"""Facts of an operation beside its route: an example, and the effect of a second call.

The module that declares an operation has them in its `EXAMPLES`, which `api.spec.examples` collects. Values that several
examples share are here.
"""

from enum import StrEnum
from typing import Any

import msgspec


class Repeat(StrEnum):
    """Effect of a second call.

    safe: changes nothing more. keyed: none, if both calls have the same Idempotency-Key.
    guarded: none, if the body has the field that identifies the call. unsafe: may do it twice.
    """

    SAFE = "safe"
    KEYED = "keyed"
    GUARDED = "guarded"
    UNSAFE = "unsafe"


class Example(msgspec.Struct, frozen=True):
    """Request at `path`, and its response.

    `before`: (method, path, body) of the requests it needs first. `repeat`: the effect of a second call of the operation,
    where its method does not determine it: a POST is unsafe. `guards`: fields of which one guards a repeat.
    """

    path: str
    request: Any = None
    status: int = 200
    answer: Any = None
    before: tuple[tuple[str, str, Any], ...] = ()
    repeat: Repeat | None = None
    guards: tuple[str, ...] = ()

    def repeat_by(self, method: str) -> Repeat:
        """Return the effect of a second call of the operation, which has this method."""
        if self.guards:
            return Repeat.GUARDED
        return self.repeat or (Repeat.UNSAFE if method == "post" else Repeat.SAFE)


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
