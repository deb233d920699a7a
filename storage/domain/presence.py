"""Presence: the processes of a deployment, and the clients that have a socket at one.

    every PRESENCE_HEARTBEAT_MS a process publishes itself and its sockets
    a reader sees what was published within PRESENCE_STALE_MS: a killed process is gone then

The information is a few seconds old; nothing is decided by it.
"""

from enum import StrEnum

import msgspec


class ProcessRole(StrEnum):
    """Role of a process."""

    API = "api"
    SWEEPER = "sweeper"
    DELIVERER = "deliverer"
    WORKER = "worker"


class LeaseStore(StrEnum):
    """Store of the lease of a leader of maintenance."""

    HOT_STORE = "hot_store"
    POSTGRES = "postgres"


class FailingObject(msgspec.Struct, frozen=True):
    """An object that a task of a process could not serve; the task continues with the others.

    `object` names it, as in `queues/orders`. `since_ms`: its first failure since the last success.
    """

    task: str
    object: str
    reason: str
    since_ms: int
    visited_at_ms: int
    failures: int = 1


class ProcessSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A process as it last published itself. `id` is unique to this run of it.

    A restart has another id. `sockets` are open connections, `sessions` those of clients, of which some may be
    disconnected temporarily. `failing`: the objects that its tasks cannot serve, the longest failing first;
    PRESENCE_FAILING_MAX at most. `leads`: the stores whose maintenance tasks a sweeper leads.
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
    failing: tuple[FailingObject, ...] = ()
    leads: tuple[LeaseStore, ...] = ()


class SubscriptionSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A client's subscription: its name, its source, and the remaining credit.

    `source` is for example `queue:orders` or `stream:clicks`.
    """

    name: str
    source: str
    mode: str
    group: str | None
    credit_messages: int
    credit_bytes: int


class SocketSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A client's session and its socket.

    `connected_at_ms` is None while it has none, and may reconnect. `queued_bytes`: bytes sent to it whose arrival is
    not confirmed.
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
