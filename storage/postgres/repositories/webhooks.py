"""Repository of webhooks and of their secrets, which are passed encrypted.

A change is announced on `CHANNEL`, in the same transaction, by the webhook's id.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec
from sqlalchemy import Row, delete, insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.domain.access.oauth import hide_secret
from storage.domain.names import ROUTE_PREFIX, WebhookName
from storage.domain.webhooks import DeliveryHealth, DisabledReason, Source, Webhook, WebhookSpec
from storage.postgres.database import Database
from storage.postgres.definition_table import DefinitionTable, LockedDefinition
from storage.postgres.queries import query
from storage.postgres.rows import rows_of, struct_of
from storage.postgres.tables import WebhookRow, WebhookSecretRow

CHANNEL = "millstream_webhooks"


class SealedSecret(msgspec.Struct, frozen=True):
    """A secret as stored, encrypted."""

    number: int
    sealed: bytes
    created_at_ms: int
    expires_at_ms: int | None


class StoredWebhook(msgspec.Struct, frozen=True):
    """A webhook and its lease's epoch.

    The values of its headers, and the secret of its credentials, are in `sealed_headers` alone.
    """

    webhook: Webhook
    sealed_headers: bytes | None
    lease_epoch: int


class SecretValueCodec(Protocol):
    """Encryption of the values of a webhook's headers, and of the secret of its credentials."""

    def encrypt_values(self, webhook: Webhook) -> bytes | None:
        """Return the encrypted values; None without any."""

    def decrypt_values(self, stored: StoredWebhook) -> Webhook:
        """Return the webhook with its values."""


class LockedWebhook(LockedDefinition[Webhook]):
    """A name locked against writes by others, and the webhook of that name, if any."""

    async def insert(self, definition: Webhook) -> None:
        """Create the webhook, and announce it to the deliverers."""
        self.definition = definition
        await super().insert(definition)

    async def announce(self, *, is_new: bool = False) -> None:
        """Notify the deliverers, of which one may serve an earlier version.

        That one has the lease until it has stopped sending.
        """
        if self.definition is not None:
            announcement = {"channel": CHANNEL, "payload": self.definition.webhook_id}
            await self.session.execute(query("notify"), announcement)

    async def secrets(self) -> list[SealedSecret]:
        """Return the webhook's secrets, the newest first."""
        assert self.definition is not None
        secrets_by_id = await read_secrets(self.session, [self.definition.webhook_id])
        return secrets_by_id[self.definition.webhook_id]

    async def put_secrets(self, webhook_id: str, secrets: Sequence[SealedSecret]) -> None:
        """Replace the webhook's secrets."""
        await self.session.execute(
            delete(WebhookSecretRow).where(col(WebhookSecretRow.webhook_id) == webhook_id)
        )
        rows = [{"webhook_id": webhook_id, **msgspec.structs.asdict(secret)} for secret in secrets]
        await self.session.execute(insert(WebhookSecretRow), rows)


class WebhookRows(DefinitionTable[WebhookName, Webhook, LockedWebhook]):
    """Webhooks of every namespace. Every method raises StorageUnavailable or StorageBusy.

    With a codec, definitions have the values of their headers and the secret of their credentials; without one they have neither,
    and changes leave both alone.
    """

    kind = "webhook"
    table = WebhookRow
    id = "webhook_id"
    apart_prefix = ROUTE_PREFIX
    is_row_locked = True  # deliverers write the health

    def __init__(self, database: Database, codec: SecretValueCodec | None = None) -> None:
        super().__init__(database)
        self._codec = codec

    def definition_of(self, row: Row[Any]) -> Webhook:
        stored = stored_of(row)
        return stored.webhook if self._codec is None else self._codec.decrypt_values(stored)

    def values(self, definition: Webhook) -> dict[str, Any]:
        return super().values(definition) | {"lease_epoch": 0, "lease_until_ms": 0}

    def changes(self, definition: Webhook) -> dict[str, Any]:
        reason = definition.disabled_reason
        values = {
            "spec": _stored_spec(definition.spec),
            "version": definition.version,
            "changed_at_ms": definition.changed_at_ms,
            "active": definition.is_active,
            "disabled_at_ms": definition.disabled_at_ms,
            "disabled_because": None if reason is None else reason.value,
            "health": msgspec.to_builtins(definition.health, str_keys=True),
        }
        if self._codec is not None:
            values["sealed_headers"] = self._codec.encrypt_values(definition)
        return values

    def locked(
        self, session: AsyncSession, name: WebhookName, row: Row[Any] | None
    ) -> LockedWebhook:
        return LockedWebhook(session, self, name, row)

    async def find_stored(self, name: WebhookName) -> StoredWebhook | None:
        """Return the webhook with its encrypted headers, or None."""
        async with self._database.reading() as session:
            statement = self.select().where(self._is_one_of([name]))
            row = (await session.execute(statement)).one_or_none()
            return None if row is None else stored_of(row)

    async def is_in_force(self, webhook_id: str, version: int, now_ms: int | None) -> bool:
        """Return whether no deliverer sends by a version before this one."""
        parameters = {"webhook_id": webhook_id, "version": version, "now_ms": now_ms}
        async with self._database.reading() as session:
            row = (await session.execute(query("webhook_in_force"), parameters)).one_or_none()
            return row is None or row.in_force

    async def secrets(self, webhook_id: str) -> list[SealedSecret]:
        """Return a webhook's secrets, the newest first."""
        async with self._database.reading() as session:
            return (await read_secrets(session, [webhook_id]))[webhook_id]


async def read_secrets(
    session: AsyncSession, webhook_ids: Sequence[str]
) -> dict[str, list[SealedSecret]]:
    """Return the secrets of each webhook, the newest first."""
    statement = (
        rows_of(WebhookSecretRow)
        .where(col(WebhookSecretRow.webhook_id).in_(webhook_ids))
        .order_by(col(WebhookSecretRow.number).desc())
    )
    secrets: dict[str, list[SealedSecret]] = {webhook_id: [] for webhook_id in webhook_ids}
    for row in await session.execute(statement):
        secrets[row.webhook_id].append(struct_of(SealedSecret, row))
    return secrets


def _stored_spec(spec: WebhookSpec) -> dict[str, Any]:
    headers = tuple((name, "") for name, _ in spec.headers or ())
    stored: dict[str, Any] = msgspec.to_builtins(spec) | {
        "headers": msgspec.to_builtins(headers),
        "credentials": msgspec.to_builtins(hide_secret(spec.credentials)),
        "source": str(spec.source),
        "enabled": not spec.paused,
    }
    del stored["paused"]  # processes of the previous version read `enabled`
    return stored


def _spec_of(stored: dict[str, Any]) -> WebhookSpec:
    source = msgspec.to_builtins(Source.of(stored["source"]))
    values = stored | {"source": source, "paused": not stored["enabled"]}
    return msgspec.convert(values, WebhookSpec)


def stored_of(row: Row[Any]) -> StoredWebhook:
    """Return the webhook of a row that has all its columns."""
    reason = row.disabled_because
    webhook = struct_of(
        Webhook,
        row,
        name=WebhookName(row.name, row.namespace),
        spec=_spec_of(row.spec),
        disabled_reason=None if reason is None else DisabledReason(reason),
        health=msgspec.convert(row.health, DeliveryHealth, str_keys=True),
    )
    return StoredWebhook(webhook, row.sealed_headers, row.lease_epoch)
