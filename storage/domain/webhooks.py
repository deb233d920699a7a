"""Webhooks: a queue's messages, or a group's records, are posted to a URL as Standard Webhooks has it.

        ┌──────────── enable ────────────┐
        ▼                                │
     active ── first failure ─▶ failing ─┴─ nothing but failure for long, or a 410 ──▶ disabled
        ▲                          │
        └──────── a success ───────┘

One delivery is one message or record. It has the same `webhook-id` however often it is tried. Who sends is
decided by leases: one deliverer at a time serves a webhook, so that its limits are exact.
"""

import re
from enum import StrEnum
from typing import Any, Self

import msgspec

from storage.domain import limits
from storage.domain.errors import FieldFault, ValidationFailed
from storage.domain.log.record_batch import Headers
from storage.domain.names import WebhookName, check_name

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_HEADER_VALUE = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
_OURS = ("webhook-", "millstream-", "proxy-")
_NOT_TO_SET = frozenset(
    [
        "host",
        "content-length",
        "content-type",
        "content-encoding",
        "transfer-encoding",
        "connection",
        "keep-alive",
        "te",
        "trailer",
        "upgrade",
        "expect",
        "accept-encoding",
    ]
)


class SourceKind(StrEnum):
    """What a webhook delivers: messages of a queue, or records that a consumer group reads."""

    QUEUE = "queue"
    GROUP = "group"


class Source(msgspec.Struct, frozen=True):
    """Where deliveries come from; on the wire `queue:orders` or `group:readers`."""

    kind: SourceKind
    name: str

    @classmethod
    def of(cls, word: str) -> Self:
        """The source of its word. Raises ValidationFailed at /source."""
        kind, _, name = word.partition(":")
        try:
            check_name(name)
            return cls(SourceKind(kind), name)
        except (ValueError, ValidationFailed):
            detail = "A source is 'queue:' or 'group:' and a name"
            raise ValidationFailed.at("/source", detail, "invalid") from None

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


class BodyFormat(StrEnum):
    """body: the message's own bytes and content type, what else is known of it in headers. envelope: JSON with all."""

    BODY = "body"
    ENVELOPE = "envelope"


class OnFailure(StrEnum):
    """What becomes of a group's record after its last retry. block: its shard waits, and it is tried on and on.

    dead_letter: it is sent to a queue, and its shard goes on.
    """

    BLOCK = "block"
    DEAD_LETTER = "dead_letter"


class WebhookSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What its owner asked of a webhook. Times in milliseconds.

    `headers` go with each delivery; their values are secrets and are stored as such. None: those that the
    webhook has. `rate` is in deliveries a second. `retry_delays_ms` come after the first attempt, the
    second and so on. After `disable_after_ms` of nothing but failure it is disabled.
    """

    source: Source
    url: str
    headers: tuple[tuple[str, str], ...] | None = None
    format: BodyFormat = BodyFormat.BODY
    timeout_ms: int = limits.WEBHOOK_TIMEOUT_MS_DEFAULT
    rate: float | None = None
    in_flight_max: int = limits.WEBHOOK_IN_FLIGHT_DEFAULT
    retry_delays_ms: tuple[int, ...] = limits.WEBHOOK_RETRY_DELAYS_MS
    on_failure: OnFailure = OnFailure.BLOCK
    dead_letter_queue: str | None = None
    disable_after_ms: int = limits.WEBHOOK_DISABLE_AFTER_MS_DEFAULT
    log_ms: int = limits.WEBHOOK_LOG_MS_DEFAULT
    enabled: bool = True

    def check(self) -> None:
        """Raise ValidationFailed with every fault but those of the URL, which is the deployment's to judge."""
        faults = [
            *_header_faults(self.headers or ()),
            *_seconds(
                "/timeout_seconds",
                self.timeout_ms,
                limits.WEBHOOK_TIMEOUT_MS_MIN,
                limits.WEBHOOK_TIMEOUT_MS_MAX,
            ),
            *_seconds(
                "/disable_after_seconds",
                self.disable_after_ms,
                limits.WEBHOOK_DISABLE_AFTER_MS_MIN,
                limits.WEBHOOK_DISABLE_AFTER_MS_MAX,
            ),
            *_seconds(
                "/log_retention_seconds",
                self.log_ms,
                limits.WEBHOOK_LOG_MS_MIN,
                limits.WEBHOOK_LOG_MS_MAX,
            ),
            *self._number_faults(),
            *self._failure_faults(),
        ]
        if faults:
            raise ValidationFailed("The webhook's configuration is not valid.", *faults)

    def _number_faults(self) -> list[FieldFault]:
        found = []
        if self.rate is not None and not 0.001 <= self.rate <= limits.WEBHOOK_RATE_MAX:
            detail = f"must be 0.001 to {limits.WEBHOOK_RATE_MAX}"
            found.append(FieldFault("/rate", detail, "out_of_range"))
        if not 1 <= self.in_flight_max <= limits.WEBHOOK_IN_FLIGHT_MAX:
            detail = f"must be 1 to {limits.WEBHOOK_IN_FLIGHT_MAX}"
            found.append(FieldFault("/in_flight_max", detail, "out_of_range"))
        if len(self.retry_delays_ms) > limits.WEBHOOK_RETRIES_MAX or any(
            not 0 <= delay <= limits.WEBHOOK_RETRY_MS_MAX for delay in self.retry_delays_ms
        ):
            detail = f"at most {limits.WEBHOOK_RETRIES_MAX} delays of at most a day"
            found.append(FieldFault("/retry_seconds", detail, "out_of_range"))
        return found

    def _failure_faults(self) -> list[FieldFault]:
        is_group = self.source.kind is SourceKind.GROUP
        if not is_group and self.on_failure is OnFailure.DEAD_LETTER:
            detail = "A queue has dead letters of its own: this is for a group"
            return [FieldFault("/on_failure", detail, "not_supported")]
        if (self.dead_letter_queue is not None) != (self.on_failure is OnFailure.DEAD_LETTER):
            detail = 'A queue is named with "on_failure": "dead_letter", and only with it'
            return [FieldFault("/dead_letter_queue", detail, "conflict")]
        return []

    def retry_delay_ms(self, failures: int, chance: float) -> int | None:
        """How long to wait after so many failed attempts, 1 or more; None: there is no further one.

        `chance`, 0 to 1, spreads what failed together.
        """
        if failures > len(self.retry_delays_ms):
            return None
        spread = 1 + limits.WEBHOOK_JITTER * (2 * chance - 1)
        return round(self.retry_delays_ms[failures - 1] * spread)


def _seconds(pointer: str, ms: int, low_ms: int, high_ms: int) -> list[FieldFault]:
    if low_ms <= ms <= high_ms:
        return []
    low, high = low_ms / limits.SECOND_MS, high_ms / limits.SECOND_MS
    return [FieldFault(pointer, f"must be {low:g} to {high:g}", "out_of_range")]


def _header_faults(headers: tuple[tuple[str, str], ...]) -> list[FieldFault]:
    found = []
    if len(headers) > limits.WEBHOOK_HEADERS_MAX:
        detail = f"At most {limits.WEBHOOK_HEADERS_MAX} headers"
        found.append(FieldFault("/headers", detail, "too_many"))
    for name, value in headers:
        lower = name.lower()
        if not _HEADER_NAME.fullmatch(name):
            found.append(FieldFault("/headers", "A header has a name that HTTP knows not"))
        elif lower in _NOT_TO_SET or lower.startswith(_OURS):
            found.append(
                FieldFault(f"/headers/{name}", "This header is not yours to set", "not_allowed")
            )
        if len(value) > limits.WEBHOOK_HEADER_BYTES_MAX or not _HEADER_VALUE.fullmatch(value):
            detail = f"A value is 1 to {limits.WEBHOOK_HEADER_BYTES_MAX} visible ASCII characters"
            found.append(FieldFault(f"/headers/{name}", detail))
    if len({name.lower() for name, _ in headers}) != len(headers):
        found.append(
            FieldFault(
                "/headers", "Names of headers do not know case: one is there twice", "conflict"
            )
        )
    return found


class DisabledBecause(StrEnum):
    """Why a webhook was disabled by the service. gone: its receiver answered 410."""

    GONE = "gone"
    FAILING = "failing"


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """How a webhook does. `failing_since_ms`: nothing but failure since then.

    `blocked`: by shard, what its record that cannot be delivered last met.
    """

    delivered: int = 0
    failed: int = 0
    failing_since_ms: int | None = None
    last_success_at_ms: int | None = None
    last_failure_at_ms: int | None = None
    last_failure: str = ""
    blocked: dict[int, str] = {}


