"""Processes and sockets on the wire."""

from typing import Annotated, Self

from pydantic import BaseModel, Field

from api.native.fields import rfc3339
from api.rest.schema_base import Time, in_seconds
from storage.domain.presence import ProcessRole, ProcessSeen, SocketSeen, SubscriptionSeen


class ProcessOut(BaseModel):
    """A process, as it was when it last said so, which it does every three seconds."""

    id: Annotated[str, Field(description="Of this life of it: a restart is another process.")]
    role: ProcessRole
    host: str
    pid: int
    version: str
    started_at: Time
    seen_at: Annotated[Time, Field(description="One that is silent for ten seconds is gone.")]
    event_loop_lag_seconds: Annotated[
        float, Field(description="How much too late its event loop was, when it last looked.")
    ]
    sockets: Annotated[int, Field(description="WebSocket connections that are open.")]
    sessions: Annotated[
        int, Field(description="Of clients, with a socket or away from it for a moment.")
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
        )


class ProcessList(BaseModel):
    """The processes of the deployment."""

    items: list[ProcessOut]


class SubscriptionOut(BaseModel):
    """What a client has asked for over its socket."""

    name: Annotated[str, Field(description="The client's word for it: `sub` in its frames.")]
    source: Annotated[str, Field(description="`queue:orders`, or `stream:clicks`.")]
    mode: Annotated[str, Field(description="`work`, `read` or `group`.")]
    group: str | None
    credit_messages: Annotated[int, Field(description="How many more it has asked for.")]
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
    """A client's session, and the socket that it has."""

    id: str
    process: Annotated[
        str, Field(description="The process that holds it, as `/v1/processes` has it.")
    ]
    principal: Annotated[str, Field(description="Whose credential it showed.")]
    address: Annotated[str, Field(description="Of the connection's other end; empty without one.")]
    protocol: str
    connected_at: Annotated[
        Time | None,
        Field(description="Null while its connection is broken, and it may come back."),
    ]
    queued_bytes: Annotated[
        int, Field(description="Sent, and not heard to have arrived: kept to be sent again.")
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
