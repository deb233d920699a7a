"""Encryption of webhook secrets, header values and secrets of credentials at rest."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from storage.access.secret_box import SecretBox
from storage.domain.webhooks import LeasedWebhook, Secret, Webhook, WebhookLease
from storage.postgres.repositories.webhooks import (
    SealedSecret,
    StoredWebhook,
)

_HeaderValues = tuple[tuple[str, str], ...]


class _SecretValues(msgspec.Struct, frozen=True):
    """Values of a webhook with credentials; one without them has those of its headers alone.

    A version that does not know credentials cannot decode this, and so posts nothing without an access token.
    """

    headers: _HeaderValues
    client_secret: str | None = None


class WebhookSecrets:
    """Encryption of a webhook's secrets; each is bound to the webhook it belongs to."""

    def __init__(self, box: SecretBox) -> None:
        self._box = box

    def encrypt_secret(self, webhook_id: str, number: int, secret: Secret) -> SealedSecret:
        """Encrypt a secret for storage."""
        sealed = self._box.encrypt(secret.value.encode(), webhook_id)
        return SealedSecret(number, sealed, secret.created_at_ms, secret.expires_at_ms)

    def encrypt_values(self, webhook: Webhook) -> bytes | None:
        """Encrypt the values of headers and the secret of credentials for storage.

        None if there are none.
        """
        headers, credentials = webhook.spec.headers or (), webhook.spec.credentials
        secret = None if credentials is None else credentials.secret
        if not headers and secret is None:
            return None
        values = headers if secret is None else _SecretValues(headers, secret)
        return self._box.encrypt(msgspec.msgpack.encode(values), webhook.webhook_id)

    def decrypt_values(self, stored: StoredWebhook) -> Webhook:
        """Return the webhook with the values of its headers and the secret of its credentials."""
        if stored.sealed_headers is None:
            return stored.webhook
        packed = self._box.decrypt(stored.sealed_headers, stored.webhook.webhook_id)
        values = msgspec.msgpack.decode(packed, type=_HeaderValues | _SecretValues)
        if not isinstance(values, _SecretValues):
            values = _SecretValues(values)
        credentials = stored.webhook.spec.credentials
        spec = replace(
            stored.webhook.spec,
            headers=values.headers,
            credentials=credentials and credentials.with_secret(values.client_secret),
        )
        return replace(stored.webhook, spec=spec)

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
            self.decrypt_values(stored), WebhookLease(webhook_id, stored.lease_epoch), opened
        )
