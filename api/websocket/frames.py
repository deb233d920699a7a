"""Frames of the WebSocket protocol `millstream.v1`, in both directions.

A WebSocket message is one frame or a list of frames, as JSON text (`millstream.v1.json`) or as MessagePack
(`millstream.v1.msgpack`), where bodies and data are bin. Fields are named and spelled as in REST. A frame with an
`id` is answered by one `ok` or `error` that carries the id; without one, only failures are reported.

    client                                     server
    hello ─────────────────────────────────▶   welcome        within HELLO_MS_MAX of the upgrade
    subscribe ─────────────────────────────▶   ok, then messages or records as far as credit goes
    credit, ack, nack, release, extend, reject, give_up, unsubscribe, publish, ping
    request ───────────────────────────────▶   reply          when all replies are there, or the deadline is past
    reply ─────────────────────────────────▶   ok             to a received message that is a request
                                               ping ──▶ pong  any frame from the client counts as one
                                               bye            why the server closes, and whether to reconnect
"""

from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from api.native.messages import NackDelaySeconds, ReceivedMessageOut, VisibilitySeconds
from api.native.records import RecordOut, StartTime
from api.native.settlements import (
    Details,
    Reason,
    ReplyOut,
    ReplyTtlSeconds,
    RequestRepliesMax,
    TimeoutSeconds,
)
from api.websocket.record_filters import FilterIn
from storage.domain import limits

JSON_PROTOCOL = "millstream.v1.json"
MSGPACK_PROTOCOL = "millstream.v1.msgpack"
PROTOCOLS = (JSON_PROTOCOL, MSGPACK_PROTOCOL)

Id = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=limits.PUSH_ID_CHARACTERS_MAX,
        description="Chosen by the client; returned in the answer.",
    ),
]
Sub = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=limits.PUSH_ID_CHARACTERS_MAX,
        description="Name of the subscription, chosen by the client and unique in its session.",
    ),
]
Seq = Annotated[
    int,
    Meta(ge=0, description="Sequence number of the last received frame with messages or records."),
]
Handles = Annotated[list[str], Meta(min_length=1, max_length=limits.SETTLEMENTS_MAX)]
Shard = Annotated[int, Meta(ge=0)]
Offset = Annotated[int, Meta(ge=0, le=limits.OFFSET_MAX)]
IdempotencyKey = Annotated[str, Meta(max_length=limits.IDEMPOTENCY_KEY_CHARACTERS_MAX)]


class Mode(StrEnum):
    """Read mode of a subscription.

    work: a queue's messages, each settled by its receipt handle. group: the shards that a consumer group assigns
    to this socket; acks commit. read: a stream from any position, independent of other readers.
    """

    WORK = "work"
    GROUP = "group"
    READ = "read"


class From(StrEnum):
    """Start of a reading subscription that has no position."""

    EARLIEST = "earliest"
    LATEST = "latest"


# ── From the client ──


class ClientFrameBase(msgspec.Struct, tag_field="type", forbid_unknown_fields=True):
    """Base of the client's frames, with their `type`."""


