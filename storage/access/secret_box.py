"""Encryption of stored secrets that must be used again, and so cannot be hashed.

A process that has the key can read them.

    sealed = version (1 byte) · which key (8) · nonce (12) · AES-256-GCM of the secret, bound to its owner

The first key encrypts, all decrypt: a new key is put first, and the old one is removed once nothing is sealed with it.
"""

import base64
import binascii
import hashlib
import os
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from storage.domain.errors import SecretsOff, SecretUnreadable

KEY_BYTES = 32
_VERSION = b"\x01"
_ID_BYTES = 8
_NONCE_BYTES = 12


class SecretBox:
    """Encryption and decryption of secrets.

    `keys` are base64 of 32 bytes each; without any, nothing can be stored.
    """

    def __init__(self, keys: Sequence[str] = ()) -> None:
        self._keys = {_id_of(raw): AESGCM(raw) for raw in map(key_bytes, keys)}

    @property
    def on(self) -> bool:
        """Return whether there is a key, so that secrets can be stored."""
        return bool(self._keys)

    def encrypt(self, secret: bytes, about: str) -> bytes:
        """Encrypt a secret, bound to `about`: it can be decrypted only for the same owner.

        Raises SecretsOff.
        """
        if not self._keys:
            raise SecretsOff
        key_id, key = next(iter(self._keys.items()))
        nonce = os.urandom(_NONCE_BYTES)
        return _VERSION + key_id + nonce + key.encrypt(nonce, secret, about.encode())

    def decrypt(self, sealed: bytes, about: str) -> bytes:
        """Decrypt the result of `encrypt`.

        Raises SecretUnreadable, and SecretsOff without any key.
        """
        if not self._keys:
            raise SecretsOff
        nonce_at, text_at = 1 + _ID_BYTES, 1 + _ID_BYTES + _NONCE_BYTES
        key = self._keys.get(sealed[1:nonce_at])
        if sealed[:1] != _VERSION or key is None:
            raise SecretUnreadable
        try:
            return key.decrypt(sealed[nonce_at:text_at], sealed[text_at:], about.encode())
        except InvalidTag:
            raise SecretUnreadable from None


def new_key() -> str:
    """Return a new key in the format of the settings."""
    return base64.b64encode(os.urandom(KEY_BYTES)).decode()


def key_bytes(key: str) -> bytes:
    """Decode a key; the ValueError for an invalid one does not reveal it."""
    try:
        raw = base64.b64decode(key, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("a secret key must be 32 bytes in base64") from None
    if len(raw) != KEY_BYTES:
        raise ValueError("a secret key must be 32 bytes in base64")
    return raw


def _id_of(key: bytes) -> bytes:
    return hashlib.sha256(b"millstream secret key" + key).digest()[:_ID_BYTES]
