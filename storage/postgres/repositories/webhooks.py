"""Repository of webhooks and of their secrets, which are passed encrypted.

A change is announced on `CHANNEL`, in the same transaction, by the webhook's id.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from sqlalchemy import Row, Select, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.domain.names import WebhookName
from storage.domain.webhooks import DeliveryHealth, DisabledReason, Source, Webhook, WebhookSpec
from storage.postgres.database import Database
from storage.postgres.queries import query
from storage.postgres.tables import WebhookRow, WebhookSecretRow

CHANNEL = "millstream_webhooks"

_AFTER_EVERY_CHARACTER = "\x7f"  # names are printable ASCII


class SealedSecret(msgspec.Struct, frozen=True):
    """A secret as stored, encrypted."""

    number: int
    sealed: bytes
    created_at_ms: int
    expires_at_ms: int | None


class StoredWebhook(msgspec.Struct, frozen=True):
    """A webhook and its lease's epoch.

    Its headers have names and no values, which are in `sealed_headers`.
    """

    webhook: Webhook
    sealed_headers: bytes | None
    lease_epoch: int


class NamedWebhook:
    """A name locked against writes by others, and the webhook of that name, if any."""

    def __init__(self, session: AsyncSession, stored: StoredWebhook | None) -> None:
        self._session = session
        self.stored = stored

    async def insert(self, webhook: Webhook, sealed_headers: bytes | None) -> None:
        """Create the webhook."""
        values = webhook_values(webhook, sealed_headers)
        lease = {"lease_epoch": 0, "lease_until_ms": 0}
        await self._session.execute(insert(WebhookRow).values(**values, **lease))

    async def update(self, webhook: Webhook, sealed_headers: bytes | None) -> None:
        """Store a later version, and announce it to the deliverer that serves an earlier one.

        The deliverer has the lease until it has stopped sending.
        """
        values = webhook_values(webhook, sealed_headers)
        await self._session.execute(
            update(WebhookRow)
            .where(col(WebhookRow.webhook_id) == webhook.webhook_id)
            .values(**values)
        )
        announcement = {"channel": CHANNEL, "payload": webhook.webhook_id}
        await self._session.execute(query("notify"), announcement)

    async def delete(self) -> None:
        """Free the name; secrets and log are deleted as well."""
        if self.stored is not None:
            webhook_id = self.stored.webhook.webhook_id
            await self._session.execute(
                delete(WebhookRow).where(col(WebhookRow.webhook_id) == webhook_id)
            )

    async def secrets(self) -> list[SealedSecret]:
        """Return the webhook's secrets, the newest first."""
        assert self.stored is not None
        secrets_by_id = await read_secrets(self._session, [self.stored.webhook.webhook_id])
        return secrets_by_id[self.stored.webhook.webhook_id]

    async def put_secrets(self, webhook_id: str, secrets: Sequence[SealedSecret]) -> None:
        """Replace the webhook's secrets."""
        await self._session.execute(
            delete(WebhookSecretRow).where(col(WebhookSecretRow.webhook_id) == webhook_id)
        )
        rows = [{"webhook_id": webhook_id, **msgspec.structs.asdict(secret)} for secret in secrets]
        await self._session.execute(insert(WebhookSecretRow), rows)


class WebhookRows:
    """Webhooks of every namespace. Every method raises StorageUnavailable or StorageBusy."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @asynccontextmanager
    async def named(
        self, name: WebhookName, *, dry_run: bool = False
    ) -> AsyncGenerator[NamedWebhook]:
        """Lock the name; the block commits at its end, unless it raises or is a dry run.

        Raises OutcomeUnknown.
        """
        async with self._database.writing(dry_run=dry_run) as session:
            await session.execute(query("hold_name"), {"name": f"webhook:{name}"})
            row = (await session.execute(_of(name).with_for_update())).one_or_none()
            yield NamedWebhook(session, None if row is None else stored_of(row))

    async def find(self, name: WebhookName) -> StoredWebhook | None:
        """Return the webhook, or None."""
        async with self._database.reading() as session:
            row = (await session.execute(_of(name))).one_or_none()
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

    async def page(self, namespace: str, prefix: str, after: str, limit: int) -> list[Webhook]:
        """Return the first `limit` webhooks of a namespace with that prefix.

        By name, strictly after `after`.
        """
        name = col(WebhookRow.name)
        statement = _all().where(
            col(WebhookRow.namespace) == namespace,
            name > after,
            name >= prefix,
            name < prefix + _AFTER_EVERY_CHARACTER,
        )
        async with self._database.reading() as session:
            rows = await session.execute(statement.order_by(name).limit(limit))
            return [stored_of(row).webhook for row in rows]


def _all() -> Select[Any]:
    return select(WebhookRow.__table__)  # type: ignore[attr-defined]


def _of(name: WebhookName) -> Select[Any]:
    return _all().where(
        col(WebhookRow.namespace) == name.namespace, col(WebhookRow.name) == name.name
    )


async def read_secrets(
    session: AsyncSession, webhook_ids: Sequence[str]
) -> dict[str, list[SealedSecret]]:
    """Return the secrets of each webhook, the newest first."""
    statement = (
        select(WebhookSecretRow.__table__)  # type: ignore[attr-defined]
        .where(col(WebhookSecretRow.webhook_id).in_(webhook_ids))
        .order_by(col(WebhookSecretRow.number).desc())
    )
    secrets: dict[str, list[SealedSecret]] = {webhook_id: [] for webhook_id in webhook_ids}
    for row in await session.execute(statement):
        secrets[row.webhook_id].append(
            SealedSecret(row.number, row.sealed, row.created_at_ms, row.expires_at_ms)
        )
    return secrets


def webhook_values(webhook: Webhook, sealed_headers: bytes | None) -> dict[str, Any]:
    named = tuple((name, "") for name, _ in webhook.spec.headers or ())
    spec = msgspec.structs.replace(webhook.spec, headers=named)
    reason = webhook.disabled_reason
    return {
        "webhook_id": webhook.webhook_id,
        "namespace": webhook.name.namespace,
        "name": webhook.name.name,
        "spec": _stored_spec(spec),
        "sealed_headers": sealed_headers,
        "version": webhook.version,
        "created_at_ms": webhook.created_at_ms,
        "changed_at_ms": webhook.changed_at_ms,
        "active": webhook.is_active,
        "disabled_at_ms": webhook.disabled_at_ms,
        "disabled_because": None if reason is None else reason.value,
        "health": msgspec.to_builtins(webhook.health, str_keys=True),
    }


def _stored_spec(spec: WebhookSpec) -> dict[str, Any]:
    stored: dict[str, Any] = msgspec.to_builtins(spec) | {
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
    webhook = Webhook(
        name=WebhookName(row.name, row.namespace),
        webhook_id=row.webhook_id,
        spec=_spec_of(row.spec),
        version=row.version,
        created_at_ms=row.created_at_ms,
        changed_at_ms=row.changed_at_ms,
        disabled_at_ms=row.disabled_at_ms,
        disabled_reason=None if reason is None else DisabledReason(reason),
        health=msgspec.convert(row.health, DeliveryHealth, str_keys=True),
    )
    return StoredWebhook(webhook, row.sealed_headers, row.lease_epoch)
