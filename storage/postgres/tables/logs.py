"""Tables of the offsets of logs."""

from sqlalchemy import BigInteger, CheckConstraint, Text
from sqlmodel import Field, SQLModel

from storage.domain.names import LogId
from storage.postgres.tables.columns import NAME


class LogRow(SQLModel, table=True):
    """Reserved offsets of a log: see `storage.postgres.repositories.offset_reservations`."""

    __tablename__ = "logs"

    log_id: LogId = Field(primary_key=True, sa_type=NAME)
    namespace: str = Field(foreign_key="namespaces.name", sa_type=NAME)
    ceiling: int = Field(default=0, sa_type=BigInteger)
    store_epoch: int | None = Field(default=None, sa_type=BigInteger)
    log_epoch: int = Field(default=0, sa_type=BigInteger)
    epoch_start: int = Field(default=0, sa_type=BigInteger)


class LogHoleRow(SQLModel, table=True):
    """Offsets [first, next) of a log that no record has, or that the hot store lost.

    `reason`: a `storage.domain.streams.stream.GapReason`.
    """

    __tablename__ = "log_holes"
    __table_args__ = (CheckConstraint("first < next", name="log_holes_hold_something"),)

    log_id: LogId = Field(
        primary_key=True, foreign_key="logs.log_id", ondelete="CASCADE", sa_type=NAME
    )
    first: int = Field(primary_key=True, sa_type=BigInteger)
    next: int = Field(sa_type=BigInteger)
    reason: str = Field(sa_type=Text)
