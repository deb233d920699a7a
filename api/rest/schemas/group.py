"""Consumer group schemas: configuration, members, offsets."""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, NamedTuple, Self

from pydantic import BaseModel, Field

from api.native.fields import moment_ms, to_seconds
from api.native.former_names import former_name
from api.rest.definition_changes import PutOutcome
from api.rest.field_map import (
    Mapped,
    MappedDefinition,
    MappedDefinitionConfig,
)
from api.rest.schema_base import MEASUREMENT, Config, ListPage, Moment, Seconds, Time, in_seconds
from storage.domain import limits
from storage.domain.errors import ValidationFailed
from storage.domain.groups.assignment import Member, ShardLease
from storage.domain.groups.group import (
    Bookmark,
    Group,
    GroupKind,
    GroupSpec,
    Membership,
    ResetSpec,
    ResetTo,
    ShardLag,
)
from storage.domain.names import STREAM_PATTERN
from storage.domain.streams.start_at import StartAt

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,80}$")]
Offset = Annotated[int, Field(ge=0, le=limits.OFFSET_MAX)]
ShardIndex = Annotated[int, Field(ge=0, le=10**9)]
Positions = Annotated[
    dict[str, Offset], Field(description="Next offset to read, by shard.", max_length=10_000)
]


class GroupConfig(MappedDefinitionConfig):
    """The complete configuration of a group. Stream, kind and start are immutable."""

    domain = GroupSpec

    stream: Annotated[str, Field(pattern=STREAM_PATTERN)]
    kind: Annotated[
        GroupKind,
        Field(strict=False, description="`simple`: no members; the group stores offsets only."),
    ] = GroupKind.ORDERED
    start: Annotated[
        StartAt,
        Field(strict=False, description="Start position of a group that has no committed offset."),
    ] = StartAt.EARLIEST
    start_time: Annotated[
        Moment | None,
        Field(
            description="With `time`: start with the first record that arrived at or "
            "after this time."
        ),
    ] = None
    session_timeout_seconds: Annotated[
        Seconds, Field(description="Members without a heartbeat for this long are removed.")
    ] = in_seconds(limits.SESSION_TIMEOUT_MS_DEFAULT)
    static_timeout_seconds: Annotated[
        Seconds,
        Field(
            description="Time without a heartbeat after which a member with an `instance_id` is removed."
        ),
    ] = in_seconds(limits.STATIC_TIMEOUT_MS_DEFAULT)
    revoke_timeout_seconds: Annotated[
        Seconds,
        Field(description="A revoked shard that is not released within this time is reassigned."),
    ] = in_seconds(limits.REVOKE_TIMEOUT_MS_DEFAULT)


class GroupOut(MappedDefinition):
    """A group: its configuration, and its version, which is its ETag."""

    name: str
    stream: str
    kind: GroupKind
    start: StartAt
    start_time: Time | None
    session_timeout_seconds: Seconds
    static_timeout_seconds: Seconds
    revoke_timeout_seconds: Seconds
    paused: Annotated[bool, Field(description="Members receive no records.")]
    version: int
    created_at: Time
    changed_at: Time


class GroupStored(PutOutcome, GroupOut):
    """A group after a PUT, and what the PUT changed."""


class MemberOut(Mapped):
    """A member. `disconnected`: it left and keeps its shards. `revoked`: shards to release."""

    renamed = {"member": "member_id", "heartbeat_at": "heartbeat_ms"}

    member: str
    static: bool
    disconnected: bool
    away: ClassVar[Any] = former_name("disconnected", bool)
    joined_at: Time
    heartbeat_at: Time
    assigned: list[int]
    revoked: list[int]

    @classmethod
    def of(cls, member: Member, leases: list[ShardLease]) -> Self:
        """Return the member with its shards among the leases."""
        own = [lease for lease in leases if lease.owner == member.member_id]
        return cls.from_domain(
            member,
            assigned=[lease.shard for lease in own if lease.revoke_by_ms is None],
            revoked=[lease.shard for lease in own if lease.revoke_by_ms is not None],
        )


class GroupShardOut(Mapped):
    """A shard of the group. `finished`: the shard is closed and fully read."""

    shard: int
    member: str | None
    committed: Annotated[int | None, Field(description="Null before the first commit.")]
    finished: bool


class GroupSnapshot(NamedTuple):
    """A group, its members, and its shards with their committed offsets."""

    group: Group
    members: tuple[Member, ...]
    shards: Sequence[tuple[ShardLease, int | None]]

    @property
    def version(self) -> int:
        """The group's version."""
        return self.group.version


class GroupDetail(GroupOut):
    """A group with its members and shards, as one consistent snapshot."""

    generation: int
    members: list[MemberOut]
    shards: list[GroupShardOut]

    @classmethod
    def from_domain(cls, value: Group | GroupSnapshot, **others: Any) -> Self:
        assert isinstance(value, GroupSnapshot)
        group, members, shards = value
        leases = [lease for lease, _ in shards]
        return super().from_domain(
            group,
            members=[MemberOut.of(member, leases) for member in members],
            shards=[
                GroupShardOut.from_domain(lease, member=lease.owner, committed=committed)
                for lease, committed in shards
            ],
            **others,
        )


