"""The frames of `millstream.v1`: what a WebSocket says, in both directions.

A WebSocket message is one frame or a list of frames, as JSON text (`millstream.v1.json`) or as MessagePack
(`millstream.v1.msgpack`), where bodies and data are bin. Fields are named and spelled as in REST. A frame with an
`id` is answered by one `ok` or `error` that carries the id; without one, only what goes wrong is told.

    client                                     server
    hello ─────────────────────────────────▶   welcome        within HELLO_MS_MAX of the upgrade
    subscribe ─────────────────────────────▶   ok, then messages or records as far as credit goes
    credit, ack, nack, release, extend, reject, give_up, unsubscribe, publish, ping
                                               ping ──▶ pong  any frame from the client counts as one
                                               bye            why the server closes, and whether to come back
"""

from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from api.native.messages import ReceivedMessageOut, VisibilitySeconds
from api.native.records import Moment, RecordOut
from storage.domain import limits
from storage.domain.streams.record_filter import Filter

JSON_PROTOCOL = "millstream.v1.json"
MSGPACK_PROTOCOL = "millstream.v1.msgpack"
PROTOCOLS = (JSON_PROTOCOL, MSGPACK_PROTOCOL)

Id = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=limits.PUSH_ID_CHARACTERS_MAX,
        description="Chosen by the client; the answer carries it.",
    ),
]
Sub = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=limits.PUSH_ID_CHARACTERS_MAX,
        description="The subscription's name, chosen by the client, one of a kind in its session.",
    ),
]
Seq = Annotated[
    int,
    Meta(ge=0, description="The number of the last frame with messages or records that arrived."),
]
Handles = Annotated[list[str], Meta(min_length=1, max_length=limits.SETTLEMENTS_MAX)]
Shard = Annotated[int, Meta(ge=0)]
Offset = Annotated[int, Meta(ge=0, le=limits.OFFSET_MAX)]


class Mode(StrEnum):
    """How a subscription reads.

    work: a queue's messages, each settled by its receipt handle. group: the shards that a consumer group assigns
    to this socket; acks commit. read: a stream from any position, for oneself.
    """

    WORK = "work"
    GROUP = "group"
    READ = "read"


class From(StrEnum):
    """Where a reading subscription starts without a position."""

    EARLIEST = "earliest"
    LATEST = "latest"


# ── From the client ──


class Client(msgspec.Struct, tag_field="type"):
    """What every frame from a client has: its `type`."""


class Resume(msgspec.Struct, frozen=True):
    """A session to go on with, and how far its client got."""

    session: str
    seq: Seq


class Hello(Client, tag="hello"):
    """The first frame. `token`: a credential, for browsers that can send no header. `client`: who says so, for logs."""

    token: str = ""
    client: Annotated[str, Meta(max_length=limits.PUSH_ID_CHARACTERS_MAX)] = ""
    resume: Resume | None = None


class CreditIn(msgspec.Struct, frozen=True):
    """How much more the client wants: messages or records, and bytes of their bodies or data."""

    messages: Annotated[int, Meta(ge=0, le=limits.CREDIT_MESSAGES_MAX)] = (
        limits.CREDIT_MESSAGES_DEFAULT
    )
    bytes: Annotated[int, Meta(ge=0, le=limits.CREDIT_BYTES_MAX)] = limits.CREDIT_BYTES_DEFAULT


class StartIn(msgspec.Struct, frozen=True, rename={"start": "from"}):
    """Where reading starts: one of them. `cursor`: as REST gives it, or a `records` frame; `offsets`: by shard."""

    start: From | None = None
    time: Annotated[Moment, Meta(description="What arrived then or later.")] | None = None
    cursor: str | None = None
    offsets: dict[int, Offset] | None = None


