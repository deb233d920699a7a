"""Tables of credentials, tickets and sessions, and of the audit log."""

from typing import Any

from sqlalchemy import BigInteger, Index, SmallInteger, Text
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from storage.postgres.tables.columns import NAME


class CredentialRow(SQLModel, table=True):
    """A `storage.domain.access.credentials.IssuedCredential`, and its secret's stored form.

    `digest` is of an API key's secret; `sealed` is that of an access key pair, encrypted.
    """

    __tablename__ = "credentials"
    __table_args__ = (
        Index("credentials_name", "namespace", "name", "id"),
        Index("credentials_family", "family"),
    )

    id: str = Field(primary_key=True, sa_type=NAME)
    kind: str = Field(sa_type=Text)
    name: str = Field(sa_type=NAME)
    namespace: str = Field(foreign_key="namespaces.name", sa_type=NAME)
    everywhere: bool
    roles: list[str] = Field(sa_type=JSONB)
    grants: list[dict[str, Any]] = Field(sa_type=JSONB)
    rates: dict[str, Any] | None = Field(default=None, sa_type=JSONB)
    family: str = Field(sa_type=NAME)
    version: int = Field(sa_type=BigInteger)
    digest: bytes | None = Field(default=None)
    sealed: bytes | None = Field(default=None)
    created_by: str = Field(sa_type=Text)
    created_at_ms: int = Field(sa_type=BigInteger)
    changed_at_ms: int = Field(sa_type=BigInteger)
    expires_at_ms: int | None = Field(default=None, sa_type=BigInteger)
    last_used_at_ms: int | None = Field(default=None, sa_type=BigInteger)
    revoked_at_ms: int | None = Field(default=None, sa_type=BigInteger)


class TicketRow(SQLModel, table=True):
    """An unredeemed ticket: its requester, and its permissions.

    `digest` is of its token. `ends_at_ms` is the expiry of the requester's own credential, 0: never.
    """

    __tablename__ = "tickets"
    __table_args__ = (
        Index("tickets_expired", "expires_at_ms"),
        Index("tickets_credential", "credential_id"),
    )

    digest: bytes = Field(primary_key=True)
    credential_id: str | None = Field(
        default=None, foreign_key="credentials.id", ondelete="CASCADE", sa_type=NAME
    )
    name: str = Field(sa_type=Text)
    namespace: str = Field(sa_type=NAME)
    grants: list[dict[str, Any]] = Field(sa_type=JSONB)
    rates: dict[str, Any] | None = Field(default=None, sa_type=JSONB)
    ends_at_ms: int = Field(sa_type=BigInteger)
    expires_at_ms: int = Field(sa_type=BigInteger)


class SessionRow(SQLModel, table=True):
    """A session of a browser that logged in.

    `digest` is of its token; `used_at_ms` is a minute behind at most.
    """

    __tablename__ = "sessions"
    __table_args__ = (
        Index("sessions_used", "used_at_ms"),
        Index("sessions_credential", "credential_id"),
    )

    digest: bytes = Field(primary_key=True)
    credential_id: str = Field(foreign_key="credentials.id", ondelete="CASCADE", sa_type=NAME)
    created_at_ms: int = Field(sa_type=BigInteger)
    used_at_ms: int = Field(sa_type=BigInteger)


class AuditRow(SQLModel, table=True):
    """A `storage.domain.access.audit.AuditRecord`; `before` and `after` are JSON."""

    __tablename__ = "audit"
    __table_args__ = (
        Index("audit_namespace", "namespace", "seq"),
        Index("audit_principal", "principal", "seq"),
        Index("audit_resource", "resource", "seq"),
    )

    seq: int = Field(primary_key=True, sa_type=BigInteger)
    format: int = Field(default=1, sa_type=SmallInteger, sa_column_kwargs={"server_default": "1"})
    at_ms: int = Field(sa_type=BigInteger)
    namespace: str = Field(sa_type=NAME)
    principal: str = Field(sa_type=NAME)
    credential: str = Field(sa_type=NAME)
    authenticated: str = Field(sa_type=Text)
    address: str = Field(sa_type=Text)
    door: str = Field(sa_type=Text)
    operation: str = Field(sa_type=Text)
    action: str = Field(sa_type=NAME)
    resource: str = Field(sa_type=NAME)
    request_id: str = Field(sa_type=Text)
    outcome: str = Field(sa_type=Text)
    before: str | None = Field(default=None, sa_type=Text)
    after: str | None = Field(default=None, sa_type=Text)
    prev_hash: str = Field(sa_type=Text)
    hash: str = Field(sa_type=Text)


class AuditPendingRow(SQLModel, table=True):
    """Intent: a `storage.domain.access.audit.AuditedCall` as JSON, and the prior definition."""

    __tablename__ = "audit_pending"
    __table_args__ = (Index("audit_pending_at", "at_ms"),)

    intent_id: str = Field(primary_key=True, sa_type=NAME)
    at_ms: int = Field(sa_type=BigInteger)
    asked: str = Field(sa_type=Text)
    before: str | None = Field(default=None, sa_type=Text)
