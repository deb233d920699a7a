"""Messages of a queue, and the verbs' inputs and answers.

The life of a message:

      send             receive                 ack
    ───────▶ ready ◀──────────────▶ in flight ─────▶ gone (acknowledged)
      │        ▲      release, or      │ │
      │        │      the visibility   │ └── reject, or the last attempt failed ──▶ dead-lettered
      ▼        │      timeout passes   │
    delayed ───┘◀──────────────────────┘ nack with a delay

Ready, delayed and in-flight messages expire when the queue's retention has passed since they were
sent; dead-lettered ones when theirs has passed since they died.
"""

import binascii
from binascii import a2b_base64, b2a_base64
from enum import StrEnum
from functools import lru_cache
from uuid import UUID

import msgspec

from storage.domain import limits
from storage.domain.errors import ErrorCode, FieldFault, ReceiptHandleInvalid, ValidationFailed
from storage.domain.log.record_batch import Headers, headers_size_bytes
from storage.domain.names import LogId

_LOW_BITS = 48
_LOW_MASK = 2**_LOW_BITS - 1


class NewMessage(msgspec.Struct, frozen=True, gc=False):
    """A message to send. `dedup_id` is for FIFO queues, `delay_ms` for standard ones.

    `ttl_ms`: after so long, counted from when it is due, it expires unless it was received; 0: the queue's.
    `priority`, 0 to 9 and without a group: the higher are delivered first. `system` are headers of a front door's own, with names that start with ':'; they do not count as size.
    """

    body: bytes
    headers: Headers = ()
    content_type: str = ""
    group: str = ""
    dedup_id: str = ""
    delay_ms: int | None = None
    system: Headers = ()
    ttl_ms: int = 0
    priority: int = 0

    @property
    def size_bytes(self) -> int:
        """Body and headers, which is what the queue's limit counts."""
        if not self.headers:
            return len(self.body)
        return len(self.body) + headers_size_bytes(self.headers)


class SentMessage(msgspec.Struct, frozen=True, gc=False):
    """Where a message went. `duplicate`: it had been sent before, and nothing was added."""

    message_id: str
    offset: int
    duplicate: bool = False


