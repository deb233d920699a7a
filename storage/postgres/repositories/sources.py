"""Repository of sources; their secrets and tokens are stored encrypted."""

from typing import Any, Protocol

import msgspec
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncSession

from storage.domain.names import SourceName
from storage.domain.sources.source import InboundSource, SourceSpec
from storage.postgres.database import Database
from storage.postgres.definition_table import DefinitionTable, LockedDefinition
from storage.postgres.rows import struct_of
from storage.postgres.tables import SourceRow


class SourceCodec(Protocol):
    """Encryption of a source's secrets and tokens."""

    def encrypt(self, source: InboundSource) -> bytes:
        """Return the encrypted secrets and tokens."""

    def decrypt(self, source: InboundSource, sealed: bytes) -> InboundSource:
        """Return the source with its secrets and tokens."""


LockedSource = LockedDefinition[InboundSource]


class SourceRows(DefinitionTable[SourceName, InboundSource, LockedSource]):
    """Sources of every namespace. Every method raises StorageUnavailable or StorageBusy.

    Without a codec, sources have no tokens and empty secrets, and changes leave both alone: a source whose secrets cannot be
    decrypted can be listed, paused and deleted.
    """

    kind = "source"
    table = SourceRow
    id = "source_id"

    def __init__(self, database: Database, codec: SourceCodec | None = None) -> None:
        super().__init__(database)
        self._codec = codec

    def definition_of(self, row: Row[Any]) -> InboundSource:
        name, spec = SourceName(row.name, row.namespace), msgspec.convert(row.spec, SourceSpec)
        source = struct_of(InboundSource, row, name=name, spec=spec, tokens=())
        return source if self._codec is None else self._codec.decrypt(source, row.sealed)

    def changes(self, definition: InboundSource) -> dict[str, Any]:
        empty = ("",) * len(definition.spec.secrets or ())
        public = msgspec.structs.replace(definition.spec, secrets=empty)
        changes = super().changes(msgspec.structs.replace(definition, spec=public))
        if self._codec is not None:
            changes["sealed"] = self._codec.encrypt(definition)
        return changes

    def locked(self, session: AsyncSession, name: SourceName, row: Row[Any] | None) -> LockedSource:
        return LockedDefinition(session, self, name, row)
