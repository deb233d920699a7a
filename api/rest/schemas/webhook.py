"""Webhook schemas: configuration, health, secrets, and the delivery log."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, Field

from api.native.fields import rfc3339, to_ms
from api.native.former_names import PAUSE_INSTEAD, deprecated_member, former_name
from api.rest.definition_changes import PutOutcome
from api.rest.schema_base import Config, DefinitionConfig, Seconds, Time, in_seconds
from storage.domain import limits
from storage.domain.webhooks import (
    Attempt,
    AttemptOutcome,
    BodyFormat,
    DeliveryHealth,
    DeliveryStatus,
    DisabledReason,
    OnFailure,
    Source,
    Webhook,
    WebhookDelivery,
    WebhookSpec,
)

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,80}$")]
_RETRIES = [in_seconds(delay) for delay in limits.WEBHOOK_RETRY_DELAYS_MS]


HIDDEN_VALUE = "(secret)"
"""Stands for a header's value in comparisons of configurations."""


class WebhookConfig(DefinitionConfig):
    """The complete configuration of a webhook. The source is immutable."""

    source: Annotated[
        str,
        Field(
            description="`queue:NAME` for the messages of a queue, or `group:NAME` for "
            "the records of a consumer group.",
            max_length=100,
        ),
    ]
    url: Annotated[
        str, Field(description="An https URL with a host and optionally a path and a query.")
    ]
    headers: Annotated[
        dict[str, str] | None,
        Field(
            description="Headers sent with each delivery. Values are stored encrypted and"
            " never returned; if omitted, they are unchanged."
        ),
    ] = None
    format: Annotated[
        BodyFormat,
        Field(
            strict=False,
            description="`body`: the message body, with the other fields in headers. "
            "`envelope`: a JSON object with all fields.",
        ),
    ] = BodyFormat.BODY
    timeout_seconds: Annotated[
        Seconds, Field(description="Timeout for the complete response: 0.1 to 120 seconds.")
    ] = in_seconds(limits.WEBHOOK_TIMEOUT_MS_DEFAULT)
    rate: Annotated[
        float | None, Field(description="Maximum deliveries per second; null: no limit.")
    ] = None
    in_flight_max: Annotated[int, Field(description="Maximum number of concurrent deliveries.")] = (
        limits.WEBHOOK_IN_FLIGHT_DEFAULT
    )
    retry_seconds: Annotated[
        list[Seconds],
        Field(
            description="Delays after the first failed attempt, the second, and so on, "
            "each ±10 %. After the last one, a message is dead-lettered."
        ),
    ] = _RETRIES
    on_failure: Annotated[
        OnFailure,
        Field(
            strict=False,
            description="Action after the last retry of a group's record. `block`: the "
            "shard waits, and the last delay repeats. `dead_letter`: the "
            "record is sent to `dead_letter_queue`.",
        ),
    ] = OnFailure.BLOCK
    dead_letter_queue: Name | None = None
    disable_after_seconds: Annotated[
        Seconds,
        Field(description="Period of consecutive failures after which the webhook is disabled."),
    ] = in_seconds(limits.WEBHOOK_DISABLE_AFTER_MS_DEFAULT)
    log_retention_seconds: Annotated[
        Seconds, Field(description="Time that the log keeps a delivery after its last attempt.")
    ] = in_seconds(limits.WEBHOOK_LOG_MS_DEFAULT)
    enabled: Annotated[bool | None, deprecated_member(PAUSE_INSTEAD)] = None

    @classmethod
    def from_domain(cls, spec: WebhookSpec) -> Self:
        """Return the configuration of `spec`, without header values."""
        fields = _webhook_config(spec)
        del fields["header_names"]
        headers = {name: value or HIDDEN_VALUE for name, value in spec.headers or ()}
        return cls.model_validate(fields | {"headers": headers})

    def to_domain(self) -> WebhookSpec:
        """Return the specification, which the engine validates."""
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
            paused=self.enabled is False,
        )

    def comparable(self) -> Self:
        """Return the configuration without header values, as the engine returns it."""
        if self.headers is None:
            return self
        return self.model_copy(update={"headers": dict.fromkeys(self.headers, HIDDEN_VALUE)})

    def put_options(self) -> Mapping[str, Any]:
        return {"replace_pause": self.enabled is not None}


class BlockedShard(BaseModel):
    """A shard that is blocked by its first record, and the last error of that record."""

    shard: int
    failure: str


