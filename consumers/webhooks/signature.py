"""Standard Webhooks signatures: HMAC-SHA256 of `id.timestamp.body` for each live secret."""

import base64
import hashlib
import hmac
from collections.abc import Sequence

from storage.domain.webhooks import Secret

_PREFIX = "whsec_"


class Signer:
    """Signer with the secrets of one webhook."""

    def __init__(self, secrets: Sequence[Secret]) -> None:
        self._keys = [
            (base64.b64decode(secret.value.removeprefix(_PREFIX)), secret.expires_at_ms)
            for secret in secrets
        ]

    def signature(self, event_id: str, timestamp: int, body: bytes, now_ms: int) -> str:
        """Return the `webhook-signature` header, the newest secret's signature first.

        `timestamp` is in seconds.
        """
        signed = f"{event_id}.{timestamp}.".encode() + body
        return " ".join(
            f"v1,{base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()}"
            for key, expires_at_ms in self._keys
            if expires_at_ms is None or expires_at_ms > now_ms
        )
