"""Status of the two stores, for operators."""

import msgspec


class SlowCommand(msgspec.Struct, frozen=True):
    """A slow command, by name only: its arguments contain data of callers."""

    at_ms: int
    took_us: int
    command: str


class HotFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of Valkey or Redis.

    `memory_max_bytes` 0: no limit. `aof_ok`: acknowledged writes are on its disk. `evicted_keys`: evicted for lack of
    memory; each is a lost message.
    """

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


class HotConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of Valkey or Redis on which durability depends, and their effect.

    `redis_version`: the version of Redis with which it is compatible. `fsync` and `eviction_policy` are None where
    the server does not report them.
    """

    flavor: str
    version: str
    redis_version: str
    is_append_only: bool
    last_append: str
    fsync: str | None
    eviction_policy: str | None


class HotNode(msgspec.Struct, frozen=True, kw_only=True):
    """Condition of one server of the hot store.

    `primary` is the address of the server that it copies, empty for a primary. `report` is None if it does not answer.
    """

    address: str
    primary: str = ""
    report: "HotReport | None" = None


class HotReport(msgspec.Struct, frozen=True, kw_only=True):
    """Answers of one server of the hot store.

    `memory_max_bytes` 0: no limit. `is_linked`: a replica receives what its primary writes.
    """

    configuration: HotConfiguration
    memory_used_bytes: int
    memory_max_bytes: int
    time_ms: int
    is_linked: bool = True


class PostgresFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of Postgres; `connections` of all its clients."""

    version: str
    uptime_s: int
    database_bytes: int
    connections: int
    connections_max: int
    longest_transaction_s: float
