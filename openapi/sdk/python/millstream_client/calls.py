"""One API call: its request, how its response is decoded, and the effect of a repeat.

Nothing is sent here. The generated core has one function per operation that returns a call; a client sends it:

    from millstream_client.core.api.queues.get_queue_stats import get_queue_stats

    stats = client.call(get_queue_stats("orders"))
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import httpx

from millstream_client.core.tables import GUARDS, REPEATS

IDEMPOTENCY_KEY = "Idempotency-Key"

T = TypeVar("T")


@dataclass(frozen=True)
class Call(Generic[T]):
    """A call. `read` decodes a response with a 2xx status.

    The body is `json`, any value with a JSON form, or `content`. `wait_s` is how long the server waits for something to
    happen, and `guarded` marks a body that identifies the call, if neither is visible in `json` or `params`.
    """

    operation: str
    method: str
    path: str
    read: Callable[[httpx.Response], T]
    params: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    json: Any = None
    content: Any = None
    wait_s: float = 0.0
    guarded: bool = False

    def __post_init__(self) -> None:
        if hasattr(self.content, "read"):  # a file can be sent once, and a call more often
            object.__setattr__(self, "content", self.content.read())

    @property
    def may_repeat(self) -> bool:
        """Return whether a repeat has no further effect, so that it may follow an unknown outcome."""
        repeat = REPEATS[self.operation]
        if repeat == "keyed":
            return bool(self.headers.get(IDEMPOTENCY_KEY))
        if repeat == "guarded":
            return self.guarded or any(self._said(name) for name in GUARDS[self.operation])
        return repeat == "safe"

    @property
    def patience_s(self) -> float:
        """Return how long the server may wait before it responds."""
        told = self.params.get("wait_seconds") or self._said("wait_seconds")
        return self.wait_s or float(told or 0)

    def _said(self, name: str) -> Any:
        value = self.json.get(name) if isinstance(self.json, dict) else None
        return None if value == "" else value
