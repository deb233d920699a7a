"""Webhook engine: definitions, secret rotation, enabling.

`storage.webhooks.deliveries` is for the processes that serve them.
"""

import asyncio
import base64
import os
from functools import partial
from typing import NamedTuple, Unpack

from msgspec.structs import replace
from sqlalchemy.ext.asyncio import AsyncSession

from storage.access.secret_box import SecretBox
from storage.catalog.catalog import Catalog
from storage.catalog.definition_store import DefinitionRules, DefinitionStore
from storage.domain import limits
from storage.domain.access.egress import Egress
from storage.domain.access.oauth import POINTER as OAUTH_POINTER
from storage.domain.access.oauth import hide_secret, keep_secret, redact_secret
from storage.domain.clock import Clock
from storage.domain.definitions import OTHER_HIDDEN_VALUE, Put, PutOptions, next_version
from storage.domain.errors import (
    GroupNotFound,
    QueueNotFound,
    ValidationFailed,
    WebhookNotFound,
)
from storage.domain.groups.group import GroupKind
from storage.domain.names import GroupName, QueueName, WebhookName, new_log_id
from storage.domain.webhooks import LeasedWebhook, Secret, SourceKind, Webhook, WebhookSpec
from storage.groups.engine import Groups
from storage.postgres.database import Database
from storage.postgres.repositories.webhooks import LockedWebhook, WebhookRows
from storage.webhooks.secrets import WebhookSecrets

_SECRET_PREFIX = "whsec_"  # noqa: S105  what a secret begins with is none


class PutWebhook(NamedTuple):
    """Webhook after a put, the one before, without secret values, and a new one's secret."""

    definition: Webhook
    created: bool
    before: Webhook | None
    secret: Secret | None


class RotatedSecret(NamedTuple):
    """A new secret, until when the previous one signs as well, and the webhook."""

    secret: Secret
    old_until_ms: int | None
    webhook: Webhook