class Resume(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The session to resume, and the last frame that its client received."""

    session: str
    seq: Seq


class Hello(ClientFrameBase, tag="hello"):
    """The first frame.

    `token`: a credential, for browsers, which cannot send headers. `client`: the client's name, for logs.
    """

    token: str = ""
    client: Annotated[str, Meta(max_length=limits.PUSH_ID_CHARACTERS_MAX)] = ""
    resume: Resume | None = None


class CreditIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Credit to add: messages or records, and bytes of their bodies or data."""

    messages: Annotated[int, Meta(ge=0, le=limits.CREDIT_MESSAGES_MAX)] = (
        limits.CREDIT_MESSAGES_DEFAULT
    )
    bytes: Annotated[int, Meta(ge=0, le=limits.CREDIT_BYTES_MAX)] = limits.CREDIT_BYTES_DEFAULT


class StartIn(msgspec.Struct, frozen=True, rename={"start": "from"}, forbid_unknown_fields=True):
    """Start position: at most one of the fields.

    `cursor`: a cursor from REST or from a `records` frame. `offsets`: one offset for each shard; `stream_id`, from the `ok`
    of an earlier subscription, is the stream that they belong to.
    """

    start: From | None = None
    time: StartTime | None = None
    cursor: str | None = None
    offsets: dict[int, Offset] | None = None
    stream_id: Annotated[str, Meta(pattern=r"^[0-9a-f]{16}$")] | None = None


class Subscribe(ClientFrameBase, tag="subscribe"):
    """Subscribe to messages of "queue:orders" or records of "stream:clicks".

    "stream:topic:orders" has the messages that are published to a topic.
    """

    id: Id
    sub: Sub
    source: Annotated[str, Meta(pattern=r"^(queue|stream|stream:topic):[A-Za-z0-9_.-]{1,80}$")]
    mode: Mode | None = None
    group: Annotated[str, Meta(description="The consumer group of mode 'group'.")] = ""
    start: StartIn | None = None
    shard: Shard | None = None
    filter: FilterIn | None = None
    credit: CreditIn = CreditIn()
    visibility_timeout_seconds: VisibilitySeconds | None = None
    auto_extend: Annotated[
        bool,
        Meta(
            description="Extend the visibility timeout of deliveries while the connection is "
            "open. It is three seconds at least."
        ),
    ] = False


class Credit(ClientFrameBase, tag="credit"):
    """Add credit. `seq`: up to here everything arrived, and need not be kept for a resume."""

    sub: Sub
    messages: Annotated[int, Meta(ge=0, le=limits.CREDIT_MESSAGES_MAX)] = 0
    bytes: Annotated[int, Meta(ge=0, le=limits.CREDIT_BYTES_MAX)] = 0
    seq: Seq | None = None
    id: Id | None = None


class Ack(ClientFrameBase, tag="ack"):
    """Acknowledge deliveries.

    For a queue: by their receipt handles. For a group's shard: everything before offset `up_to`. `reply`: the reply to
    the one message that is acknowledged; it is sent first.
    """

    sub: Sub
    id: Id | None = None
    receipt_handles: Handles | None = None
    shard: Shard | None = None
    up_to: Offset | None = None
    reply: msgspec.Raw | UnsetType = UNSET


class Nack(ClientFrameBase, tag="nack"):
    """Report failed deliveries: retry after `delay_seconds`, or after the queue's back-off."""

    sub: Sub
    receipt_handles: Handles
    id: Id | None = None
    delay_seconds: NackDelaySeconds | None = None
    reason: Reason = ""
    details: Details = ""


class Release(ClientFrameBase, tag="release"):
    """Return deliveries that were not tried; they are available again immediately."""

    sub: Sub
    receipt_handles: Handles
    id: Id | None = None


class Extend(ClientFrameBase, tag="extend"):
    """Extend deliveries in progress: hide them for this duration from now."""

    sub: Sub
    receipt_handles: Handles
    visibility_timeout_seconds: VisibilitySeconds
    id: Id | None = None


class Reject(ClientFrameBase, tag="reject"):
    """Reject deliveries permanently: move them to the dead letters."""

    sub: Sub
    receipt_handles: Handles
    id: Id | None = None
    reason: Reason = ""
    details: Details = ""


class GiveUp(ClientFrameBase, tag="give_up"):
    """Give up `revoking` shards that are finished, so that other members get them."""

    sub: Sub
    shards: Annotated[list[Shard], Meta(min_length=1, max_length=limits.SHARDS_MAX)]
    id: Id | None = None


class Publish(ClientFrameBase, tag="publish"):
    """Send items to "queue:orders", "stream:clicks" or "topic:prices".

    Each item is as in REST. `ok` comes when they are as durable as after the HTTP call. A repeat with the same
    idempotency key within ten minutes adds nothing.
    """

    id: Id
    to: Annotated[str, Meta(pattern=r"^(queue|stream|topic):[A-Za-z0-9_.-]{1,80}$")]
    items: Annotated[list[msgspec.Raw], Meta(min_length=1, max_length=limits.BATCH_MESSAGES_MAX)]
    idempotency_key: IdempotencyKey = ""


class Request(ClientFrameBase, tag="request"):
    """Send a message to "queue:quotes" or publish it to "topic:offers", and wait for replies.

    `message` is as in REST, without a delay and a time to live: it expires at the deadline. `reply` comes when there are
    `replies_max` replies or the deadline has passed. The wait ends with the socket: a repeat with the same idempotency
    key sends nothing, and waits for the same replies.
    """

    id: Id
    to: Annotated[str, Meta(pattern=r"^(queue|topic):[A-Za-z0-9_.-]{1,80}$")]
    message: msgspec.Raw
    timeout_seconds: TimeoutSeconds = limits.REQUEST_TIMEOUT_MS_DEFAULT // limits.SECOND_MS
    replies_max: RequestRepliesMax = 1
    reply_ttl_seconds: ReplyTtlSeconds = limits.REPLY_TTL_MS_DEFAULT // limits.SECOND_MS
    idempotency_key: IdempotencyKey = ""


class ClientReply(ClientFrameBase, tag="reply"):
    """Reply to a request, whose message is acknowledged afterwards.

    A repeat with the same idempotency key adds nothing.
    """

    id: Id
    reply: msgspec.Raw
    idempotency_key: IdempotencyKey = ""


class Unsubscribe(ClientFrameBase, tag="unsubscribe"):
    """End a subscription; its deliveries that are not settled are released."""

    id: Id
    sub: Sub


class ClientPing(ClientFrameBase, tag="ping"):
    """Liveness check of the server, answered by `pong`."""

    id: Id | None = None


class ClientPong(ClientFrameBase, tag="pong"):
    """Answer to a ping. `seq` as in `credit`."""

    seq: Seq | None = None


ClientFrame = (
    Hello
    | Subscribe
    | Credit
    | Ack
    | Nack
    | Release
    | Extend
    | Reject
    | GiveUp
    | Publish
    | Request
    | ClientReply
    | Unsubscribe
    | ClientPing
    | ClientPong
)
Settling = Ack | Nack | Release | Extend | Reject
Sending = Publish | Request | ClientReply


# ── From the server ──


class ServerFrameBase(msgspec.Struct, omit_defaults=True, tag_field="type"):
    """Base of the server's frames, with their `type`."""


class PushLimits(msgspec.Struct, frozen=True):
    """Limits of a session."""

    subscriptions_max: int = limits.SUBSCRIPTIONS_MAX
    credit_messages_max: int = limits.CREDIT_MESSAGES_MAX
    credit_bytes_max: int = limits.CREDIT_BYTES_MAX
    frame_bytes_max: int = limits.FRAME_BYTES_MAX


class Welcome(ServerFrameBase, tag="welcome"):
    """Answer to `hello`.

    `resumed`: true if the session was resumed with its subscriptions; otherwise the session is new.
    """

    session: str
    resumed: bool
    heartbeat_seconds: float
    pong_timeout_seconds: float
    resume_seconds: float
    limits: PushLimits


class ServerOk(ServerFrameBase, tag="ok"):
    """Success. `results`: as in REST, one for each item of a `publish` or handle settled.

    `stream_id`: of a subscription to a stream, to be sent with `offsets` when subscribing again.
    """

    id: str
    results: list[Any] | UnsetType = UNSET
    failed: int | UnsetType = UNSET
    stream_id: str | UnsetType = UNSET


class ServerError(ServerFrameBase, tag="error"):
    """A request was refused or failed; `problem` is as in REST.

    `receipt_handles`: the deliveries that it concerns.
    """

    problem: dict[str, Any]
    id: str | UnsetType = UNSET
    sub: str | UnsetType = UNSET
    receipt_handles: list[str] | UnsetType = UNSET


class ServerReply(ServerFrameBase, tag="reply"):
    """Answer to a `request`: its replies, in the order in which they were accepted.

    `request`: the token with which REST returns them again. `timed_out`: the deadline passed without a reply.
    """

    id: str
    request: str
    replies: list[ReplyOut]
    complete: bool
    timed_out: bool


class Messages(ServerFrameBase, tag="messages"):
    """Deliveries of a queue.

    `seq` counts the session's frames with messages or records, from 1.
    """

    sub: str
    seq: int
    messages: list[ReceivedMessageOut]


class Records(ServerFrameBase, tag="records"):
    """Records of one shard, in order.

    `next_offset` is where reading continues. Records that the filter excludes are left out, so the list may be empty.
    """

    sub: str
    seq: int
    shard: int
    next_offset: int
    tip: int
    records: list[RecordOut]


class Gap(ServerFrameBase, tag="gap"):
    """Offsets [first, next) that this subscription will not receive.

    `reason`: 'expired' by retention; 'failover', without a record that was acknowledged; or a 'hole', whose records, if there
    were any, are lost.
    """

    sub: str
    seq: int
    shard: int
    first: int
    next: int
    reason: str


class ShardEnded(ServerFrameBase, tag="shard_ended"):
    """A shard was split or merged, and all of it was delivered; its children follow."""

    sub: str
    seq: int
    shard: int
    children: list[int]


class AssignedPlace(msgspec.Struct, frozen=True):
    """A shard that is assigned to this socket, and the offset where its records begin."""

    shard: int
    offset: int


class Assigned(ServerFrameBase, tag="assigned"):
    """Shards of the group that are assigned to this socket from now on."""

    sub: str
    generation: int
    shards: list[AssignedPlace]


class Revoking(ServerFrameBase, tag="revoking"):
    """Shards to give up; no more of their records are delivered.

    Acknowledge what is done, then send `give_up`, before the deadline.
    """

    sub: str
    shards: list[int]
    deadline_seconds: float


class Revoked(ServerFrameBase, tag="revoked"):
    """Shards that are no longer assigned to this socket: their acks are refused."""

    sub: str
    shards: list[int]


class Paused(ServerFrameBase, tag="paused"):
    """Delivery is paused: 'storage' is unreachable, or the 'queue' or 'group' is paused."""

    sub: str
    reason: str


class Resumed(ServerFrameBase, tag="resumed"):
    """Delivery has resumed."""

    sub: str


class ServerPing(ServerFrameBase, tag="ping"):
    """Liveness check of the client, to be answered within the pong timeout."""


class ServerPong(ServerFrameBase, tag="pong"):
    """Answer to a client's ping."""


class Bye(ServerFrameBase, tag="bye"):
    """The last frame.

    `code`: the close code of the WebSocket. `after_seconds`: the earliest time to reconnect, from now.
    """

    code: int
    reason: str
    reconnect: bool
    after_seconds: float = 0.0


ServerFrame = (
    Welcome
    | ServerOk
    | ServerError
    | ServerReply
    | Messages
    | Records
    | Gap
    | ShardEnded
    | Assigned
    | Revoking
    | Revoked
    | Paused
    | Resumed
    | ServerPing
    | ServerPong
    | Bye
)


class Close:
    """Close codes of the server. Clients should reconnect below 4500, and not from 4500 on."""

    NORMAL = 1000
    GOING_AWAY = 1001
    FRAME_TOO_LARGE = 1009
    INTERNAL_ERROR = 1011
    RESTART = 1012
    DRAINING = 4001
    HEARTBEAT_MISSED = 4002
    SLOW_CONSUMER = 4008
    SUPERSEDED = 4010
    CREDENTIAL_ENDED = 4011
    CLOSED_BY_OPERATOR = 4012
    PROTOCOL_ERROR = 4500
    UNAUTHENTICATED = 4501
    HELLO_TIMEOUT = 4504
    TOO_MANY = 4509


def is_worth_coming_back(code: int) -> bool:
    """Return whether a client closed with `code` should reconnect after a delay."""
    return code not in (Close.NORMAL, Close.FRAME_TOO_LARGE) and code < Close.PROTOCOL_ERROR
