"""Leases of webhooks, and the log of deliveries.

The clock of leases is Postgres's own unless `now_ms` is given.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Row, func, select, tuple_
from sqlmodel import col

from storage.domain import limits
from storage.domain.errors import StorageUnavailable
from storage.domain.webhooks import (
    Attempt,
    DeliveryFilter,
    DeliveryHealth,
    DeliveryLogEntry,
    DeliveryStatus,
    DisabledReason,
    LoggedDelivery,
    Payload,
    PayloadLocation,
    WebhookDelivery,
    WebhookLease,
)
from storage.postgres.queries import query
from storage.postgres.repositories.webhooks import (
    SealedSecret,
    StoredWebhook,
    read_secrets,
    stored_of,
)
from storage.postgres.repository import Repository
from storage.postgres.rows import rows_of, struct_of
from storage.postgres.tables import WebhookDeliveryRow, WebhookRow

Seen = tuple[int, str]
"""End of a page of deliveries: the first attempt of its last delivery, and that event's id."""

_LAST_OF_THEM = f"$[last - {limits.WEBHOOK_LOG_ATTEMPTS_MAX - 1} to last]"
_pack = msgspec.msgpack.Encoder()
_json = msgspec.json.Encoder()
_unpack = msgspec.msgpack.Decoder(Payload)


class RenewedLease(msgspec.Struct, frozen=True):
    """A renewed lease, and the version of its webhook."""

    lease: WebhookLease
    version: int


class Shares(msgspec.Struct, frozen=True):
    """Number of deliverers, of active webhooks to share among them, and of disabled webhooks."""

    deliverers: int
    active: int
    disabled: int


class DeliveryRows(Repository):
    """Repository of leases and the log.

    Every method raises StorageUnavailable or StorageBusy, and may then be repeated.
    """

    # Leases

    async def beat(self, deliverer: str, lease_ms: int, now_ms: int | None) -> list[RenewedLease]:
        """Renew the deliverer's leases, and return them."""
        parameters = {"deliverer": deliverer, "lease_ms": lease_ms, "now_ms": now_ms}
        async with self._database.autocommitting() as session:
            rows = await session.execute(query("beat_deliverer"), parameters)
            return [
                RenewedLease(WebhookLease(row.webhook_id, row.lease_epoch), row.version)
                for row in rows
            ]

    async def shares(self, lease_ms: int, now_ms: int | None) -> Shares:
        """Return the numbers of deliverers and of webhooks to share among them."""
        parameters = {"lease_ms": lease_ms, "now_ms": now_ms}
        async with self._database.reading() as session:
            row = (await session.execute(query("webhooks_to_share"), parameters)).one()
            return Shares(row.deliverers, row.active, row.disabled)

    async def claim(
        self, deliverer: str, webhooks_max: int, lease_ms: int, now_ms: int | None
    ) -> list[tuple[StoredWebhook, list[SealedSecret]]]:
        """Lease up to `webhooks_max` webhooks without a holder; return them with their secrets."""
        parameters = {
            "deliverer": deliverer,
            "wanted": webhooks_max,
            "lease_ms": lease_ms,
            "now_ms": now_ms,
        }
        async with self._database.writing(unknown=StorageUnavailable) as session:
            rows = await session.execute(query("claim_webhooks"), parameters)
            claimed = [stored_of(row) for row in rows]
            secrets = await read_secrets(session, [stored.webhook.webhook_id for stored in claimed])
            return [(stored, secrets[stored.webhook.webhook_id]) for stored in claimed]

    async def release(self, deliverer: str, webhook_ids: Sequence[str]) -> None:
        """Release the leases of these webhooks."""
        parameters = {"deliverer": deliverer, "webhook_ids": list(webhook_ids)}
        async with self._database.autocommitting() as session:
            await session.execute(query("release_webhooks"), parameters)

    async def remove_deliverer(self, deliverer: str, retention_ms: int) -> None:
        """Remove a deliverer from the list, and those that were not seen for `retention_ms`."""
        parameters = {"deliverer": deliverer, "kept_ms": retention_ms}
        async with self._database.autocommitting() as session:
            await session.execute(query("forget_deliverers"), parameters)

    # Reports of a holder

    async def disable(
        self, lease: WebhookLease, because: DisabledReason, health: DeliveryHealth, now_ms: int
    ) -> bool:
        """Disable the webhook; False if another deliverer has the lease."""
        parameters = {
            "webhook_id": lease.webhook_id,
            "epoch": lease.epoch,
            "because": because.value,
            "health": _json.encode(health).decode(),
            "now_ms": now_ms,
        }
        async with self._database.autocommitting() as session:
            return bool((await session.execute(query("disable_webhook"), parameters)).rowcount)  # type: ignore[attr-defined]

    async def store_health(self, reports: Sequence[tuple[WebhookLease, DeliveryHealth]]) -> None:
        """Store the health of webhooks; reports of former holders are ignored."""
        parameters = {
            "webhook_ids": [lease.webhook_id for lease, _ in reports],
            "epochs": [lease.epoch for lease, _ in reports],
            "healths": [_json.encode(health).decode() for _, health in reports],
        }
        async with self._database.autocommitting() as session:
            await session.execute(query("store_health"), parameters)

    # The log

    async def log(self, logged: Sequence[LoggedDelivery]) -> None:
        """Add entries, each event of a webhook at most once, in one statement."""
        entries = [item.entry for item in logged]
        places = [entry.location for entry in entries]
        parameters = {
            "webhook_ids": [item.webhook_id for item in logged],
            "event_ids": [entry.event_id for entry in entries],
            "statuses": [entry.status.value for entry in entries],
            "attempts": [entry.attempts for entry in entries],
            "kept": [_encode_attempt(entry) for entry in entries],
            "ats": [entry.at_ms for entry in entries],
            "next_ats": [entry.next_at_ms for entry in entries],
            "kept_ms": [item.retention_ms for item in logged],
            "shards": [None if place is None else place.shard for place in places],
            "places": [None if place is None else place.offset for place in places],
            "event_ats": [entry.event_at_ms for entry in entries],
            "event_keys": [_plain(entry.key) for entry in entries],
            "event_groups": [_plain(entry.group) for entry in entries],
            "payloads": [
                None if entry.payload is None else _pack.encode(entry.payload) for entry in entries
            ],
            "last_of_them": _LAST_OF_THEM,
        }
        async with self._database.autocommitting() as session:
            await session.execute(query("log_deliveries"), parameters)

    async def find(self, webhook_id: str, event_id: str) -> WebhookDelivery | None:
        """Return one delivery, or None."""
        deliveries = await self._select(
            col(WebhookDeliveryRow.webhook_id) == webhook_id,
            col(WebhookDeliveryRow.event_id) == event_id,
            limit=1,
        )
        return deliveries[0] if deliveries else None

    async def page(
        self,
        webhook_id: str,
        delivery_filter: DeliveryFilter,
        *,
        after: Seen | None,
        limit: int,
    ) -> list[WebhookDelivery]:
        """Return deliveries, the newest first, strictly after `after`."""
        conditions = _conditions(webhook_id, delivery_filter)
        if after is not None:
            row = WebhookDeliveryRow
            conditions.append(tuple_(col(row.first_at_ms), col(row.event_id)) < after)
        return await self._select(*conditions, limit=limit)

    async def count(self, webhook_id: str, delivery_filter: DeliveryFilter, limit: int) -> int:
        """Count deliveries, at most `limit`."""
        matching = select(col(WebhookDeliveryRow.event_id)).where(
            *_conditions(webhook_id, delivery_filter)
        )
        statement = select(func.count()).select_from(matching.limit(limit).subquery())
        async with self._database.reading() as session:
            return int((await session.execute(statement)).scalar_one())

    async def of_event(
        self, namespace: str, sources: Sequence[str], event_id: str, limit: int
    ) -> list[tuple[str, WebhookDelivery]]:
        """Return the deliveries of an event by the webhooks of its sources, with their names."""
        webhook, delivery = WebhookRow, WebhookDeliveryRow
        same = col(delivery.webhook_id) == col(webhook.webhook_id)
        statement = (
            rows_of(delivery)
            .add_columns(col(webhook.name).label("webhook"))
            .join(webhook, same)
            .where(
                col(webhook.namespace) == namespace,
                col(webhook.spec)["source"].astext.in_(sources),
                col(delivery.event_id) == event_id,
            )
            .order_by(col(webhook.name))
            .limit(limit)
        )
        async with self._database.reading() as session:
            rows = await session.execute(statement)
            return [(row.webhook, _delivery(row)) for row in rows]

    async def delete_expired(self, now_ms: int, limit: int) -> int:
        """Delete deliveries whose retention has passed, at most `limit`; return how many."""
        async with self._database.autocommitting() as session:
            deleted = await session.execute(
                query("forget_deliveries"), {"now_ms": now_ms, "limit": limit}
            )
            return int(deleted.rowcount)  # type: ignore[attr-defined]

    async def _select(self, *conditions: Any, limit: int) -> list[WebhookDelivery]:
        row = WebhookDeliveryRow
        newest_first = (col(row.first_at_ms).desc(), col(row.event_id).desc())
        statement = rows_of(row).where(*conditions).order_by(*newest_first).limit(limit)
        async with self._database.reading() as session:
            return [_delivery(record) for record in await session.execute(statement)]