class GroupMeasurement(Mapped):
    """Lag and rate of a group, measured every ten seconds.

    The rate is per second since the one before; null if there was none.
    """

    renamed = {"oldest_unread_at": "unread_at_ms", "last_commit_at": "last_commit_ms"}

    measured_at: Time
    members: int
    lag_records: int
    oldest_unread_at: Annotated[
        Time | None, Field(description="Arrival of the oldest record that the group has not read.")
    ]
    last_commit_at: Time | None
    committed_per_second: float | None


class ListedGroup(GroupOut):
    """A group in a list."""

    measurement: Annotated[GroupMeasurement | None, Field(description=MEASUREMENT)]


class GroupPage(ListPage[ListedGroup]):
    """Groups by name. `next_cursor` is null on the last page."""


class JoinIn(Config):
    """The joining member.

    Its name, or a static instance that keeps its shards across restarts, or neither.
    """

    member: Name | None = None
    instance_id: Annotated[
        Name | None, Field(description="Makes the member static, with this name.")
    ] = None


class PlaceOut(Mapped):
    """A shard assigned to a member, and the group's next offset in it."""

    shard: int
    committed: Annotated[int | None, Field(description="Null before the first commit.")]
    position: Annotated[
        int | None,
        Field(description="Next offset to read; null if it could not be determined yet."),
    ]


class MembershipOut(Mapped):
    """The member's shards, the shards to release, and the generation for commits."""

    member: str
    generation: int
    assigned: list[PlaceOut]
    revoked: list[PlaceOut]
    heartbeat_seconds: float
    session_timeout_seconds: Seconds

    @classmethod
    def from_domain(cls, value: Membership, **others: Any) -> Self:
        spec = value.group.spec
        heartbeat_seconds = to_seconds(spec.heartbeat_ms)
        return cls.mapped(
            value,
            spec,
            member=value.member_id,
            heartbeat_seconds=heartbeat_seconds,
            **others,
        )


class ResetIn(Config):
    """The target of a reset.

    `time`, `offsets` and `bookmark` belong to the target of the same name.
    """

    to: Annotated[ResetTo, Field(strict=False)]
    shards: Annotated[list[ShardIndex] | None, Field(description="Only these shards.")] = None
    time: Moment | None = None
    offsets: Positions | None = None
    bookmark: Name | None = None
    dry_run: Annotated[bool, Field(description="Return what would change without changing it.")] = (
        False
    )

    def to_domain(self) -> ResetSpec:
        """Return the reset, which the engine validates. Raises ValidationFailed."""
        return ResetSpec(
            to=self.to,
            shards=None if self.shards is None else tuple(self.shards),
            time_ms=None if self.time is None else moment_ms(self.time),
            offsets=None if self.offsets is None else positions_from(self.offsets, "/offsets"),
            bookmark=self.bookmark,
        )


class ShardResetOut(Mapped):
    """The effect of a reset on a shard.

    `expired`: records after the new offset that have already expired.
    """

    shard: int
    before: int | None
    after: int
    expired: int


class ResetOut(BaseModel):
    """The effect of a reset, or with `dry_run` its preview."""

    dry_run: bool
    shards: list[ShardResetOut]


class BookmarkIn(Config):
    """Offsets to save; default: the group's current offsets."""

    positions: Positions | None = None


class BookmarkOut(Mapped):
    """Named offsets of a group."""

    name: str
    positions: dict[str, int]
    created_at: Time

    @classmethod
    def from_domain(cls, value: Bookmark, **others: Any) -> Self:
        positions = {str(shard): offset for shard, offset in value.positions.items()}
        return super().from_domain(value, positions=positions, **others)


class BookmarkList(BaseModel):
    """A group's bookmarks by name."""

    items: list[BookmarkOut]


class ShardLagOut(Mapped):
    """Lag of the group in one shard."""

    renamed = {"member": "owner"}

    shard: int
    member: str | None
    committed: int | None
    position: Annotated[int, Field(description="Next offset that the group reads.")]
    start: int
    tip: int
    records: Annotated[int, Field(description="Number of unread records, not counting holes.")]
    expired: Annotated[
        int, Field(description="Number of records that expired by retention before they were read.")
    ]
    lag_seconds: Annotated[float, Field(description="Age of the next record to read.")]
    loss_in_seconds: Annotated[
        float | None,
        Field(
            description="Time until that record expires by retention; null if everything "
            "is read or records do not expire by age."
        ),
    ]
    finished: bool


class GroupLag(BaseModel):
    """Lag of a group: total records, the oldest of them, and the earliest loss."""

    records: int
    lag_seconds: float
    loss_in_seconds: float | None
    shards: list[ShardLagOut]

    @classmethod
    def from_domain(cls, lags: list[ShardLag]) -> Self:
        losses = [lag.loss_in_ms for lag in lags if lag.loss_in_ms is not None]
        return cls(
            records=sum([lag.records for lag in lags]),
            lag_seconds=to_seconds(max([lag.lag_ms for lag in lags], default=0)),
            loss_in_seconds=to_seconds(min(losses)) if losses else None,
            shards=[ShardLagOut.from_domain(lag) for lag in lags],
        )


def positions_from(offsets: dict[str, int], pointer: str) -> dict[int, int]:
    """Parse offsets by shard, whose number is a string in JSON. Raises ValidationFailed."""
    for shard in offsets:
        if not (shard.isascii() and shard.isdecimal() and len(shard) <= 9):
            raise ValidationFailed.at(f"{pointer}/{shard[:80]}", "is not a shard number")
    return {int(shard): offset for shard, offset in offsets.items()}
