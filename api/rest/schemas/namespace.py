"""Namespace schemas: quotas and usage."""

from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, Field

from api.native.fields import rfc3339
from api.native.former_names import former_name
from api.rest.definition_changes import PutOutcome
from api.rest.schema_base import Config, DefinitionConfig, Time
from storage.domain import limits
from storage.domain.quotas import Namespace, Quotas, Rates, ResourceRates

PerSecond = Annotated[
    float | None, Field(ge=limits.RATE_MIN, le=limits.RATE_MAX, description="null: no limit.")
]
Most = Annotated[int | None, Field(ge=0, le=limits.OFFSET_MAX, description="null: no limit.")]


class RatesConfig(Config):
    """Rate limits per second. Messages and bytes count sends and appends."""

    calls_per_second: PerSecond = None
    messages_per_second: PerSecond = None
    bytes_per_second: PerSecond = None
    burst_seconds: Annotated[
        float,
        Field(
            ge=limits.BURST_SECONDS_MIN,
            le=limits.BURST_SECONDS_MAX,
            description="Burst size, in seconds at the full rate.",
        ),
    ] = 1.0

    @classmethod
    def of(cls, rates: Rates) -> Self:
        """Return the stored rates."""
        return cls(
            calls_per_second=rates.calls_per_second,
            messages_per_second=rates.messages_per_second,
            bytes_per_second=rates.bytes_per_second,
            burst_seconds=rates.burst_seconds,
        )

    def to_domain(self) -> Rates:
        """Return the rates."""
        return Rates(
            calls_per_second=self.calls_per_second,
            messages_per_second=self.messages_per_second,
            bytes_per_second=self.bytes_per_second,
            burst_seconds=self.burst_seconds,
        )


class ResourceRatesConfig(Config):
    """Rate limits for each resource that matches a glob, counted per resource."""

    resources: Annotated[
        str,
        Field(
            description="`queue/`, `stream/` or `group/` and a name with wildcards (`*` "
            "any characters, `?` one character): `queue/orders-*`.",
            pattern=r"^(queue|stream|group)/[A-Za-z0-9_.*?-]{1,80}$",
        ),
    ]
    rates: RatesConfig


class QuotaFields(Config):
    """The quotas of a namespace."""

    rates: Annotated[
        RatesConfig | None, Field(description="Limits for all calls in the namespace together.")
    ] = None
    resources: Annotated[
        list[ResourceRatesConfig], Field(max_length=limits.RESOURCE_RATES_MAX)
    ] = []
    connections_max: Annotated[
        Most, Field(description="Concurrent WebSocket connections; null: no limit.")
    ] = None
    queues_max: Most = None
    streams_max: Most = None
    stored_bytes_max: Annotated[
        Most,
        Field(
            description="Maximum size of its queues and streams in the hot store. "
            "Exceeding it is detected within seconds; then writes are "
            "rejected until the size is below the limit. null: no limit."
        ),
    ] = None


class NamespaceConfig(QuotaFields, DefinitionConfig):
    """The quotas of a namespace; omitted quotas have no limit."""

    @classmethod
    def from_domain(cls, spec: Quotas) -> Self:
        """Return the stored quotas."""
        return cls(**_quota_fields(spec))

    def to_domain(self) -> Quotas:
        """Return the quotas."""
        return Quotas(
            rates=None if self.rates is None else self.rates.to_domain(),
            resources=tuple(
                ResourceRates(one.resources, one.rates.to_domain()) for one in self.resources
            ),
            connections_max=self.connections_max,
            queues_max=self.queues_max,
            streams_max=self.streams_max,
            stored_bytes_max=self.stored_bytes_max,
        )


class NamespaceOut(QuotaFields):
    """A namespace."""

    name: str
    account_id: Annotated[
        str,
        Field(
            description="Its 12-digit account id in URLs and ARNs of the SQS- and "
            "Kinesis-compatible APIs."
        ),
    ]
    stored_bytes: Annotated[
        int | None,
        Field(description="Last measured size, if it is limited; otherwise null."),
    ]
    over_storage_quota: Annotated[
        bool, Field(description="Whether writes are rejected because of the size.")
    ]
    version: int
    created_at: Time
    changed_at: Time
    stores_too_much: ClassVar[Any] = former_name("over_storage_quota", bool)

    @classmethod
    def from_domain(cls, namespace: Namespace, **outcome: Any) -> Self:
        """Return the stored namespace."""
        return cls(
            **_quota_fields(namespace.quotas),
            **outcome,
            name=namespace.name,
            account_id=namespace.account_id,
            stored_bytes=namespace.stored_bytes,
            over_storage_quota=namespace.over_storage_quota,
            version=namespace.version,
            created_at=rfc3339(namespace.created_at_ms),
            changed_at=rfc3339(namespace.changed_at_ms),
        )


class NamespaceStored(PutOutcome, NamespaceOut):
    """A namespace after a PUT, and what the PUT changed."""


def _quota_fields(quotas: Quotas) -> dict[str, Any]:
    return {
        "rates": None if quotas.rates is None else RatesConfig.of(quotas.rates),
        "resources": [
            ResourceRatesConfig(resources=one.resources, rates=RatesConfig.of(one.rates))
            for one in quotas.resources
        ],
        "connections_max": quotas.connections_max,
        "queues_max": quotas.queues_max,
        "streams_max": quotas.streams_max,
        "stored_bytes_max": quotas.stored_bytes_max,
    }


class NamespacePage(BaseModel):
    """Namespaces by name."""

    items: list[NamespaceOut]
    next_cursor: str | None
