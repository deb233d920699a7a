"""How much of something a tenant may have, and how fast."""

import msgspec


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """What may pass in a second; None: no limit. `messages` and `bytes` are those that are sent or put.

    `burst_seconds`: so many seconds' worth may pass at once after a pause.
    """

    calls_per_second: float | None = None
    messages_per_second: float | None = None
    bytes_per_second: float | None = None
    burst_seconds: float = 1.0
