"""Who serves which webhook, and the log of deliveries. The clock of leases is Postgres's own unless one is told."""

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Row, select, tuple_
from sqlmodel import col

from storage.domain import limits
from storage.domain.errors import StorageUnavailable
from storage.domain.webhooks import (
    Attempt,
    Delivery,
    DeliveryStatus,
    DisabledBecause,
    Health,
    Lease,
    LogEntry,
    Logged,
    Payload,
    Place,
)
from storage.postgres.database import Database
from storage.postgres.queries import query
from storage.postgres.repositories.webhooks import (
    SealedSecret,
    StoredWebhook,
    read_secrets,
    stored_of,
)
from storage.postgres.tables import WebhookDeliveryRow

Seen = tuple[int, str]
"""Where a page of deliveries ends: when its last was first tried, and its event's id."""

_LAST_OF_THEM = f"$[last - {limits.WEBHOOK_ATTEMPTS_KEPT - 1} to last]"
_pack = msgspec.msgpack.Encoder()
_json = msgspec.json.Encoder()
_unpack = msgspec.msgpack.Decoder(Payload)


class Held(msgspec.Struct, frozen=True):
    """A lease that was renewed, and the version of its webhook."""

    lease: Lease
    version: int


class Shares(msgspec.Struct, frozen=True):
    """How many deliverers there are, and how many webhooks for them; and how many that were disabled."""

    deliverers: int
    active: int
    disabled: int