class Webhook(msgspec.Struct, frozen=True, kw_only=True):
    """A webhook's stored definition and how it does; `version` counts its configurations and makes its ETag.

    `spec.headers` is never None here.
    """

    name: WebhookName
    webhook_id: str
    spec: WebhookSpec
    version: int
    created_at_ms: int
    changed_at_ms: int
    disabled_at_ms: int | None = None
    disabled_because: DisabledBecause | None = None
    health: Health = Health()

    @property
    def is_active(self) -> bool:
        """Whether deliverers serve it."""
        return self.spec.enabled and self.disabled_at_ms is None


class Secret(msgspec.Struct, frozen=True):
    """A signing secret, `whsec_…`. `expires_at_ms`: when it signs no more, once another has replaced it."""

    word: str
    created_at_ms: int
    expires_at_ms: int | None = None


class Lease(msgspec.Struct, frozen=True):
    """A deliverer's right to serve a webhook; `epoch` rises with each holder and fences the former."""

    webhook_id: str
    epoch: int


class Served(msgspec.Struct, frozen=True):
    """A webhook that a deliverer holds, with what it needs to serve it."""

    webhook: Webhook
    lease: Lease
    secrets: tuple[Secret, ...]


class Place(msgspec.Struct, frozen=True):
    """Where the payload of a delivery lies: an offset of a queue, or of a shard of a stream."""

    offset: int
    shard: int | None = None


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """What is delivered. `event_id` is its webhook-id: the same for every attempt, whoever makes it.

    `kind`: `queue.message`, `stream.record` or `webhook.test`. `source` as its word.
    """

    event_id: str
    kind: str
    source: str
    payload: bytes
    content_type: str = ""
    headers: Headers = ()
    at_ms: int = 0
    place: Place | None = None
    key: str = ""
    group: str = ""
    stream: str = ""


class Outcome(StrEnum):
    """What became of an attempt: a success, or why not."""

    DELIVERED = "delivered"
    REDIRECT = "redirect"
    CLIENT_ERROR = "client_error"
    SERVER_ERROR = "server_error"
    THROTTLED = "throttled"
    GONE = "gone"
    TIMEOUT = "timeout"
    CONNECTION = "connection"
    TLS = "tls"
    BLOCKED = "blocked"


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One request to a receiver, and what came of it. `status` None: there was no answer.

    `response` is the beginning of what it answered; `wait_ms` what its Retry-After asks.
    """

    outcome: Outcome
    at_ms: int
    duration_ms: int
    status: int | None = None
    error: str = ""
    response: str = ""
    resent: bool = False
    wait_ms: int | None = None

    @property
    def succeeded(self) -> bool:
        """Whether the receiver has it."""
        return self.outcome is Outcome.DELIVERED

    def told(self) -> dict[str, Any]:
        """As the log keeps it. An attempt of 0 ms says so, though Python takes 0 for False."""
        kept = msgspec.to_builtins(self)
        del kept["wait_ms"]
        return {
            name: kept[name]
            for name in kept
            if kept[name] not in (None, "") and kept[name] is not False
        }


class DeliveryStatus(StrEnum):
    """delivered: the receiver has it. retrying: it will be tried again. failed: it went to dead letters.

    gap: records that could not be delivered, since they are not there any more.
    """

    DELIVERED = "delivered"
    RETRYING = "retrying"
    FAILED = "failed"
    GAP = "gap"


class Payload(msgspec.Struct, frozen=True):
    """What is kept of a message that may have left its queue."""

    body: bytes
    content_type: str
    headers: Headers


class LogEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What one attempt adds to the log."""

    event_id: str
    status: DeliveryStatus
    attempts: int
    attempt: Attempt | None
    at_ms: int
    next_at_ms: int | None = None
    place: Place | None = None
    event_at_ms: int = 0
    key: str = ""
    group: str = ""
    payload: Payload | None = None


class Logged(msgspec.Struct, frozen=True):
    """An entry for the log of a webhook, which keeps it for so long."""

    webhook_id: str
    kept_ms: int
    entry: LogEntry


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the log: one message or record, and how it went. `attempts` counts all, the last of them are kept."""

    event_id: str
    status: DeliveryStatus
    attempts: int
    kept: tuple[Attempt, ...]
    first_at_ms: int
    last_at_ms: int
    next_at_ms: int | None
    place: Place | None
    event_at_ms: int = 0
    key: str = ""
    group: str = ""
    payload: Payload | None = None