class Subscribe(Client, tag="subscribe"):
    """Begin to get messages of "queue:orders", or records of "stream:clicks"."""

    id: Id
    sub: Sub
    source: Annotated[str, Meta(pattern=r"^(queue|stream):[A-Za-z0-9_.-]{1,80}$")]
    mode: Mode | None = None
    group: Annotated[str, Meta(description="The consumer group of mode 'group'.")] = ""
    start: StartIn | None = None
    shard: Shard | None = None
    filter: Filter | None = None
    credit: CreditIn = CreditIn()
    visibility_timeout_seconds: VisibilitySeconds | None = None
    auto_extend: Annotated[
        bool,
        Meta(description="Keep what was delivered hidden for as long as the socket lives."),
    ] = False


class Credit(Client, tag="credit"):
    """Add credit. `seq`: so far everything arrived, and need not be kept for a resume."""

    sub: Sub
    messages: Annotated[int, Meta(ge=0, le=limits.CREDIT_MESSAGES_MAX)] = 0
    bytes: Annotated[int, Meta(ge=0, le=limits.CREDIT_BYTES_MAX)] = 0
    seq: Seq | None = None


class Ack(Client, tag="ack"):
    """Done: deliveries of a queue by their receipt handles; of a group's shard everything before offset `up_to`."""

    sub: Sub
    id: Id | None = None
    receipt_handles: Handles | None = None
    shard: Shard | None = None
    up_to: Offset | None = None


class Nack(Client, tag="nack"):
    """It failed: try again after `delay_seconds`, or as the queue's back-off says."""

    sub: Sub
    receipt_handles: Handles
    id: Id | None = None
    delay_seconds: VisibilitySeconds | None = None


class Release(Client, tag="release"):
    """Not tried: back at once."""

    sub: Sub
    receipt_handles: Handles
    id: Id | None = None


class Extend(Client, tag="extend"):
    """Still at work: hide it for so long from now."""

    sub: Sub
    receipt_handles: Handles
    visibility_timeout_seconds: VisibilitySeconds
    id: Id | None = None


class Reject(Client, tag="reject"):
    """Never again: to the dead letters."""

    sub: Sub
    receipt_handles: Handles
    id: Id | None = None
    reason: Annotated[str, Meta(max_length=limits.REASON_CHARACTERS_MAX)] = ""


class GiveUp(Client, tag="give_up"):
    """Shards that were `revoking` are finished with: others may have them now."""

    sub: Sub
    shards: Annotated[list[Shard], Meta(min_length=1, max_length=limits.SHARDS_MAX)]


class Publish(Client, tag="publish"):
    """Send messages to "queue:orders", or append records to "stream:clicks"; each item as in REST.

    `ok` comes when they are as durable as after the HTTP call. A repeat with the same idempotency key within ten
    minutes adds nothing.
    """

    id: Id
    to: Annotated[str, Meta(pattern=r"^(queue|stream):[A-Za-z0-9_.-]{1,80}$")]
    items: Annotated[list[msgspec.Raw], Meta(min_length=1, max_length=limits.BATCH_MESSAGES_MAX)]
    idempotency_key: Annotated[str, Meta(max_length=limits.IDEMPOTENCY_KEY_CHARACTERS_MAX)] = ""


class Unsubscribe(Client, tag="unsubscribe"):
    """End a subscription; what it has delivered and nobody settled is released."""

    id: Id
    sub: Sub


class ClientPing(Client, tag="ping"):
    """Is anybody there? Answered by `pong`."""


class ClientPong(Client, tag="pong"):
    """The answer to a ping. `seq` as in `credit`."""

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
    | Unsubscribe
    | ClientPing
    | ClientPong
)
Settling = Ack | Nack | Release | Extend | Reject


# ── From the server ──


class Server(msgspec.Struct, omit_defaults=True, tag_field="type"):
    """What every frame from the server has: its `type`."""


class PushLimits(msgspec.Struct, frozen=True):
    """What a session may ask for."""

    subscriptions_max: int = limits.SUBSCRIPTIONS_MAX
    credit_messages_max: int = limits.CREDIT_MESSAGES_MAX
    credit_bytes_max: int = limits.CREDIT_BYTES_MAX
    frame_bytes_max: int = limits.FRAME_BYTES_MAX


