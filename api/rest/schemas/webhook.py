"""Webhooks on the wire: configuration, how they do, secrets, and the log of deliveries."""

from typing import Annotated, Any, Self

from pydantic import BaseModel, Field

from api.native.fields import rfc3339, to_ms
from api.rest.schema_base import Config, Seconds, Time, in_seconds
from storage.domain import limits
from storage.domain.webhooks import (
    Attempt,
    BodyFormat,
    Delivery,
    DeliveryStatus,
    DisabledBecause,
    Health,
    OnFailure,
    Outcome,
    Secret,
    Source,
    Webhook,
    WebhookSpec,
)

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,80}$")]
_RETRIES = [in_seconds(delay) for delay in limits.WEBHOOK_RETRY_DELAYS_MS]


class WebhookConfig(Config):
    """The whole desired state of a webhook. What it delivers cannot change later."""

    source: Annotated[
        str,
        Field(
            description="`queue:` or `group:` and a name: messages of a queue, or records of a group's stream.",
            max_length=100,
        ),
    ]
    url: Annotated[str, Field(description="https, with a host and perhaps a path and a query.")]
    headers: Annotated[
        dict[str, str] | None,
        Field(
            description="Sent with each delivery. Their values are kept encrypted and never shown; when left out, "
            "they stay as they are."
        ),
    ] = None
    format: Annotated[
        BodyFormat,
        Field(
            strict=False,
            description="`body`: the message's own bytes, what else is known in headers. `envelope`: JSON with all.",
        ),
    ] = BodyFormat.BODY
    timeout_seconds: Annotated[
        Seconds, Field(description="For a whole answer: 0.1 to 120 seconds.")
    ] = in_seconds(limits.WEBHOOK_TIMEOUT_MS_DEFAULT)
    rate: Annotated[
        float | None, Field(description="Deliveries a second at most; null: no limit.")
    ] = None
    in_flight_max: Annotated[
        int, Field(description="Deliveries under way at one time, at most.")
    ] = limits.WEBHOOK_IN_FLIGHT_DEFAULT
    retry_seconds: Annotated[
        list[Seconds],
        Field(
            description="How long to wait after the first attempt failed, the second, and so on; each within 10 % to "
            "either side. Then a message goes to its queue's dead letters."
        ),
    ] = _RETRIES
    on_failure: Annotated[
        OnFailure,
        Field(
            strict=False,
            description="Of a group's record after its last retry. `block`: its shard waits, and the last wait repeats. "
            "`dead_letter`: it goes to `dead_letter_queue`.",
        ),
    ] = OnFailure.BLOCK
    dead_letter_queue: Name | None = None
    disable_after_seconds: Annotated[
        Seconds, Field(description="Of nothing but failure: then the webhook is disabled.")
    ] = in_seconds(limits.WEBHOOK_DISABLE_AFTER_MS_DEFAULT)
    log_retention_seconds: Annotated[
        Seconds, Field(description="How long the log keeps a delivery after its last attempt.")
    ] = in_seconds(limits.WEBHOOK_LOG_MS_DEFAULT)
    enabled: bool = True

    def to_domain(self) -> WebhookSpec:
        """The specification, which the engine checks."""
        return WebhookSpec(
            source=Source.of(self.source),
            url=self.url,
            headers=None if self.headers is None else tuple(sorted(self.headers.items())),
            format=self.format,
            timeout_ms=to_ms(self.timeout_seconds),
            rate=self.rate,
            in_flight_max=self.in_flight_max,
            retry_delays_ms=tuple(to_ms(delay) for delay in self.retry_seconds),
            on_failure=self.on_failure,
            dead_letter_queue=self.dead_letter_queue,
            disable_after_ms=to_ms(self.disable_after_seconds),
            log_ms=to_ms(self.log_retention_seconds),
            enabled=self.enabled,
        )


class BlockedShard(BaseModel):
    """A shard that waits for its first record to be delivered, and what that met last."""

    shard: int
    failure: str


class WebhookHealth(BaseModel):
    """How a webhook does, as its deliverer said within the last seconds.

    `state`: `active`, `failing` since its last success, or `disabled`. `disabled_because`: `failing` or `gone`
    (410), where the service did it.
    """

    state: str
    disabled_because: DisabledBecause | None
    disabled_at: Time | None
    failing_since: Time | None
    last_success_at: Time | None
    last_failure_at: Time | None
    last_failure: str
    delivered: int
    failed: int
    blocked: list[BlockedShard]

    @classmethod
    def from_domain(cls, webhook: Webhook) -> Self:
        health = webhook.health
        return cls(
            state=_state(webhook, health),
            disabled_because=webhook.disabled_because,
            disabled_at=_optional_time(webhook.disabled_at_ms),
            failing_since=_optional_time(health.failing_since_ms),
            last_success_at=_optional_time(health.last_success_at_ms),
            last_failure_at=_optional_time(health.last_failure_at_ms),
            last_failure=health.last_failure,
            delivered=health.delivered,
            failed=health.failed,
            blocked=[
                BlockedShard(shard=shard, failure=failure)
                for shard, failure in sorted(health.blocked.items())
            ],
        )


