"""Store schemas: the members of the replica set, and its changes."""

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field

from api.rest.field_map import Mapped
from api.rest.schema_base import Config
from storage.domain import limits
from storage.domain.replication.replica_set import (
    MemberRole,
    MemberState,
    MemberStatus,
    Phase,
    ReplicaSetStatus,
)
from storage.settings import Durability

ADDRESS_PATTERN = r"^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+):[0-9]{1,5}$"
Address = Annotated[
    str,
    Field(
        pattern=ADDRESS_PATTERN,
        max_length=limits.STORE_ADDRESS_CHARACTERS_MAX,
        description="`host:port` of a store.",
    ),
]
MinInsync = Annotated[
    int,
    Field(
        ge=1,
        le=limits.REPLICA_SET_MEMBERS_MAX,
        description="Stores, including the primary, that must have a write on disk before it is acknowledged.",
    ),
]


class ReplicaSetOut(Mapped):
    """The replica set, as recorded in Postgres."""

    renamed = {"state": "phase"}

    members: Annotated[list[str], Field(description="Addresses, in the order of their addition.")]
    primary: str
    term: Annotated[
        int, Field(description="Number of the last attempt to change the primary; 0 for one store.")
    ]
    epoch: Annotated[int, Field(description="Term that promoted the primary.")]
    state: Annotated[
        Phase,
        Field(
            description="`normal`: in service. Otherwise the primary is being changed, and writes are held."
        ),
    ]
    min_insync_replicas: MinInsync


class StoreMemberOut(Mapped):
    """A store. Its figures are null while it is away."""

    address: str
    role: MemberRole
    state: Annotated[
        MemberState,
        Field(description="`insync`: it counts as a copy. `behind`: it is being filled."),
    ]
    epoch: Annotated[int | None, Field(description="Epoch of its copy of the data.")]
    position: Annotated[
        int | None, Field(description="Write flushes in its copy of the data; null for one store.")
    ]
    lag_bytes: Annotated[
        int | None, Field(description="Sent by the primary and not yet confirmed.")
    ]
    version: str | None
    memory_used_bytes: int | None
    memory_max_bytes: Annotated[int | None, Field(description="0: no limit.")]
    pid: Annotated[
        int | None, Field(description="Process id, if `millstream up` runs it on this machine.")
    ]

    @classmethod
    def from_domain(cls, value: MemberStatus, **others: Any) -> Self:
        where = value.position
        return super().from_domain(
            value,
            epoch=None if where is None else where.epoch,
            position=None if where is None else where.position,
            **others,
        )


class StoresOut(Mapped):
    """The stores of the deployment: one, or a replica set."""

    renamed = {"state": "phase"}

    durability: Durability
    replication_factor: Annotated[int, Field(description="Number of stores.")]
    min_insync_replicas: MinInsync
    insync_replicas: Annotated[
        int, Field(description="Stores that have every acknowledged write, including the primary.")
    ]
    primary: str
    term: int
    epoch: int
    state: Phase
    members: list[StoreMemberOut]
    unknown_replicas: Annotated[
        list[str],
        Field(
            description="Replicas of the primary that are not members. Disconnect them: they are counted as copies."
        ),
    ]

    @classmethod
    def of(cls, status: ReplicaSetStatus, durability: Durability, pids: Mapping[str, int]) -> Self:
        """Return the status, with the process ids of the stores on this machine by address."""
        members = [
            StoreMemberOut.from_domain(member, pid=pids.get(member.address))
            for member in status.members
        ]
        return cls.mapped(
            status,
            status.replica_set,
            durability=durability,
            replication_factor=len(status.replica_set.members),
            members=members,
            unknown_replicas=list(status.unknown_replicas),
        )


class SwitchOver(Config):
    """The store to become the primary."""

    to: Annotated[Address | None, Field(description="Default: the replica that is furthest.")] = (
        None
    )


class StoreReplacement(Config):
    """A permanently lost member, and the empty store that replaces it."""

    old: Address
    new: Address


class StoreAddition(Config):
    """A store to add."""

    address: Address


def _check_confirmed(value: bool) -> bool:
    """Return `value`. Raises ValueError unless it is true.

    As a constant of the schema it would be a string in clients of the stock generator for Java.
    """
    if not value:
        raise ValueError("Must be true")
    return value


class StoreRecovery(Config):
    """The store to continue with, when too few are left to decide that automatically."""

    source: Annotated[Address, Field(alias="from")]
    accept_loss: Annotated[
        bool,
        AfterValidator(_check_confirmed),
        Field(
            description="Confirms that acknowledged writes that only the lost stores had are lost."
        ),
    ]


class StoresPatch(Config):
    """Settings of the replica set."""

    min_insync_replicas: MinInsync
