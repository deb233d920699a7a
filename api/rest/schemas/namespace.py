"""Namespace schemas: quotas and usage."""

from typing import Annotated, Any, ClassVar

from pydantic import Field

from api.native.former_names import former_name
from api.rest.definition_changes import PutOutcome
from api.rest.field_map import MappedConfig, MappedDefinition, MappedDefinitionConfig
from api.rest.schema_base import Config, ListPage, Time
from storage.domain import limits
from storage.domain.quotas import Quotas, Rates, ResourceRates

PerSecond = Annotated[
    float | None, Field(ge=limits.RATE_MIN, le=limits.RATE_MAX, description="null: no limit.")
]
Most = Annotated[int | None, Field(ge=0, le=limits.OFFSET_MAX, description="null: no limit.")]


class RatesConfig(MappedConfig):
    """Rate limits per second. Messages and bytes count sends and appends."""

    domain = Rates

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


class ResourceRatesConfig(MappedConfig):
    """Rate limits for each resource that matches a glob, counted per resource."""

    domain = ResourceRates

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


class NamespaceConfig(QuotaFields, MappedDefinitionConfig):
    """The quotas of a namespace; omitted quotas have no limit."""

    domain = Quotas


class NamespaceOut(MappedDefinition, QuotaFields):
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


class NamespaceStored(PutOutcome, NamespaceOut):
    """A namespace after a PUT, and what the PUT changed."""


class NamespacePage(ListPage[NamespaceOut]):
    """Namespaces by name."""
