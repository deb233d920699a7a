"""Tables of namespaces: their quotas, settings and mutes of alerts."""

from typing import Any

from sqlalchemy import BigInteger, Text
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from storage.postgres.tables.columns import NAME


class NamespaceRow(SQLModel, table=True):
    """A `storage.domain.quotas.Namespace`."""

    __tablename__ = "namespaces"

    name: str = Field(primary_key=True, sa_type=NAME)
    account_id: str = Field(unique=True, sa_type=Text)
    quotas: dict[str, Any] = Field(sa_type=JSONB)
    version: int = Field(sa_type=BigInteger)
    created_at_ms: int = Field(sa_type=BigInteger)
    changed_at_ms: int = Field(sa_type=BigInteger)
    stored_bytes: int | None = Field(default=None, sa_type=BigInteger)
    over: bool


class AccountSettingsRow(SQLModel, table=True):
    """Settings of a namespace, by name."""

    __tablename__ = "account_settings"

    namespace: str = Field(primary_key=True, foreign_key="namespaces.name", sa_type=NAME)
    settings: dict[str, Any] = Field(sa_type=JSONB)


class AlertMuteRow(SQLModel, table=True):
    """A mute of an object's alerts of one kind: a `storage.domain.alerts.mutes.AlertMute`."""

    __tablename__ = "alert_mutes"

    namespace: str = Field(
        primary_key=True, foreign_key="namespaces.name", ondelete="CASCADE", sa_type=NAME
    )
    kind: str = Field(primary_key=True, sa_type=NAME)
    object: str = Field(primary_key=True, sa_type=NAME)
    muted_by: str = Field(sa_type=Text)
    muted_at_ms: int = Field(sa_type=BigInteger)
    until_ms: int = Field(sa_type=BigInteger)