class Welcome(Server, tag="welcome"):
    """The answer to `hello`. `resumed`: the subscriptions of the session go on; otherwise it is a new one."""

    session: str
    resumed: bool
    heartbeat_seconds: float
    pong_timeout_seconds: float
    resume_seconds: float
    limits: PushLimits


class ServerOk(Server, tag="ok"):
    """Done. `results`: one for each item of a `publish` or handle of a settlement, as REST has them."""

    id: str
    results: list[Any] | UnsetType = UNSET
    failed: int | UnsetType = UNSET


class ServerError(Server, tag="error"):
    """Refused, or failed: a problem, as REST has it. `receipt_handles`: which deliveries it is about."""

    problem: dict[str, Any]
    id: str | UnsetType = UNSET
    sub: str | UnsetType = UNSET
    receipt_handles: list[str] | UnsetType = UNSET


class Messages(Server, tag="messages"):
    """Deliveries of a queue. `seq` counts the session's frames with messages or records, from 1."""

    sub: str
    seq: int
    messages: list[ReceivedMessageOut]


class Records(Server, tag="records"):
    """Records of one shard, in order; `next_offset` is where its reading goes on. Filtered ones are not among them,
    so that there may be none."""

    sub: str
    seq: int
    shard: int
    next_offset: int
    tip: int
    records: list[RecordOut]


class Gap(Server, tag="gap"):
    """Offsets [first, next) that this subscription will not get: 'expired' by retention, or a 'hole' never filled."""

    sub: str
    seq: int
    shard: int
    first: int
    next: int
    reason: str


class ShardEnded(Server, tag="shard_ended"):
    """A shard was split or merged, and all of it was delivered; its children follow."""

    sub: str
    seq: int
    shard: int
    children: list[int]


class AssignedPlace(msgspec.Struct, frozen=True):
    """A shard that is this socket's, and the offset that its records begin with."""

    shard: int
    offset: int


class Assigned(Server, tag="assigned"):
    """Shards of the group that are this socket's from now on."""

    sub: str
    generation: int
    shards: list[AssignedPlace]


class Revoking(Server, tag="revoking"):
    """Shards to be given up: nothing more of them comes. Ack what is done, then `give_up`, before the deadline."""

    sub: str
    shards: list[int]
    deadline_seconds: float


class Revoked(Server, tag="revoked"):
    """Shards that are this socket's no more: acks of theirs are refused."""

    sub: str
    shards: list[int]


class Paused(Server, tag="paused"):
    """Nothing comes for now: 'storage' is away, or the queue is 'paused'."""

    sub: str
    reason: str


class Resumed(Server, tag="resumed"):
    """It goes on."""

    sub: str


class ServerPing(Server, tag="ping"):
    """Is anybody there? To be answered within the pong timeout."""


class ServerPong(Server, tag="pong"):
    """The answer to a client's ping."""


class Bye(Server, tag="bye"):
    """The last frame. `code`: what the WebSocket is closed with; `after_seconds`: when to come back at the soonest."""

    code: int
    reason: str
    reconnect: bool
    after_seconds: float = 0.0


ServerFrame = (
    Welcome
    | ServerOk
    | ServerError
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
    """The codes that the server closes with. Below 4500 it is worth coming back, from 4500 on it is not."""

    NORMAL = 1000
    GOING_AWAY = 1001
    FRAME_TOO_LARGE = 1009
    INTERNAL_ERROR = 1011
    RESTART = 1012
    DRAINING = 4001
    HEARTBEAT_MISSED = 4002
    SLOW_CONSUMER = 4008
    TAKEN_OVER = 4010
    CREDENTIAL_ENDED = 4011
    CLOSED_BY_OPERATOR = 4012
    PROTOCOL_ERROR = 4500
    UNAUTHENTICATED = 4501
    HELLO_TIMEOUT = 4504
    TOO_MANY = 4509


def is_worth_coming_back(code: int) -> bool:
    """Whether a client that was closed with `code` should connect again, after a while."""
    return code not in (Close.NORMAL, Close.FRAME_TOO_LARGE) and code < Close.PROTOCOL_ERROR
