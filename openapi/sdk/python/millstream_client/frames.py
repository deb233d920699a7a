"""The frames of `millstream.v1.msgpack`, as the service sends them."""

from typing import Any

import msgspec

from millstream_client.messages import Delivery
from millstream_client.records import Record

PROTOCOL = "millstream.v1.msgpack"


class Frame(msgspec.Struct, tag_field="type"):
    """What the service says."""


class Welcome(Frame, tag="welcome"):
    """The answer to `hello`."""

    session: str
    resumed: bool
    heartbeat_seconds: float
    pong_timeout_seconds: float


class Ok(Frame, tag="ok"):
    """Done: one result for each item, where there are items."""

    id: str
    results: list[dict[str, Any]] = []


class Error(Frame, tag="error"):
    """Refused, or failed."""

    problem: dict[str, Any]
    id: str = ""
    sub: str = ""
    receipt_handles: list[str] = []


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
    """Offsets [first, next) that will not come."""

    sub: str
    seq: int
    shard: int
    first: int
    next: int
    reason: str


class ShardEnded(Frame, tag="shard_ended"):
    """All of a shard was delivered."""

    sub: str
    seq: int
    shard: int
    children: list[int]


class AssignedPlace(msgspec.Struct):
    """A shard, and where its records begin."""

    shard: int
    offset: int


class Assigned(Frame, tag="assigned"):
    """Shards that are ours from now on."""

    sub: str
    generation: int
    shards: list[AssignedPlace]


class Revoking(Frame, tag="revoking"):
    """Shards to be given up."""

    sub: str
    shards: list[int]
    deadline_seconds: float


class Revoked(Frame, tag="revoked"):
    """Shards that are ours no more."""

    sub: str
    shards: list[int]


class Paused(Frame, tag="paused"):
    """Nothing comes for now."""

    sub: str
    reason: str


class Resumed(Frame, tag="resumed"):
    """It goes on."""

    sub: str


class Ping(Frame, tag="ping"):
    """Is anybody there?"""


class Pong(Frame, tag="pong"):
    """Yes."""


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
    """The frames of one message; those of a type that is newer than this client are left out."""
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
    """What the client says, as one message."""
    return _encode(frame)
