"""Webhooks: a queue's messages, or a group's records, posted to a URL (Standard Webhooks).

        ┌──────────── enable ────────────┐
        ▼                                │
     active ── first failure ─▶ failing ─┴─ failures only for long, or a 410 ──▶ disabled
        ▲                          │
        └──────── a success ───────┘

One delivery is one message or record. It has the same `webhook-id` in every attempt. Leases select the sender:
one deliverer at a time serves a webhook, so that its limits are exact.
"""

import re
from enum import StrEnum
from typing import Any, Self

import msgspec

from storage.domain import limits
from storage.domain.access.oauth import WebhookCredentials
from storage.domain.definitions import check_seconds
from storage.domain.errors import FieldFault, ValidationFailed
from storage.domain.log.record_batch import Headers
from storage.domain.names import GroupName, LogId, QueueName, WebhookName
from storage.domain.streams.record_filter import Filter

HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
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
    """Source of a webhook: messages of a queue, or records that a consumer group reads."""

    QUEUE = "queue"
    GROUP = "group"


class Source(msgspec.Struct, frozen=True):
    """Source of deliveries; on the wire `queue:orders` or `group:readers`."""

    kind: SourceKind
    name: str

    @classmethod
    def of(cls, text: str) -> Self:
        """Parse the wire format. Raises ValidationFailed at /source."""
        kind, _, name = text.partition(":")
        try:
            source = cls(SourceKind(kind), name)
            (QueueName if source.kind is SourceKind.QUEUE else GroupName)(name)
        except (ValueError, ValidationFailed):
            detail = "The source must be queue:NAME or group:NAME"
            raise ValidationFailed.at("/source", detail, "invalid") from None
        return source

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


class BodyFormat(StrEnum):
    """Format of a delivery's request body.

    body: the message's own bytes and content type, other properties in headers. envelope: JSON with everything.
    """

    BODY = "body"
    ENVELOPE = "envelope"


class OnFailure(StrEnum):
    """Handling of a group's record after its last retry.

    block: its shard waits, and it is retried indefinitely. dead_letter: it is sent to a queue, and its shard
    continues.
    """

    BLOCK = "block"
    DEAD_LETTER = "dead_letter"


class WebhookSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Configuration of a webhook as requested by its owner. Times in milliseconds.

    `headers` are sent with each delivery; their values are secrets and are stored as such. None: keep the webhook's
    present ones. `credentials` bring an access token for each delivery. `rate` is in deliveries per second. `retry_delays_ms` follow the first attempt, the second and so on.
    After `disable_after_ms` without a success it is disabled. `match`, in its JSON form, selects the records of a group; others are
    passed over.
    """

    source: Source
    url: str
    headers: tuple[tuple[str, str], ...] | None = None
    credentials: WebhookCredentials | None = None
    format: BodyFormat = BodyFormat.BODY
    timeout_ms: int = limits.WEBHOOK_TIMEOUT_MS_DEFAULT
    rate: float | None = None
    in_flight_max: int = limits.WEBHOOK_IN_FLIGHT_DEFAULT
    retry_delays_ms: tuple[int, ...] = limits.WEBHOOK_RETRY_DELAYS_MS
    on_failure: OnFailure = OnFailure.BLOCK
    dead_letter_queue: str | None = None
    disable_after_ms: int = limits.WEBHOOK_DISABLE_AFTER_MS_DEFAULT
    log_ms: int = limits.WEBHOOK_LOG_MS_DEFAULT
    match: Any = None
    paused: bool = False

    def check(self) -> None:
        """Raise ValidationFailed or MatchInvalid for every fault except those of the URL.

        The deployment's egress rule decides about the URL.
        """
        faults = [
            *_header_faults(self.headers or ()),
            *self._credential_faults(),
            *check_seconds(
                "/timeout_seconds",
                self.timeout_ms,
                limits.WEBHOOK_TIMEOUT_MS_MIN,
                limits.WEBHOOK_TIMEOUT_MS_MAX,
            ),
            *check_seconds(
                "/disable_after_seconds",
                self.disable_after_ms,
                limits.WEBHOOK_DISABLE_AFTER_MS_MIN,
                limits.WEBHOOK_DISABLE_AFTER_MS_MAX,
            ),
            *check_seconds(
                "/log_retention_seconds",
                self.log_ms,
                limits.WEBHOOK_LOG_MS_MIN,
                limits.WEBHOOK_LOG_MS_MAX,
            ),
            *self._number_faults(),
            *self._failure_faults(),
            *self._match_faults(),
        ]
        if faults:
            raise ValidationFailed("The webhook's configuration is invalid.", *faults)
        self.record_filter.check("/match")

    @property
    def record_filter(self) -> Filter:
        """Filter of the records that are delivered."""
        return Filter(match=self.match)

    def _credential_faults(self) -> list[FieldFault]:
        if self.credentials is None:
            return []
        detail = "The access token of `credentials` is sent in this header"
        conflicts = [
            FieldFault(f"/headers/{name}", detail, "conflict")
            for name, _ in self.headers or ()
            if name.lower() == "authorization"
        ]
        return [*conflicts, *self.credentials.oauth.faults()]

    def _number_faults(self) -> list[FieldFault]:
        faults = []
        if self.rate is not None and not 0.001 <= self.rate <= limits.WEBHOOK_RATE_MAX:
            detail = f"must be 0.001 to {limits.WEBHOOK_RATE_MAX}"
            faults.append(FieldFault("/rate", detail, "out_of_range"))
        if not 1 <= self.in_flight_max <= limits.WEBHOOK_IN_FLIGHT_MAX:
            detail = f"must be 1 to {limits.WEBHOOK_IN_FLIGHT_MAX}"
            faults.append(FieldFault("/in_flight_max", detail, "out_of_range"))
        if len(self.retry_delays_ms) > limits.WEBHOOK_RETRIES_MAX or any(
            not 0 <= delay <= limits.WEBHOOK_RETRY_MS_MAX for delay in self.retry_delays_ms
        ):
            detail = f"at most {limits.WEBHOOK_RETRIES_MAX} delays of at most a day"
            faults.append(FieldFault("/retry_seconds", detail, "out_of_range"))
        return faults

    def _failure_faults(self) -> list[FieldFault]:
        is_group = self.source.kind is SourceKind.GROUP
        if not is_group and self.on_failure is OnFailure.DEAD_LETTER:
            detail = (
                "on_failure applies to groups only; a queue dead-letters failed messages itself"
            )
            return [FieldFault("/on_failure", detail, "not_supported")]
        if (self.dead_letter_queue is not None) != (self.on_failure is OnFailure.DEAD_LETTER):
            detail = 'Specify a queue if and only if "on_failure" is "dead_letter"'
            return [FieldFault("/dead_letter_queue", detail, "conflict")]
        return []

    def _match_faults(self) -> list[FieldFault]:
        if self.source.kind is SourceKind.GROUP or self.record_filter.takes_all:
            return []
        detail = (
            "match applies to groups only; a message that it does not take would stay in the queue"
        )
        return [FieldFault("/match", detail, "not_supported")]

    def retry_delay_ms(self, failures: int, chance: float) -> int | None:
        """Return the delay after this many failed attempts, 1 or more; None: no further attempt.

        `chance`, 0 to 1, spreads deliveries that failed together.
        """
        if failures > len(self.retry_delays_ms):
            return None
        spread = 1 + limits.WEBHOOK_JITTER * (2 * chance - 1)
        return round(self.retry_delays_ms[failures - 1] * spread)


def _header_faults(headers: tuple[tuple[str, str], ...]) -> list[FieldFault]:
    faults = []
    if len(headers) > limits.WEBHOOK_HEADERS_MAX:
        detail = f"At most {limits.WEBHOOK_HEADERS_MAX} headers"
        faults.append(FieldFault("/headers", detail, "too_many"))
    for name, value in headers:
        lower = name.lower()
        if not HEADER_NAME.fullmatch(name):
            faults.append(FieldFault("/headers", "Invalid HTTP header name"))
        elif lower in _NOT_TO_SET or lower.startswith(_OURS):
            faults.append(
                FieldFault(f"/headers/{name}", "This header cannot be overridden", "not_allowed")
            )
        if len(value) > limits.WEBHOOK_HEADER_BYTES_MAX or not _HEADER_VALUE.fullmatch(value):
            detail = (
                f"A value must be 1 to {limits.WEBHOOK_HEADER_BYTES_MAX} printable ASCII characters"
            )
            faults.append(FieldFault(f"/headers/{name}", detail))
    if len({name.lower() for name, _ in headers}) != len(headers):
        faults.append(
            FieldFault(
                "/headers", "Header names are case-insensitive; one is duplicated", "conflict"
            )
        )
    return faults


class DisabledReason(StrEnum):
    """Reason for which the service disabled a webhook.

    gone: its receiver answered 410. failing: it did not succeed for too long. invalid: it could not be started with its
    configuration.
    """

    GONE = "gone"
    FAILING = "failing"
    INVALID = "invalid"


class DeliveryHealth(msgspec.Struct, frozen=True, kw_only=True):
    """Health of a webhook. `failing_since_ms`: no attempt has succeeded since then.

    `blocked`: by shard, the last error of its record that cannot be delivered.
    """

    delivered: int = 0
    failed: int = 0
    failing_since_ms: int | None = None
    last_success_at_ms: int | None = None
    last_failure_at_ms: int | None = None
    last_failure: str = ""
    blocked: dict[int, str] = {}


class Webhook(msgspec.Struct, frozen=True, kw_only=True):
    """A webhook's stored definition and health.

    `version` counts its configurations and makes its ETag. `spec.headers` is never None here.
    """

    name: WebhookName
    webhook_id: str
    spec: WebhookSpec
    version: int
    created_at_ms: int
    changed_at_ms: int
    disabled_at_ms: int | None = None
    disabled_reason: DisabledReason | None = None
    health: DeliveryHealth = DeliveryHealth()

    @property
    def is_active(self) -> bool:
        """True if deliverers serve it."""
        return not self.spec.paused and self.disabled_at_ms is None


class Secret(msgspec.Struct, frozen=True):
    """A signing secret, `whsec_…`.

    `expires_at_ms`: when it ceases to sign, once another has replaced it.
    """

    value: str
    created_at_ms: int
    expires_at_ms: int | None = None


class WebhookLease(msgspec.Struct, frozen=True):
    """A deliverer's lease of a webhook.

    `epoch` rises with each holder and fences the previous one.
    """

    webhook_id: str
    epoch: int


class LeasedWebhook(msgspec.Struct, frozen=True):
    """A webhook leased by a deliverer, with everything needed to serve it."""

    webhook: Webhook
    lease: WebhookLease
    secrets: tuple[Secret, ...]


class PayloadLocation(msgspec.Struct, frozen=True):
    """Location of a delivery's payload: an offset of a queue, or of a shard of a stream."""

    offset: int
    shard: int | None = None


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Event to deliver. `event_id` is its webhook-id, the same for every attempt.

    Also across deliverers. `kind`: `queue.message`, `stream.record` or `webhook.test`. `source` in its wire format.
    """

    event_id: str
    kind: str
    source: str
    payload: bytes
    content_type: str = ""
    headers: Headers = ()
    at_ms: int = 0
    location: PayloadLocation | None = None
    key: str = ""
    group: str = ""
    stream: str = ""


def record_event_id(stream_id: LogId, shard: int, offset: int) -> str:
    """Return the event id of a stream's record; that of a message is its message id."""
    return f"{stream_id}-{shard}-{offset}"