def _state(webhook: Webhook, health: Health) -> str:
    if not webhook.is_active:
        return "disabled"
    return "active" if health.failing_since_ms is None else "failing"


def _optional_time(ms: int | None) -> str | None:
    return None if ms is None else rfc3339(ms)


class WebhookOut(BaseModel):
    """A webhook: its configuration, its version, which is its ETag, and how it does."""

    name: str
    source: str
    url: str
    header_names: list[str]
    format: BodyFormat
    timeout_seconds: Seconds
    rate: float | None
    in_flight_max: int
    retry_seconds: list[Seconds]
    on_failure: OnFailure
    dead_letter_queue: str | None
    disable_after_seconds: Seconds
    log_retention_seconds: Seconds
    enabled: bool
    version: int
    created_at: Time
    changed_at: Time
    health: WebhookHealth

    @classmethod
    def from_domain(cls, webhook: Webhook) -> Self:
        return cls(**_webhook_fields(webhook))


class WebhookStored(WebhookOut):
    """A webhook, and its signing secret where it was just made: it is not shown again."""

    secret: str | None

    @classmethod
    def of(cls, webhook: Webhook, secret: Secret | None) -> Self:
        return cls(**_webhook_fields(webhook), secret=None if secret is None else secret.word)


def _webhook_fields(webhook: Webhook) -> dict[str, Any]:
    spec = webhook.spec
    return {
        "name": webhook.name.name,
        "source": str(spec.source),
        "url": spec.url,
        "header_names": [name for name, _ in spec.headers or ()],
        "format": spec.format,
        "timeout_seconds": in_seconds(spec.timeout_ms),
        "rate": spec.rate,
        "in_flight_max": spec.in_flight_max,
        "retry_seconds": [in_seconds(delay) for delay in spec.retry_delays_ms],
        "on_failure": spec.on_failure,
        "dead_letter_queue": spec.dead_letter_queue,
        "disable_after_seconds": in_seconds(spec.disable_after_ms),
        "log_retention_seconds": in_seconds(spec.log_ms),
        "enabled": spec.enabled,
        "version": webhook.version,
        "created_at": rfc3339(webhook.created_at_ms),
        "changed_at": rfc3339(webhook.changed_at_ms),
        "health": WebhookHealth.from_domain(webhook),
    }


class WebhookPage(BaseModel):
    """Webhooks by name."""

    items: list[WebhookOut]
    next_cursor: str | None


class RotateIn(Config):
    """For how long the secret before signs beside the new one."""

    overlap_seconds: Annotated[
        Seconds, Field(description="0 to 30 days; with 0 the old one ends at once.")
    ] = in_seconds(limits.WEBHOOK_OVERLAP_MS_DEFAULT)


class SecretOut(BaseModel):
    """A signing secret that was just made: it is not shown again."""

    secret: str
    created_at: Time
    old_secret_expires_at: Time | None


class AttemptOut(BaseModel):
    """One request to the receiver. `status` null: there was no answer. `resent`: somebody asked for it."""

    at: Time
    outcome: Outcome
    status: int | None
    duration_seconds: Seconds
    error: str
    response: Annotated[str, Field(description="What it answered, at most 4 KiB of it.")]
    resent: bool

    @classmethod
    def from_domain(cls, attempt: Attempt) -> Self:
        return cls(
            at=rfc3339(attempt.at_ms),
            outcome=attempt.outcome,
            status=attempt.status,
            duration_seconds=in_seconds(attempt.duration_ms),
            error=attempt.error,
            response=attempt.response,
            resent=attempt.resent,
        )


class DeliveryOut(BaseModel):
    """One message or record, and how its delivery went. `attempts` counts all; `last_attempts` has the latest 20."""

    id: Annotated[str, Field(description="The `webhook-id` that the receiver sees.")]
    status: DeliveryStatus
    attempts: int
    last_attempts: list[AttemptOut]
    first_at: Time
    last_at: Time
    next_at: Time | None
    sent_at: Time
    shard: int | None
    offset: int | None

    @classmethod
    def from_domain(cls, delivery: Delivery) -> Self:
        place = delivery.place
        return cls(
            id=delivery.event_id,
            status=delivery.status,
            attempts=delivery.attempts,
            last_attempts=[AttemptOut.from_domain(attempt) for attempt in delivery.kept],
            first_at=rfc3339(delivery.first_at_ms),
            last_at=rfc3339(delivery.last_at_ms),
            next_at=_optional_time(delivery.next_at_ms),
            sent_at=rfc3339(delivery.event_at_ms),
            shard=None if place is None else place.shard,
            offset=None if place is None else place.offset,
        )


class DeliveryPage(BaseModel):
    """Deliveries, the newest first."""

    items: list[DeliveryOut]
    next_cursor: str | None