def _conditions(webhook_id: str, delivery_filter: DeliveryFilter) -> list[Any]:
    row, last_attempt = WebhookDeliveryRow, col(WebhookDeliveryRow.kept)[-1]
    status, outcome = delivery_filter.status, delivery_filter.outcome
    conditions = [
        (col(row.status), None if status is None else status.value),
        (col(row.event_id), delivery_filter.event_id),
        (last_attempt["status"].as_integer(), delivery_filter.response_status),
        (last_attempt["outcome"].astext, None if outcome is None else outcome.value),
    ]
    first_at_ms = col(row.first_at_ms)
    return [
        col(row.webhook_id) == webhook_id,
        *(column == value for column, value in conditions if value is not None),
        *([] if delivery_filter.from_ms is None else [first_at_ms >= delivery_filter.from_ms]),
        *([] if delivery_filter.to_ms is None else [first_at_ms < delivery_filter.to_ms]),
    ]


def _encode_attempt(entry: DeliveryLogEntry) -> str:
    if entry.attempt is None:
        return "[]"
    return _json.encode([entry.attempt.log_fields()]).decode().replace("\\u0000", "\\ufffd")


def _plain(text: str) -> str:
    return text.replace("\0", "\ufffd")  # Postgres stores no NUL


def _delivery(row: Row[Any]) -> WebhookDelivery:
    return struct_of(
        WebhookDelivery,
        row,
        status=DeliveryStatus(row.status),
        last_attempts=tuple(msgspec.convert(attempt, Attempt) for attempt in row.kept),
        location=None if row.place is None else PayloadLocation(row.place, row.shard),
        key=row.event_key,
        group=row.event_group,
        payload=None if row.payload is None else _unpack.decode(row.payload),
    )
