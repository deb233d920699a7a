"""Encryption of the keys with which mirrors read their origins."""

from msgspec.structs import replace

from storage.access.secret_box import SecretBox
from storage.domain.mirrors.mirror import Mirror


class MirrorSecrets:
    """Encryption of keys, bound to the mirror they belong to."""

    def __init__(self, box: SecretBox) -> None:
        self._box = box

    def encrypt(self, mirror: Mirror) -> bytes:
        """Encrypt a mirror's key for storage. Raises SecretsOff."""
        return self._box.encrypt((mirror.spec.key or "").encode(), mirror.mirror_id)

    def decrypt(self, mirror: Mirror, sealed: bytes) -> Mirror:
        """Return the mirror with its key. Raises SecretsOff, SecretUnreadable."""
        key = self._box.decrypt(sealed, mirror.mirror_id).decode()
        return replace(mirror, spec=replace(mirror.spec, key=key))
