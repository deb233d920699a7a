"""Encryption of webhook secrets and header values at rest."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from storage.access.secret_box import SecretBox
from storage.domain.webhooks import LeasedWebhook, Secret, Webhook, WebhookLease
from storage.postgres.repositories.webhooks import (
    SealedSecret,
    StoredWebhook,
)


class WebhookSecrets:
    """Encryption of a webhook's secrets; each is bound to the webhook it belongs to."""

    def __init__(self, box: SecretBox) -> None:
        self._box = box

    def encrypt_secret(self, webhook_id: str, number: int, secret: Secret) -> SealedSecret:
        """Encrypt a secret for storage."""
        sealed = self._box.encrypt(secret.value.encode(), webhook_id)
        return SealedSecret(number, sealed, secret.created_at_ms, secret.expires_at_ms)

    def encrypt_headers(self, webhook: Webhook) -> bytes | None:
        """Encrypt the values of a webhook's headers for storage; None if it has none."""
        if not webhook.spec.headers:
            return None
        return self._box.encrypt(msgspec.msgpack.encode(webhook.spec.headers), webhook.webhook_id)

    def decrypt_headers(self, stored: StoredWebhook) -> Webhook:
        """Return the webhook with the values of its headers."""
        if stored.sealed_headers is None:
            return stored.webhook
        packed = self._box.decrypt(stored.sealed_headers, stored.webhook.webhook_id)
        headers = msgspec.msgpack.decode(packed, type=tuple[tuple[str, str], ...])
        return replace(stored.webhook, spec=replace(stored.webhook.spec, headers=headers))

    def decrypt(self, stored: StoredWebhook, secrets: Sequence[SealedSecret]) -> LeasedWebhook:
        """Return the webhook with all that is needed to serve it, the newest secret first."""
        webhook_id = stored.webhook.webhook_id
        opened = tuple(
            Secret(
                self._box.decrypt(one.sealed, webhook_id).decode(),
                one.created_at_ms,
                one.expires_at_ms,
            )
            for one in secrets
        )
        return LeasedWebhook(
            self.decrypt_headers(stored), WebhookLease(webhook_id, stored.lease_epoch), opened
        )
