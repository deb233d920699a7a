"""Who is there: the processes of a deployment, and the clients that hold a socket of one.

    a process says, every PRESENCE_BEAT_MS: I am here, and these are my sockets
    who looks sees what was said within PRESENCE_STALE_MS: a killed process is gone then

What is seen is a few seconds old and decides nothing.
"""

from enum import StrEnum

import msgspec


class ProcessRole(StrEnum):
    """What a process does."""

    API = "api"
    SWEEPER = "sweeper"
    DELIVERER = "deliverer"
    WORKER = "worker"


class ProcessSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A process, as it was when it last said so. `id` is of this life of it: a restart is another one.

    `sockets` are connections that are open, `sessions` those of clients, of which some may be away for a moment.
    """

    id: str
    role: ProcessRole
    host: str
    pid: int
    version: str
    started_at_ms: int
    event_loop_lag_ms: float = 0
    sockets: int = 0
    sessions: int = 0
    seen_at_ms: int = 0


class SubscriptionSeen(msgspec.Struct, frozen=True, kw_only=True):
    """What a client has asked for: the name it gave that, `queue:orders` or `stream:clicks`, and how much it still wants."""

    name: str
    source: str
    mode: str
    group: str | None
    credit_messages: int
    credit_bytes: int


class SocketSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A client's session and the socket it has; `connected_at_ms` is None while it has none, and may come back.

    `queued_bytes`: of what was sent to it, and has not been heard to have arrived.
    """

    id: str
    process: str
    principal: str
    namespace: str
    address: str
    protocol: str
    connected_at_ms: int | None
    queued_bytes: int
    subscriptions: tuple[SubscriptionSeen, ...] = ()
