"""Table of sources."""

from sqlalchemy import Index
from sqlmodel import Field

from storage.postgres.tables.columns import NAME, DefinitionColumns


class SourceRow(DefinitionColumns, table=True):
    """A `storage.domain.sources.source.InboundSource`.

    Its secrets and tokens are in `sealed`, encrypted.
    """

    __tablename__ = "sources"
    __table_args__ = (Index("sources_name", "namespace", "name", unique=True),)

    source_id: str = Field(primary_key=True, sa_type=NAME)
    sealed: bytes