class ReceiptHandle(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Names one delivery of one message (Q2).

    `arrival_ms` and `offset` are the entry's id; `delivery`, counted over all stays of the message in its
    queue, and `received_ms` tell this delivery from every other one.
    """

    log_id: LogId
    offset: int
    arrival_ms: int
    delivery: int
    received_ms: int

    def encode(self) -> str:
        """The word clients keep: about 50 characters of URL-safe base64."""
        packed = _handle_encoder.encode(self)
        return b2a_base64(packed, newline=False).translate(_URL_SAFE, b"=").decode()

    @classmethod
    def decode(cls, handle: str, log_id: LogId) -> "ReceiptHandle":
        """Read a handle. Raises ReceiptHandleInvalid when it was not made by the log `log_id`."""
        try:
            word = handle.encode("ascii").translate(_FROM_URL_SAFE)
            decoded = _handle_decoder.decode(a2b_base64(word + _PADDING[len(word) % 4]))
        except (binascii.Error, ValueError, msgspec.DecodeError):
            raise ReceiptHandleInvalid from None
        if decoded.log_id != log_id:
            raise ReceiptHandleInvalid
        return decoded


_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_FROM_URL_SAFE = bytes.maketrans(b"-_", b"+/")
_PADDING = (b"", b"===", b"==", b"=")
_handle_encoder = msgspec.msgpack.Encoder()
_handle_decoder = msgspec.msgpack.Decoder(ReceiptHandle)


class ReceivedMessage(msgspec.Struct, frozen=True, gc=False):
    """One delivery. `visible_at_ms`: when it comes back unless it is settled or extended.

    `dead_letter_source` is the queue that gave up on it, when it came here for that.
    """

    message_id: str
    offset: int
    body: bytes
    headers: Headers
    content_type: str
    group: str
    dedup_id: str
    receipt_handle: str
    sent_at_ms: int
    first_received_at_ms: int
    visible_at_ms: int
    receives: int
    failures: int
    crashes: int
    system: Headers = ()
    dead_letter_source: str = ""


class DeadLetter(msgspec.Struct, frozen=True, gc=False):
    """A message that its queue gave up on, and why."""

    message_id: str
    offset: int
    body: bytes
    headers: Headers
    content_type: str
    group: str
    sent_at_ms: int
    died_at_ms: int
    reason: str
    receives: int
    failures: int
    crashes: int


class DeathReason(msgspec.Struct, frozen=True):
    """Dead letters that have the same reason: how many, and when the first and the last of them died."""

    reason: str
    count: int
    first_died_at_ms: int
    last_died_at_ms: int


class WhichDead(msgspec.Struct, frozen=True, kw_only=True):
    """Which dead letters are meant: those that meet everything that is said. `words`: ids or offsets."""

    reason: str = ""
    group: str = ""
    words: tuple[str, ...] = ()


class MessageState(StrEnum):
    """Where a message is that can be browsed; dead letters have a list of their own."""

    READY = "ready"
    DELAYED = "delayed"
    IN_FLIGHT = "in_flight"
    PARKED = "parked"


class BrowsedMessage(msgspec.Struct, frozen=True, gc=False):
    """A message as it lies in its queue. `due_at_ms`: when its delay or its delivery ends."""

    message_id: str
    offset: int
    body: bytes
    headers: Headers
    content_type: str
    group: str
    dedup_id: str
    sent_at_ms: int
    state: MessageState
    due_at_ms: int | None
    receives: int
    failures: int
    crashes: int
    first_received_at_ms: int | None


class SettleAction(StrEnum):
    """What a consumer says of a delivery.

    ack: done. nack: it failed; try again after a while. release: not tried, back at once and no
    failure. extend: still working, hide it for `visibility_timeout_ms` from now. reject: never again.
    """

    ACK = "ack"
    NACK = "nack"
    RELEASE = "release"
    EXTEND = "extend"
    REJECT = "reject"


class Settlement(msgspec.Struct, frozen=True, gc=False):
    """One verdict on one delivery. A nack without a delay waits as its queue's back-off says."""

    receipt_handle: str
    action: SettleAction
    delay_ms: int | None = None
    visibility_timeout_ms: int = 0
    reason: str = ""


class Settled(msgspec.Struct, frozen=True, gc=False):
    """The answer to one settlement: None, or why it was refused."""

    error: ErrorCode | None = None
    visible_at_ms: int | None = None


def message_id(log_id: LogId, offset: int) -> str:
    """The id of the message first accepted at `offset`: a UUID (RFC 9562 version 8).

    64 bits name the log and 53 the offset, which is the id's end, so that an id is unique and leads to its message without
    an index.
    """
    return f"{_id_prefix(log_id, offset >> _LOW_BITS)}{offset & _LOW_MASK:012x}"


def offset_of(log_id: LogId, given: str) -> int | None:
    """The offset at which a message with this id was first accepted, or None for an id of another log."""
    try:
        bits = UUID(given).int
    except ValueError:
        return None
    offset = ((bits >> _LOW_BITS) & 0x1F) << _LOW_BITS | bits & _LOW_MASK
    return offset if given == message_id(log_id, offset) else None


def offset_in(log_id: LogId, word: str) -> int | None:
    """The offset that `word` means: an offset, or the id of a message first accepted by this log; else None.

    A message that came from another queue keeps its id, and is found by its offset only.
    """
    if word.isascii() and word.isdigit() and len(word) <= len(str(limits.OFFSET_MAX)):
        return int(word)
    return offset_of(log_id, word)


@lru_cache(4096)
def _id_prefix(log_id: LogId, high: int) -> str:
    """All of an id but its last 48 bits: it changes only from log to log, and every 2^48 offsets."""
    bits = (int(log_id, 16) << 5) | high  # 69 bits: 48, 12 and 9 beside the version and the variant
    high_digits = f"{bits >> 21:012x}"
    middle, low = (bits >> 9) & 0xFFF, bits & 0x1FF
    return f"{high_digits[:8]}-{high_digits[8:]}-8{middle:03x}-{0x8000 | low:04x}-"


def check_settlement(settlement: Settlement) -> None:
    """Raise ValidationFailed when a settlement asks for a time outside the limits."""
    if not 0 <= (settlement.delay_ms or 0) <= limits.NACK_DELAY_MS_MAX:
        raise ValidationFailed.at("/delay_seconds", "A delay is at most 2 days", "out_of_range")
    if not 0 <= settlement.visibility_timeout_ms <= limits.VISIBILITY_TIMEOUT_MS_MAX:
        raise ValidationFailed.at(
            "/visibility_timeout_seconds",
            "A visibility timeout is 0 to 43200 seconds",
            "out_of_range",
        )
    if len(settlement.reason) > limits.REASON_CHARACTERS_MAX:
        raise ValidationFailed.at("/reason", "A reason is at most 1024 characters", "too_long")


def check_header_names(headers: Headers, reserved: frozenset[str] = frozenset()) -> None:
    """Raise ValidationFailed when there are too many headers or a name is not allowed.

    `reserved` are the names of Millstream's own that may be among them.
    """
    if len(headers) > limits.HEADERS_MAX + len(reserved):
        raise ValidationFailed.at("/headers", f"At most {limits.HEADERS_MAX} headers", "too_many")
    for name, _, _ in headers:
        if name in reserved:
            continue
        if not 0 < len(name) <= limits.HEADER_NAME_CHARACTERS_MAX or name.startswith(":"):
            fault = FieldFault(
                f"/headers/{name}",
                "A header name is 1 to 256 characters and does not start with ':'",
            )
            raise ValidationFailed(None, fault)
