"""What the two stores say of themselves, for who looks after them."""

import msgspec


class SlowCommand(msgspec.Struct, frozen=True):
    """A command that took long. Only what it is called: its arguments hold what callers wrote."""

    at_ms: int
    took_us: int
    command: str


class HotFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Of Valkey or Redis. `memory_max_bytes` 0: no limit. `aof_ok`: what it acknowledges is on its disk. `evicted_keys`:
    dropped for room, and any is a message lost."""

    flavor: str
    version: str
    role: str
    uptime_s: int
    memory_used_bytes: int
    memory_max_bytes: int
    fragmentation: float
    clients: int
    commands_per_second: int
    keys: int
    aof_bytes: int
    aof_ok: bool
    evicted_keys: int


class PostgresFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Of Postgres; `connections` of all its clients."""

    version: str
    uptime_s: int
    database_bytes: int
    connections: int
    connections_max: int
    longest_transaction_s: float
