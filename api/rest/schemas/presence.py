"""Process and WebSocket schemas."""

from typing import Annotated, Self

from pydantic import BaseModel, Field

from api.native.fields import rfc3339
from api.rest.schema_base import Time, in_seconds
from storage.domain.presence import (
    FailingObject,
    ProcessRole,
    ProcessSeen,
    SocketSeen,
    SubscriptionSeen,
)


class FailingObjectOut(BaseModel):
    """An object that a process could not serve. It serves the others, and retries this one."""

    task: Annotated[str, Field(description="The task: `queues`, `archive`, `deliver` and so on.")]
    object: Annotated[str, Field(description="The object, as in `queues/default/orders`.")]
    reason: Annotated[str, Field(description="The last error.")]
    failing_since: Time
    failures: Annotated[int, Field(description="Failed attempts since then.")]

    @classmethod
    def from_domain(cls, failing: FailingObject) -> Self:
        return cls(
            task=failing.task,
            object=failing.object,
            reason=failing.reason,
            failing_since=rfc3339(failing.since_ms),
            failures=failing.failures,
        )


class ProcessOut(BaseModel):
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

    @classmethod
    def from_domain(cls, seen: ProcessSeen) -> Self:
        return cls(
            id=seen.id,
            role=seen.role,
            host=seen.host,
            pid=seen.pid,
            version=seen.version,
            started_at=rfc3339(seen.started_at_ms),
            seen_at=rfc3339(seen.seen_at_ms),
            event_loop_lag_seconds=in_seconds(round(seen.event_loop_lag_ms)),
            sockets=seen.sockets,
            sessions=seen.sessions,
            failing=[FailingObjectOut.from_domain(failing) for failing in seen.failing],
        )


class ProcessList(BaseModel):
    """The processes of the deployment."""

    items: list[ProcessOut]


class SubscriptionOut(BaseModel):
    """A subscription of a client."""

    name: Annotated[str, Field(description="Name chosen by the client: `sub` in its frames.")]
    source: Annotated[str, Field(description="`queue:orders`, or `stream:clicks`.")]
    mode: Annotated[str, Field(description="`work`, `read` or `group`.")]
    group: str | None
    credit_messages: Annotated[int, Field(description="Remaining credit.")]
    credit_bytes: int

    @classmethod
    def from_domain(cls, seen: SubscriptionSeen) -> Self:
        return cls(
            name=seen.name,
            source=seen.source,
            mode=seen.mode,
            group=seen.group,
            credit_messages=seen.credit_messages,
            credit_bytes=seen.credit_bytes,
        )


class SocketOut(BaseModel):
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

    @classmethod
    def from_domain(cls, seen: SocketSeen) -> Self:
        since_ms = seen.connected_at_ms
        return cls(
            id=seen.id,
            process=seen.process,
            principal=seen.principal,
            address=seen.address,
            protocol=seen.protocol,
            connected_at=None if since_ms is None else rfc3339(since_ms),
            queued_bytes=seen.queued_bytes,
            subscriptions=[SubscriptionOut.from_domain(one) for one in seen.subscriptions],
        )


class SocketPage(BaseModel):
    """Sockets by id."""

    items: list[SocketOut]
    next_cursor: str | None