class Webhooks:
    """The webhooks of a deployment.

    Every verb raises WebhookNotFound for a webhook that does not exist. Results have the names of headers, but not their
    values, and credentials without their secret. Secrets are shown when they are created, and never again.
    """

    def __init__(
        self,
        *,
        database: Database,
        catalog: Catalog,
        groups: Groups,
        box: SecretBox,
        egress: Egress,
        clock: Clock,
    ) -> None:
        self._rows = WebhookRows(database)
        self._catalog = catalog
        self._groups = groups
        self._secrets = WebhookSecrets(box)
        self._store = DefinitionStore(self._rows, _RULES, clock)
        self._rows_with_values = WebhookRows(database, self._secrets)
        self._with_values = DefinitionStore(
            self._rows_with_values, _RULES, clock, check=self._check
        )
        self.get = self._store.get
        """Return the webhook and its health."""
        self.pause = self._store.pause
        """Pause deliveries, or resume them. A webhook that the service disabled stays disabled."""
        self.delete = self._store.delete
        """Delete the webhook, its secrets and its log; return its last definition."""
        self.list_webhooks = self._store.page
        self._egress = egress
        self._clock = clock

    async def put(
        self, name: WebhookName, spec: WebhookSpec, **options: Unpack[PutOptions]
    ) -> PutWebhook:
        """Create the webhook or replace its configuration.

        An equal configuration changes nothing.
        Raises ValidationFailed, PreconditionFailed, SecretsOff, AlreadyExists for `create_only` with a webhook that exists.
        """
        secret = Secret(_new_secret(), self._clock.now_ms())
        insert = partial(self._insert, secret)
        put = await self._with_values.put(name, spec, insert=insert, **options)
        return _put_webhook(put, secret)

    async def _insert(self, secret: Secret, locked: LockedWebhook, webhook: Webhook) -> None:
        sealed = self._secrets.encrypt_secret(webhook.webhook_id, 1, secret)
        await locked.insert(webhook)
        await locked.put_secrets(webhook.webhook_id, [sealed])

    # Webhooks of routes, changed in the transaction of their route's change

    async def put_of_route(
        self, session: AsyncSession, name: WebhookName, spec: WebhookSpec
    ) -> PutWebhook:
        """Create or replace the webhook of a route. Raises ValidationFailed, SecretsOff.

        A header without a value keeps its present one.
        """
        self._check_urls(spec)
        secret = Secret(_new_secret(), self._clock.now_ms())
        locked = await self._rows_with_values.lock_in(session, name)
        if spec.headers is not None:
            present = dict((locked.definition and locked.definition.spec.headers) or ())
            headers = tuple((key, value or present.get(key, "")) for key, value in spec.headers)
            spec = replace(spec, headers=headers)
        spec.check()
        insert = partial(self._insert, secret)
        put = await self._with_values.put_locked(locked, name, spec, insert=insert)
        return _put_webhook(put, secret)

    async def pause_of_route(
        self, session: AsyncSession, name: WebhookName, *, paused: bool
    ) -> None:
        """Pause the webhook of a route, or resume it; does nothing without it."""
        locked = await self._rows.lock_in(session, name)
        if locked.definition is not None:
            await self._store.pause_locked(locked, locked.definition, paused=paused)

    async def wait_until_in_force(self, webhook: Webhook) -> bool:
        """Wait until no deliverer sends by a version before this one; return whether that is so.

        A deliverer that is alive stops within moments, after its requests in progress; the lease of one that is not ends
        within WEBHOOK_LEASE_MS. Returns False after WEBHOOK_CHANGE_WAIT_MS.
        """
        poll_s = limits.WEBHOOK_CHANGE_POLL_MS / limits.SECOND_MS
        for _ in range(limits.WEBHOOK_CHANGE_WAIT_MS // limits.WEBHOOK_CHANGE_POLL_MS):
            if await self._is_in_force(webhook):
                return True
            await asyncio.sleep(poll_s)
        return await self._is_in_force(webhook)

    async def _is_in_force(self, webhook: Webhook) -> bool:
        script_time = self._clock.script_time()
        now_ms = int(script_time) if script_time else None
        return await self._rows.is_in_force(webhook.webhook_id, webhook.version, now_ms)

    async def _check(self, name: WebhookName, spec: WebhookSpec) -> None:
        """Raise ValidationFailed for a URL, source or dead-letter queue that it cannot have."""
        self._check_urls(spec)
        await self._check_source(name, spec)

    def _check_urls(self, spec: WebhookSpec) -> None:
        self._egress.check_url(spec.url)
        if spec.credentials is not None:
            self._egress.check_url(spec.credentials.oauth.token_url, f"{OAUTH_POINTER}/token_url")

    async def _check_source(self, name: WebhookName, spec: WebhookSpec) -> None:
        """Raise ValidationFailed unless the source and the dead-letter queue exist."""
        namespace, source = name.namespace, spec.source
        if source.kind is SourceKind.QUEUE:
            queue = QueueName(source.name, namespace)
            if queue.route is not None:
                detail = "The queue of a route has the route's own webhook"
                raise ValidationFailed.at("/source", detail, "not_allowed")
            await self._require_queue(queue, "/source")
            return
        try:
            group = await self._groups.get(GroupName(source.name, namespace))
        except GroupNotFound as error:
            raise ValidationFailed.at("/source", error.detail, "not_found") from None
        if group.spec.kind is GroupKind.SIMPLE:
            detail = "A webhook requires an ordered group; simple groups have no members"
            raise ValidationFailed.at("/source", detail, "not_supported")
        if spec.dead_letter_queue is not None:
            target = QueueName(spec.dead_letter_queue, namespace)
            await self._require_queue(target, "/dead_letter_queue")

    async def _require_queue(self, queue: QueueName, pointer: str) -> None:
        try:
            await self._catalog.fresh_queue(queue)
        except QueueNotFound as error:
            raise ValidationFailed.at(pointer, error.detail, "not_found") from None

    async def rotate(self, name: WebhookName, overlap_ms: int) -> RotatedSecret:
        """Create a new secret; the previous one signs as well for `overlap_ms` from now."""
        if not 0 <= overlap_ms <= limits.WEBHOOK_OVERLAP_MS_MAX:
            most = limits.WEBHOOK_OVERLAP_MS_MAX // limits.SECOND_MS
            raise ValidationFailed.at("/overlap_seconds", f"must be 0 to {most}", "out_of_range")
        now_ms = self._clock.now_ms()
        async with self._store.changing(name) as (locked, webhook):
            old = await locked.secrets()
            secret, until_ms = Secret(_new_secret(), now_ms), now_ms + overlap_ms
            number = old[0].number + 1 if old else 1
            sealed = self._secrets.encrypt_secret(webhook.webhook_id, number, secret)
            overlapping = [
                replace(one, expires_at_ms=_min_deadline(one.expires_at_ms, until_ms))
                for one in old
            ]
            living = [one for one in overlapping if (one.expires_at_ms or 0) > now_ms]
            secrets = [sealed, *living][: limits.WEBHOOK_SECRETS_MAX]
            await locked.put_secrets(webhook.webhook_id, secrets)
            rotated = next_version(webhook, now_ms)
            await locked.update(rotated)
            return RotatedSecret(secret, until_ms if living else None, rotated)

    async def enable(self, name: WebhookName) -> Webhook:
        """Enable the webhook, whether it was paused by its owner or disabled by the service.

        Events that wait for their own retry are retried immediately.
        """
        async with self._store.changing(name) as (locked, webhook):
            enabled = next_version(
                webhook,
                self._clock.now_ms(),
                spec=replace(webhook.spec, paused=False),
                disabled_at_ms=None,
                disabled_reason=None,
                health=replace(webhook.health, failing_since_ms=None, blocked={}),
            )
            await locked.update(enabled)
            return enabled

    async def opened(self, name: WebhookName) -> LeasedWebhook:
        """Return the webhook with its secret values and secrets, to send an event on request.

        It has no lease.
        """
        stored = await self._rows.find_stored(name)
        if stored is None:
            raise _not_found(name)
        secrets = await self._rows.secrets(stored.webhook.webhook_id)
        return self._secrets.decrypt(stored, secrets)


def _new_secret() -> str:
    return _SECRET_PREFIX + base64.b64encode(os.urandom(limits.WEBHOOK_SECRET_BYTES)).decode()


def _new_webhook(name: WebhookName, spec: WebhookSpec, now_ms: int) -> Webhook:
    return Webhook(
        name=name,
        webhook_id=new_log_id(),
        spec=replace(
            spec, headers=spec.headers or (), credentials=keep_secret(spec.credentials, None)
        ),
        version=1,
        created_at_ms=now_ms,
        changed_at_ms=now_ms,
    )


def _keep_values(current: WebhookSpec, spec: WebhookSpec) -> WebhookSpec:
    headers = current.headers if spec.headers is None else spec.headers
    credentials = keep_secret(spec.credentials, current.credentials)
    return replace(spec, headers=headers, credentials=credentials)


def _refuse_change(old: WebhookSpec, new: WebhookSpec) -> None:
    if new.source != old.source:
        detail = "The source of a webhook is immutable; create another webhook"
        raise ValidationFailed.at("/source", detail, "immutable")


def _redact(before: Webhook, after: WebhookSpec) -> Webhook:
    """Return `before` with a marker in place of each secret value that `after` changes."""
    new = dict(after.headers or ())
    headers = tuple(
        (name, "" if new.get(name, value) == value else OTHER_HIDDEN_VALUE)
        for name, value in before.spec.headers or ()
    )
    credentials = redact_secret(before.spec.credentials, after.credentials)
    return replace(before, spec=replace(before.spec, headers=headers, credentials=credentials))


def _without_values(webhook: Webhook) -> Webhook:
    named = tuple((name, "") for name, _ in webhook.spec.headers or ())
    credentials = hide_secret(webhook.spec.credentials)
    return replace(webhook, spec=replace(webhook.spec, headers=named, credentials=credentials))


def _put_webhook(put: Put[Webhook], secret: Secret) -> PutWebhook:
    webhook = _without_values(put.definition)
    return PutWebhook(webhook, put.created, put.before, secret if put.created else None)


def _not_found(name: WebhookName) -> WebhookNotFound:
    return WebhookNotFound(f"Webhook '{name.name}' does not exist.")


_RULES: DefinitionRules[WebhookName, WebhookSpec, Webhook] = DefinitionRules(
    not_found=_not_found,
    create=_new_webhook,
    check_change=_refuse_change,
    merge=_keep_values,
    is_pausable=True,
    redact=_redact,
    check_name=WebhookName.check_is_free,
)


def _min_deadline(deadline_ms: int | None, other_ms: int) -> int:
    return other_ms if deadline_ms is None else min(deadline_ms, other_ms)