class AttemptOutcome(StrEnum):
    """Outcome of an attempt: delivered, or the reason for its failure.

    credentials: the token endpoint gave no access token, and nothing was sent to the receiver.
    """

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
    CREDENTIALS = "credentials"


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One request to a receiver, and its outcome. `status` None: no response.

    `response` is the beginning of the response body; `wait_ms` the delay requested by its Retry-After.
    """

    outcome: AttemptOutcome
    at_ms: int
    duration_ms: int
    status: int | None = None
    error: str = ""
    response: str = ""
    resent: bool = False
    wait_ms: int | None = None

    @property
    def succeeded(self) -> bool:
        """True if the receiver accepted it."""
        return self.outcome is AttemptOutcome.DELIVERED

    @property
    def response_head(self) -> str:
        """The part of the response that a dead letter keeps."""
        return self.response[: limits.DETAILS_CHARACTERS_MAX]

    def log_fields(self) -> dict[str, Any]:
        """Return the attempt as the log stores it.

        A duration of 0 ms is stored, although Python considers 0 equal to False.
        """
        fields = msgspec.to_builtins(self)
        del fields["wait_ms"]
        return {
            name: fields[name]
            for name in fields
            if fields[name] not in (None, "") and fields[name] is not False
        }


class DeliveryStatus(StrEnum):
    """Status of a delivery.

    delivered: the receiver has it. retrying: it will be retried. failed: it was dead-lettered. gap: records that
    could not be delivered because they no longer exist.
    """

    DELIVERED = "delivered"
    RETRYING = "retrying"
    FAILED = "failed"
    GAP = "gap"


class DeliveryFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Filter of the delivery log: selects deliveries that match every field that is set.

    `response_status` and `outcome` are those of the last attempt; the first attempt was in [from_ms, to_ms).
    """

    status: DeliveryStatus | None = None
    event_id: str | None = None
    response_status: int | None = None
    outcome: AttemptOutcome | None = None
    from_ms: int | None = None
    to_ms: int | None = None


class Payload(msgspec.Struct, frozen=True):
    """Stored copy of a message that may have left its queue."""

    body: bytes
    content_type: str
    headers: Headers


class DeliveryLogEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Log entry of one attempt."""

    event_id: str
    status: DeliveryStatus
    attempts: int
    attempt: Attempt | None
    at_ms: int
    next_at_ms: int | None = None
    location: PayloadLocation | None = None
    event_at_ms: int = 0
    key: str = ""
    group: str = ""
    payload: Payload | None = None


class LoggedDelivery(msgspec.Struct, frozen=True):
    """An entry for the log of a webhook, which keeps it for `retention_ms`."""

    webhook_id: str
    retention_ms: int
    entry: DeliveryLogEntry


class WebhookDelivery(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the log: one message or record, and its attempts.

    `attempts` counts all of them; `last_attempts` are the newest of them.
    """

    event_id: str
    status: DeliveryStatus
    attempts: int
    last_attempts: tuple[Attempt, ...]
    first_at_ms: int
    last_at_ms: int
    next_at_ms: int | None
    location: PayloadLocation | None
    event_at_ms: int = 0
    key: str = ""
    group: str = ""
    payload: Payload | None = None
