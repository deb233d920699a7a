"""Webhook schemas: configuration, health, secrets, and the delivery log."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, Field

from api.native.fields import moment_ms
from api.native.former_names import PAUSE_INSTEAD, deprecated_member, former_name
from api.rest.credentials_config import CredentialsConfig, hidden_values
from api.rest.definition_changes import PutOutcome
from api.rest.field_map import (
    Mapped,
    MappedDefinition,
    MappedDefinitionConfig,
    domain_value,
)
from api.rest.schema_base import Config, ListPage, Moment, Seconds, Time, in_seconds
from storage.domain import limits
from storage.domain.definitions import HIDDEN_VALUE
from storage.domain.webhooks import (
    Attempt,
    AttemptOutcome,
    BodyFormat,
    DeliveryFilter,
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


_RENAMED = {"retry_seconds": "retry_delays_ms", "log_retention_seconds": "log_ms"}


class WebhookConfig(MappedDefinitionConfig):
    """The complete configuration of a webhook. The source is immutable."""

    renamed = _RENAMED

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
    credentials: CredentialsConfig | None = None
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
    match: Annotated[
        Any,
        Field(
            description="Records of a group to deliver: a match, or a list of matches of which any takes a record, as a route of a"
            " topic has it. Other records are passed over. null: every record."
        ),
    ] = None
    enabled: Annotated[bool | None, deprecated_member(PAUSE_INSTEAD)] = None

    @classmethod
    def from_domain(cls, value: WebhookSpec, **others: Any) -> Self:
        """Return the configuration of a specification, without secret values."""
        headers = {name: text or HIDDEN_VALUE for name, text in value.headers or ()}
        return cls.mapped(value, headers=headers, enabled=None, source=str(value.source), **others)

    def to_domain(self) -> WebhookSpec:
        """Return the specification, which the engine validates."""
        return domain_value(
            WebhookSpec,
            self,
            source=Source.of(self.source),
            headers=None if self.headers is None else tuple(sorted(self.headers.items())),
            paused=self.enabled is False,
        )

    def comparable(self) -> Self:
        """Return the configuration without secret values, as the engine returns it."""
        return self.model_copy(update=hidden_values(self.headers, self.credentials))

    def put_options(self) -> Mapping[str, Any]:
        return {"replace_pause": self.enabled is not None}


class BlockedShard(BaseModel):
    """A shard that is blocked by its first record, and the last error of that record."""

    shard: int
    failure: str


class WebhookHealth(Mapped):
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
    def from_domain(cls, value: Webhook, **others: Any) -> Self:
        health = value.health
        blocked = [
            BlockedShard(shard=shard, failure=failure)
            for shard, failure in sorted(health.blocked.items())
        ]
        state = _state(value, health)
        return cls.mapped(health, value, state=state, blocked=blocked, **others)


def _state(webhook: Webhook, health: DeliveryHealth) -> str:
    if webhook.disabled_at_ms is not None:
        return "disabled"
    if webhook.spec.paused:
        return "paused"
    return "active" if health.failing_since_ms is None else "failing"


class WebhookOut(MappedDefinition):
    """A webhook: its configuration, its version (the ETag) and its health."""

    renamed = _RENAMED

    name: str
    source: str
    url: str
    header_names: list[str]
    credentials: CredentialsConfig | None
    format: BodyFormat
    timeout_seconds: Seconds
    rate: float | None
    in_flight_max: int
    retry_seconds: list[Seconds]
    on_failure: OnFailure
    dead_letter_queue: str | None
    disable_after_seconds: Seconds
    log_retention_seconds: Seconds
    match: Any
    paused: Annotated[bool, Field(description="Deliveries are paused by the owner.")]
    enabled: Annotated[bool, deprecated_member("The opposite of `paused`.")]
    version: int
    created_at: Time
    changed_at: Time
    health: WebhookHealth

    @classmethod
    def from_domain(cls, value: Webhook, **others: Any) -> Self:
        spec = value.spec
        return super().from_domain(
            value,
            header_names=[name for name, _ in spec.headers or ()],
            enabled=not spec.paused,
            health=WebhookHealth.from_domain(value),
            source=str(spec.source),
            **others,
        )


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


class WebhookPage(ListPage[WebhookOut]):
    """Webhooks by name."""


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


class AttemptOut(Mapped):
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


class DeliveryOut(Mapped):
    """A delivery of a message or record.

    `attempts` counts all attempts; `last_attempts` has the latest 20.
    """

    renamed = {"id": "event_id", "sent_at": "event_at_ms"}

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
    def from_domain(cls, value: WebhookDelivery, **others: Any) -> Self:
        place = value.location
        return super().from_domain(
            value,
            shard=None if place is None else place.shard,
            offset=None if place is None else place.offset,
            **others,
        )


class ResendConfig(Config):
    """Deliveries to resend: those that match all given conditions."""

    status: Annotated[DeliveryStatus, Field(strict=False)] = DeliveryStatus.FAILED
    response_status: Annotated[
        int | None, Field(ge=100, le=599, description="HTTP status of the last attempt.")
    ] = None
    outcome: Annotated[
        AttemptOutcome | None, Field(strict=False, description="Outcome of the last attempt.")
    ] = None
    from_: Annotated[
        Moment | None, Field(alias="from", description="First attempt at or after this time.")
    ] = None
    to: Annotated[Moment | None, Field(description="First attempt before this time.")] = None
    deliveries_max: Annotated[
        int,
        Field(
            ge=1,
            le=limits.WEBHOOK_RESENDS_MAX,
            description="Maximum number of deliveries to resend in this call.",
        ),
    ] = limits.WEBHOOK_RESENDS_MAX
    cursor: Annotated[str, Field(description="`next_cursor` of the previous call.")] = ""
    dry_run: Annotated[
        bool, Field(description="Count the deliveries without sending anything.")
    ] = False

    def to_domain(self) -> DeliveryFilter:
        """Return the filter."""
        return DeliveryFilter(
            status=self.status,
            response_status=self.response_status,
            outcome=self.outcome,
            from_ms=None if self.from_ is None else moment_ms(self.from_),
            to_ms=None if self.to is None else moment_ms(self.to),
        )


class ResendsOut(BaseModel):
    """Result of a bulk resend. Deliveries whose payload is gone are skipped."""

    matched: Annotated[
        int | None,
        Field(
            description=f"In a dry run: number of deliveries, at most {limits.WEBHOOK_DELIVERIES_COUNTED_MAX}."
        ),
    ]
    delivered: int
    failed: int
    skipped: int
    next_cursor: Annotated[
        str | None, Field(description="Continue here; null if no more deliveries match.")
    ]

    @classmethod
    def of(cls, attempts: Sequence[Attempt | None], next_cursor: str | None) -> Self:
        """Return the result of a round."""
        sent = [attempt for attempt in attempts if attempt is not None]
        delivered = sum(attempt.succeeded for attempt in sent)
        return cls(
            matched=None,
            delivered=delivered,
            failed=len(sent) - delivered,
            skipped=len(attempts) - len(sent),
            next_cursor=next_cursor,
        )


class DeliveryPage(ListPage[DeliveryOut]):
    """Deliveries, newest first."""
