"""Process and WebSocket schemas."""

from typing import Annotated, Any, Self

from pydantic import BaseModel, Field

from api.rest.field_map import Mapped
from api.rest.schema_base import ListPage, Time, in_seconds
from storage.domain.presence import (
    LeaseStore,
    ProcessRole,
    ProcessSeen,
)


class FailingObjectOut(Mapped):
    """An object that a process could not serve. It serves the others, and retries this one."""

    renamed = {"failing_since": "since_ms"}

    task: Annotated[str, Field(description="The task: `queues`, `archive`, `deliver` and so on.")]
    object: Annotated[str, Field(description="The object, as in `queues/default/orders`.")]
    reason: Annotated[str, Field(description="The last error.")]
    failing_since: Time
    failures: Annotated[int, Field(description="Failed attempts since then.")]


class ProcessOut(Mapped):
    """A process, as of its last heartbeat (every three seconds)."""

    id: Annotated[
        str, Field(description="Id of this run of the process: it changes with a restart.")
    ]
    role: ProcessRole
    host: str
    pid: int
    version: str
    started_at: Time
    seen_at: Annotated[
        Time,
        Field(
            description="Last heartbeat. A process without a heartbeat for ten seconds is removed."
        ),
    ]
    event_loop_lag_seconds: Annotated[float, Field(description="Last measured event-loop lag.")]
    sockets: Annotated[int, Field(description="Open WebSocket connections.")]
    sessions: Annotated[
        int, Field(description="WebSocket sessions, including briefly disconnected ones.")
    ]
    failing: Annotated[
        list[FailingObjectOut],
        Field(description="Objects that it cannot serve, at most 20, longest failing first."),
    ]
    leads: Annotated[
        list[LeaseStore],
        Field(
            description="Stores whose maintenance tasks it leads: those of `hot_store` continue while Postgres is unreachable."
        ),
    ]

    @classmethod
    def from_domain(cls, value: ProcessSeen, **others: Any) -> Self:
        lag_seconds = in_seconds(round(value.event_loop_lag_ms))
        return super().from_domain(value, event_loop_lag_seconds=lag_seconds, **others)


class ProcessList(BaseModel):
    """The processes of the deployment."""

    items: list[ProcessOut]


class SubscriptionOut(Mapped):
    """A subscription of a client."""

    name: Annotated[str, Field(description="Name chosen by the client: `sub` in its frames.")]
    source: Annotated[str, Field(description="`queue:orders`, or `stream:clicks`.")]
    mode: Annotated[str, Field(description="`work`, `read` or `group`.")]
    group: str | None
    credit_messages: Annotated[int, Field(description="Remaining credit.")]
    credit_bytes: int


class SocketOut(Mapped):
    """A client session and its connection."""

    id: str
    process: Annotated[
        str, Field(description="Process that holds the connection, as in `/v1/processes`.")
    ]
    principal: Annotated[str, Field(description="Name of its principal.")]
    address: Annotated[str, Field(description="Remote address; empty while disconnected.")]
    protocol: str
    connected_at: Annotated[
        Time | None,
        Field(description="Null while disconnected; the session can still be resumed."),
    ]
    queued_bytes: Annotated[
        int, Field(description="Sent but not yet confirmed: kept for retransmission.")
    ]
    subscriptions: list[SubscriptionOut]


class SocketPage(ListPage[SocketOut]):
    """Sockets by id."""
