"""Tables of webhooks, their deliveries and their deliverers; table of sources."""

from typing import Any

from sqlalchemy import BigInteger, Index, Integer, Text, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from storage.postgres.tables.columns import NAME, DefinitionColumns

ACTIVE = text("active")


class WebhookColumns(SQLModel):
    """Columns of the rows that a webhook has in other tables."""

    webhook_id: str = Field(
        primary_key=True, foreign_key="webhooks.webhook_id", ondelete="CASCADE", sa_type=NAME
    )


class WebhookRow(DefinitionColumns, table=True):
    """A `storage.domain.webhooks.Webhook`, and the lease of the deliverer that serves it.

    `spec` has the names of its headers; their values, and the secret of its credentials, are in `sealed_headers`. `active`: deliverers serve it.
    `served_version`: the one that the holder of the lease serves.
    """

    __tablename__ = "webhooks"
    __table_args__ = (
        Index("webhooks_name", "namespace", "name", unique=True),
        Index("webhooks_active", "webhook_id", postgresql_where=ACTIVE),
    )

    webhook_id: str = Field(primary_key=True, sa_type=NAME)
    sealed_headers: bytes | None = Field(default=None)
    active: bool
    disabled_at_ms: int | None = Field(default=None, sa_type=BigInteger)
    disabled_because: str | None = Field(default=None, sa_type=Text)
    health: dict[str, Any] = Field(sa_type=JSONB)
    holder: str | None = Field(default=None, sa_type=NAME)
    lease_epoch: int = Field(sa_type=BigInteger)
    lease_until_ms: int = Field(sa_type=BigInteger)
    served_version: int | None = Field(default=None, sa_type=BigInteger)


class WebhookSecretRow(WebhookColumns, table=True):
    """A `storage.domain.webhooks.Secret`, encrypted."""

    __tablename__ = "webhook_secrets"

    number: int = Field(primary_key=True, sa_type=Integer)
    sealed: bytes
    created_at_ms: int = Field(sa_type=BigInteger)
    expires_at_ms: int | None = Field(default=None, sa_type=BigInteger)


class WebhookDeliveryRow(WebhookColumns, table=True):
    """A `storage.domain.webhooks.WebhookDelivery`; `payload` is a `Payload` in MessagePack."""

    __tablename__ = "webhook_deliveries"
    __table_args__ = (
        Index("webhook_deliveries_newest", "webhook_id", "first_at_ms", "event_id"),
        Index("webhook_deliveries_expired", "expires_at_ms"),
    )

    event_id: str = Field(primary_key=True, sa_type=NAME)
    status: str = Field(sa_type=Text)
    attempts: int = Field(sa_type=Integer)
    kept: list[dict[str, Any]] = Field(sa_type=JSONB)
    first_at_ms: int = Field(sa_type=BigInteger)
    last_at_ms: int = Field(sa_type=BigInteger)
    next_at_ms: int | None = Field(default=None, sa_type=BigInteger)
    expires_at_ms: int = Field(sa_type=BigInteger)
    shard: int | None = Field(default=None, sa_type=Integer)
    place: int | None = Field(default=None, sa_type=BigInteger)
    event_at_ms: int = Field(sa_type=BigInteger)
    event_key: str = Field(sa_type=Text)
    event_group: str = Field(sa_type=Text)
    payload: bytes | None = Field(default=None)


class DelivererRow(SQLModel, table=True):
    """A process that serves webhooks, and its last heartbeat."""

    __tablename__ = "deliverers"

    deliverer: str = Field(primary_key=True, sa_type=NAME)
    seen_ms: int = Field(sa_type=BigInteger)


class SourceRow(DefinitionColumns, table=True):
    """A `storage.domain.sources.source.InboundSource`.

    Its secrets and tokens are in `sealed`, encrypted.
    """

    __tablename__ = "sources"
    __table_args__ = (Index("sources_name", "namespace", "name", unique=True),)

    source_id: str = Field(primary_key=True, sa_type=NAME)
    sealed: bytes
