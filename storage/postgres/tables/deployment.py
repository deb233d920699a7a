"""Tables of the deployment as a whole, its stores and the leases of its processes."""

from sqlalchemy import BigInteger, CheckConstraint, Integer, Text
from sqlmodel import Field, SQLModel

from storage.postgres.tables.columns import NAME


class DeploymentRow(SQLModel, table=True):
    """State of the deployment as a whole; one row.

    `store_epoch`, `replid` and `beacon` are `storage.domain.log.store_epoch.StoreIdentity`; `secret` is 32 random
    bytes that every process shares. `store_term` and the columns below are a `storage.domain.replication.replica_set.ReplicaSet`, whose
    epoch is `store_epoch`; `primary_id` is null while there is none. What was acknowledged since the epoch `lossless_since` was not lost
    up to the epoch `lossless_until`; a version that does not know these columns changes neither.
    """

    __tablename__ = "deployment"
    __table_args__ = (CheckConstraint("id = 1", name="deployment_is_one_row"),)

    id: int = Field(default=1, primary_key=True)
    store_epoch: int = Field(sa_type=BigInteger)
    replid: str = Field(sa_type=Text)
    beacon: int = Field(sa_type=BigInteger)
    secret: bytes
    store_term: int = Field(sa_type=BigInteger)
    store_phase: str = Field(sa_type=Text)
    primary_id: int | None = Field(default=None, foreign_key="store_members.id", sa_type=Integer)
    min_insync_replicas: int = Field(sa_type=Integer)
    lossless_since: int | None = Field(default=None, sa_type=BigInteger)
    lossless_until: int | None = Field(default=None, sa_type=BigInteger)


class CatalogVersionRow(SQLModel, table=True):
    """Version of the definitions and credentials (`storage.catalog.witness`); one row."""

    __tablename__ = "catalog_version"

    id: int | None = Field(default=None, primary_key=True, sa_type=Integer)
    version: int = Field(sa_type=BigInteger)


class StoreMemberRow(SQLModel, table=True):
    """A member of the replica set, `host:port`; ids rise in the order of addition."""

    __tablename__ = "store_members"

    id: int | None = Field(default=None, primary_key=True, sa_type=Integer)
    address: str = Field(unique=True, sa_type=NAME)


class AttendanceRow(SQLModel, table=True):
    """Last recorded time that the database was reachable, and the end of its last outage."""

    __tablename__ = "attendance"
    __table_args__ = (CheckConstraint("id = 1", name="attendance_is_one_row"),)

    id: int = Field(default=1, primary_key=True)
    seen_ms: int = Field(sa_type=BigInteger)
    back_since_ms: int = Field(sa_type=BigInteger)


class LeaseRow(SQLModel, table=True):
    """A leader's lease; its row stays, with the fencing number."""

    __tablename__ = "leases"

    name: str = Field(primary_key=True, sa_type=NAME)
    holder: str = Field(sa_type=NAME)
    fence: int = Field(sa_type=BigInteger)
    expires_at_ms: int = Field(sa_type=BigInteger)
