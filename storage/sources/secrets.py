"""Encryption of a source's secrets and tokens at rest."""

import msgspec
from msgspec.structs import replace

from storage.access.secret_box import SecretBox
from storage.domain.sources.source import InboundSource, SourceToken

_Sealed = tuple[tuple[SourceToken, ...], tuple[str, ...]]
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Sealed)


class SourceSecrets:
    """Encryption of secrets and tokens, bound to the source they belong to."""

    def __init__(self, box: SecretBox) -> None:
        self._box = box

    def encrypt(self, source: InboundSource) -> bytes:
        """Encrypt a source's secrets and tokens for storage. Raises SecretsOff."""
        packed = _encoder.encode((source.tokens, source.spec.secrets or ()))
        return self._box.encrypt(packed, source.source_id)

    def decrypt(self, source: InboundSource, sealed: bytes) -> InboundSource:
        """Return the source with its secrets and tokens. Raises SecretsOff, SecretUnreadable."""
        tokens, secrets = _decoder.decode(self._box.decrypt(sealed, source.source_id))
        return replace(source, tokens=tokens, spec=replace(source.spec, secrets=secrets))
