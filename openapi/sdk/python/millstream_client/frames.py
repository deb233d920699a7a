"""Frames of `millstream.v1.msgpack` that the service sends."""

from typing import Any

import msgspec

from millstream_client import requests
from millstream_client.messages import Delivery
from millstream_client.records import Record

PROTOCOL = "millstream.v1.msgpack"


class Frame(msgspec.Struct, tag_field="type"):
    """A frame of the service."""


class Welcome(Frame, tag="welcome"):
    """Answer to `hello`."""

    session: str
    resumed: bool
    heartbeat_seconds: float
    pong_timeout_seconds: float
    limits: dict[str, int]


class Ok(Frame, tag="ok"):
    """Success, with one result per item if there are items."""

    id: str
    results: list[dict[str, Any]] = []
    stream_id: str = ""


class Error(Frame, tag="error"):
    """A request was rejected or failed."""

    problem: dict[str, Any]
    id: str = ""
    sub: str = ""
    receipt_handles: list[str] = []


class Reply(Frame, tag="reply"):
    """Replies to a request, all that it will have."""

    id: str
    replies: list[requests.Reply]


class Messages(Frame, tag="messages"):
    """Deliveries of a queue."""

    sub: str
    seq: int
    messages: list[Delivery]


class Records(Frame, tag="records"):
    """Records of one shard, in order."""

    sub: str
    seq: int
    shard: int
    next_offset: int
    tip: int
    records: list[Record]


class GapTold(Frame, tag="gap"):
    """Offsets [first, next) that will not be delivered."""

    sub: str
    seq: int
    shard: int
    first: int
    next: int
    reason: str


class ShardEnded(Frame, tag="shard_ended"):
    """All records of a shard were delivered."""

    sub: str
    seq: int
    shard: int
    children: list[int]


class AssignedPlace(msgspec.Struct):
    """An assigned shard, and the first offset of its records."""

    shard: int
    offset: int


class Assigned(Frame, tag="assigned"):
    """Shards that are assigned to this client from now on."""

    sub: str
    generation: int
    shards: list[AssignedPlace]


class Revoking(Frame, tag="revoking"):
    """Shards to release."""

    sub: str
    shards: list[int]
    deadline_seconds: float


class Revoked(Frame, tag="revoked"):
    """Shards that are no longer assigned to this client."""

    sub: str
    shards: list[int]


class Paused(Frame, tag="paused"):
    """Delivery is paused."""

    sub: str
    reason: str


class Resumed(Frame, tag="resumed"):
    """Delivery has resumed."""

    sub: str


class Ping(Frame, tag="ping"):
    """Liveness check of the client."""


class Pong(Frame, tag="pong"):
    """Answer to a ping."""


class Bye(Frame, tag="bye"):
    """The last frame."""

    code: int
    reason: str
    reconnect: bool
    after_seconds: float = 0.0


ServerFrame = (
    Welcome
    | Ok
    | Error
    | Reply
    | Messages
    | Records
    | GapTold
    | ShardEnded
    | Assigned
    | Revoking
    | Revoked
    | Paused
    | Resumed
    | Ping
    | Pong
    | Bye
)

_frames = msgspec.msgpack.Decoder(ServerFrame | list[ServerFrame])
_anything = msgspec.msgpack.Decoder()
_encode = msgspec.msgpack.Encoder().encode


def decode_frames(payload: bytes) -> list[ServerFrame]:
    """Decode the frames of one message; types that this client does not know are left out."""
    try:
        found = _frames.decode(payload)
        return found if isinstance(found, list) else [found]
    except msgspec.ValidationError:
        told = _anything.decode(payload)
        return [
            frame for one in (told if isinstance(told, list) else [told]) for frame in _known(one)
        ]


def _known(told: Any) -> list[ServerFrame]:
    try:
        return [msgspec.convert(told, ServerFrame)]
    except msgspec.ValidationError:
        if isinstance(told, dict) and told.get("type") in TYPES:
            raise
        return []


TYPES = frozenset(str(kind.__struct_config__.tag) for kind in Frame.__subclasses__())


def encode_frame(frame: dict[str, Any]) -> bytes:
    """Encode a frame of the client as one message."""
    return _encode(frame)