class WebhookHealth(BaseModel):
    """Health of a webhook, as reported by its deliverer within the last seconds.

    `state`: `active`, `failing` since its last success, `paused` by its owner, or `disabled` by the service, for the
    `disabled_reason`: it was `failing` for too long, its receiver is `gone` (410), or its configuration is `invalid`.
    """

    state: str
    disabled_reason: DisabledReason | None
    disabled_because: ClassVar[Any] = former_name("disabled_reason", DisabledReason | None)
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
            disabled_reason=webhook.disabled_reason,
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


def _state(webhook: Webhook, health: DeliveryHealth) -> str:
    if webhook.disabled_at_ms is not None:
        return "disabled"
    if webhook.spec.paused:
        return "paused"
    return "active" if health.failing_since_ms is None else "failing"


def _optional_time(ms: int | None) -> str | None:
    return None if ms is None else rfc3339(ms)


class WebhookOut(BaseModel):
    """A webhook: its configuration, its version (the ETag) and its health."""

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
    paused: Annotated[bool, Field(description="Deliveries are paused by the owner.")]
    enabled: Annotated[bool, deprecated_member("The opposite of `paused`.")]
    version: int
    created_at: Time
    changed_at: Time
    health: WebhookHealth

    @classmethod
    def from_domain(cls, webhook: Webhook, **outcome: Any) -> Self:
        return cls(**_webhook_fields(webhook), **outcome)


InForce = Annotated[
    bool,
    Field(
        description="No request is sent by the former configuration any more. False: a deliverer "
        "did not confirm that in time; it will within seconds."
    ),
]


class WebhookChanged(WebhookOut):
    """A webhook after a change of its state."""

    in_force: InForce


class WebhookStored(PutOutcome, WebhookOut):
    """A webhook after a PUT; its signing secret, if it was created, is not returned again."""

    secret: str | None
    in_force: InForce


def _webhook_fields(webhook: Webhook) -> dict[str, Any]:
    return {
        "name": webhook.name.name,
        **_webhook_config(webhook.spec),
        "paused": webhook.spec.paused,
        "enabled": not webhook.spec.paused,
        "version": webhook.version,
        "created_at": rfc3339(webhook.created_at_ms),
        "changed_at": rfc3339(webhook.changed_at_ms),
        "health": WebhookHealth.from_domain(webhook),
    }


def _webhook_config(spec: WebhookSpec) -> dict[str, Any]:
    return {
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
    }


class WebhookPage(BaseModel):
    """Webhooks by name."""

    items: list[WebhookOut]
    next_cursor: str | None


class RotateIn(Config):
    """Overlap period in which the previous secret also signs deliveries."""

    overlap_seconds: Annotated[
        Seconds, Field(description="0 to 30 days; 0: the old secret expires immediately.")
    ] = in_seconds(limits.WEBHOOK_OVERLAP_MS_DEFAULT)


class SecretOut(BaseModel):
    """A new signing secret. It is not returned again."""

    secret: str
    created_at: Time
    old_secret_expires_at: Time | None
    in_force: InForce


class AttemptOut(BaseModel):
    """One request to the receiver.

    `status` is null if there was no response. `resent`: the attempt is a manual resend.
    """

    at: Time
    outcome: AttemptOutcome
    status: int | None
    duration_seconds: Seconds
    error: str
    response: Annotated[str, Field(description="Response body, truncated to 4 KiB.")]
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
    """A delivery of a message or record.

    `attempts` counts all attempts; `last_attempts` has the latest 20.
    """

    id: Annotated[str, Field(description="`webhook-id` header sent to the receiver.")]
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
    def from_domain(cls, delivery: WebhookDelivery) -> Self:
        place = delivery.location
        return cls(
            id=delivery.event_id,
            status=delivery.status,
            attempts=delivery.attempts,
            last_attempts=[AttemptOut.from_domain(attempt) for attempt in delivery.last_attempts],
            first_at=rfc3339(delivery.first_at_ms),
            last_at=rfc3339(delivery.last_at_ms),
            next_at=_optional_time(delivery.next_at_ms),
            sent_at=rfc3339(delivery.event_at_ms),
            shard=None if place is None else place.shard,
            offset=None if place is None else place.offset,
        )


class DeliveryPage(BaseModel):
    """Deliveries, newest first."""

    items: list[DeliveryOut]
    next_cursor: str | None