class DeliveryRows:
    """Leases and the log. Every method raises StorageUnavailable or StorageBusy, and may then be repeated."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # Leases

    async def beat(self, deliverer: str, lease_ms: int, now_ms: int | None) -> list[Held]:
        """Renew what the deliverer holds, and tell it."""
        asked = {"deliverer": deliverer, "lease_ms": lease_ms, "now_ms": now_ms}
        async with self._database.writing(unknown=StorageUnavailable) as session:
            rows = await session.execute(query("beat_deliverer"), asked)
            return [Held(Lease(row.webhook_id, row.lease_epoch), row.version) for row in rows]

    async def shares(self, lease_ms: int, now_ms: int | None) -> Shares:
        """Among how many deliverers how many webhooks are to be shared."""
        asked = {"lease_ms": lease_ms, "now_ms": now_ms}
        async with self._database.reading() as session:
            row = (await session.execute(query("webhooks_to_share"), asked)).one()
            return Shares(row.deliverers, row.active, row.disabled)

    async def claim(
        self, deliverer: str, wanted: int, lease_ms: int, now_ms: int | None
    ) -> list[tuple[StoredWebhook, list[SealedSecret]]]:
        """Give the deliverer up to so many webhooks that nobody holds, with their secrets."""
        asked = {
            "deliverer": deliverer,
            "wanted": wanted,
            "lease_ms": lease_ms,
            "now_ms": now_ms,
        }
        async with self._database.writing(unknown=StorageUnavailable) as session:
            rows = await session.execute(query("claim_webhooks"), asked)
            claimed = [stored_of(row) for row in rows]
            secrets = await read_secrets(session, [one.webhook.webhook_id for one in claimed])
            return [(one, secrets[one.webhook.webhook_id]) for one in claimed]

    async def release(self, deliverer: str, webhook_ids: Sequence[str]) -> None:
        """Let others have these."""
        asked = {"deliverer": deliverer, "webhook_ids": list(webhook_ids)}
        async with self._database.writing(unknown=StorageUnavailable) as session:
            await session.execute(query("release_webhooks"), asked)

    async def forget_deliverer(self, deliverer: str, kept_ms: int) -> None:
        """Take a deliverer from the list, and those that were not seen for so long."""
        asked = {"deliverer": deliverer, "kept_ms": kept_ms}
        async with self._database.writing(unknown=StorageUnavailable) as session:
            await session.execute(query("forget_deliverers"), asked)

    # What a holder says

    async def disable(
        self, lease: Lease, because: DisabledBecause, health: Health, now_ms: int
    ) -> bool:
        """Disable the webhook; False where the lease is another's."""
        asked = {
            "webhook_id": lease.webhook_id,
            "epoch": lease.epoch,
            "because": because.value,
            "health": _json.encode(health).decode(),
            "now_ms": now_ms,
        }
        async with self._database.writing(unknown=StorageUnavailable) as session:
            return bool((await session.execute(query("disable_webhook"), asked)).rowcount)  # type: ignore[attr-defined]

    async def store_health(self, told: Sequence[tuple[Lease, Health]]) -> None:
        """Store how webhooks do; a former holder's word is not heard."""
        asked = {
            "webhook_ids": [lease.webhook_id for lease, _ in told],
            "epochs": [lease.epoch for lease, _ in told],
            "healths": [_json.encode(health).decode() for _, health in told],
        }
        async with self._database.writing(unknown=StorageUnavailable) as session:
            await session.execute(query("store_health"), asked)

    # The log

    async def log(self, told: Sequence[Logged]) -> None:
        """Add entries, each event of a webhook at most once, in one statement."""
        entries = [one.entry for one in told]
        places = [entry.place for entry in entries]
        asked = {
            "webhook_ids": [one.webhook_id for one in told],
            "event_ids": [entry.event_id for entry in entries],
            "statuses": [entry.status.value for entry in entries],
            "attempts": [entry.attempts for entry in entries],
            "kept": [_kept(entry) for entry in entries],
            "ats": [entry.at_ms for entry in entries],
            "next_ats": [entry.next_at_ms for entry in entries],
            "kept_ms": [one.kept_ms for one in told],
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
        async with self._database.writing(unknown=StorageUnavailable) as session:
            await session.execute(query("log_deliveries"), asked)

    async def find(self, webhook_id: str, event_id: str) -> Delivery | None:
        """One delivery, or None."""
        found = await self._select(
            col(WebhookDeliveryRow.webhook_id) == webhook_id,
            col(WebhookDeliveryRow.event_id) == event_id,
            limit=1,
        )
        return found[0] if found else None

    async def page(
        self,
        webhook_id: str,
        *,
        status: DeliveryStatus | None,
        event_id: str | None,
        from_ms: int | None,
        to_ms: int | None,
        after: Seen | None,
        limit: int,
    ) -> list[Delivery]:
        """Deliveries, the newest first, strictly after `after`; what is None is not looked at."""
        row = WebhookDeliveryRow
        conditions = [col(row.webhook_id) == webhook_id]
        if status is not None:
            conditions.append(col(row.status) == status.value)
        if event_id is not None:
            conditions.append(col(row.event_id) == event_id)
        if from_ms is not None:
            conditions.append(col(row.first_at_ms) >= from_ms)
        if to_ms is not None:
            conditions.append(col(row.first_at_ms) < to_ms)
        if after is not None:
            conditions.append(tuple_(col(row.first_at_ms), col(row.event_id)) < after)
        return await self._select(*conditions, limit=limit)

    async def forget(self, now_ms: int, limit: int) -> int:
        """Delete what need not be kept any longer, at most `limit`; gives how many."""
        async with self._database.writing(unknown=StorageUnavailable) as session:
            gone = await session.execute(
                query("forget_deliveries"), {"now_ms": now_ms, "limit": limit}
            )
            return int(gone.rowcount)  # type: ignore[attr-defined]

    async def _select(self, *conditions: Any, limit: int) -> list[Delivery]:
        row = WebhookDeliveryRow
        newest_first = (col(row.first_at_ms).desc(), col(row.event_id).desc())
        wanted = (
            select(row.__table__)  # type: ignore[attr-defined]
            .where(*conditions)
            .order_by(*newest_first)
            .limit(limit)
        )
        async with self._database.reading() as session:
            return [_delivery(found) for found in await session.execute(wanted)]


def _kept(entry: LogEntry) -> str:
    if entry.attempt is None:
        return "[]"
    return _json.encode([entry.attempt.told()]).decode().replace("\\u0000", "\\ufffd")


def _plain(word: str) -> str:
    return word.replace("\0", "\ufffd")  # Postgres keeps no NUL


def _delivery(row: Row[Any]) -> Delivery:
    return Delivery(
        event_id=row.event_id,
        status=DeliveryStatus(row.status),
        attempts=row.attempts,
        kept=tuple(msgspec.convert(one, Attempt) for one in row.kept),
        first_at_ms=row.first_at_ms,
        last_at_ms=row.last_at_ms,
        next_at_ms=row.next_at_ms,
        place=None if row.place is None else Place(row.place, row.shard),
        event_at_ms=row.event_at_ms,
        key=row.event_key,
        group=row.event_group,
        payload=None if row.payload is None else _unpack.decode(row.payload),
    )
