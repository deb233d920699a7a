"""Consumer groups on the wire: configuration, members, positions."""

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import AwareDatetime, BaseModel, Field

from api.native.fields import moment_ms, rfc3339, to_ms, to_seconds
from api.rest.schema_base import Config, Seconds, Time, in_seconds
from storage.domain import limits
from storage.domain.errors import ValidationFailed
from storage.domain.groups.assignment import Lease, Member
from storage.domain.groups.group import (
    Bookmark,
    Group,
    GroupKind,
    GroupSpec,
    Membership,
    Place,
    ResetSpec,
    ResetTo,
    ShardLag,
    ShardReset,
    StartAt,
)

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,80}$")]
Offset = Annotated[int, Field(ge=0, le=limits.OFFSET_MAX)]
ShardIndex = Annotated[int, Field(ge=0, le=10**9)]
Moment = Annotated[AwareDatetime, Field(strict=False)]
Positions = Annotated[
    dict[str, Offset], Field(description="By shard, the next offset to read.", max_length=10_000)
]


class GroupConfig(Config):
    """The whole desired state of a group. Stream, kind and start cannot change later."""

    stream: Name
    kind: Annotated[
        GroupKind,
        Field(strict=False, description="`simple`: no members, the group only keeps offsets."),
    ] = GroupKind.ORDERED
    start: Annotated[
        StartAt, Field(strict=False, description="Where the group begins that has no offset yet.")
    ] = StartAt.EARLIEST
    start_time: Annotated[
        Moment | None,
        Field(description="With `time`: the first record that arrived then or later."),
    ] = None
    session_timeout_seconds: Annotated[
        Seconds, Field(description="A member that is silent for so long is one no more.")
    ] = in_seconds(limits.SESSION_TIMEOUT_MS_DEFAULT)
    static_timeout_seconds: Annotated[
        Seconds, Field(description="The same for a member with an `instance_id`.")
    ] = in_seconds(limits.STATIC_TIMEOUT_MS_DEFAULT)
    revoke_timeout_seconds: Annotated[
        Seconds, Field(description="A shard that is not given up by then is taken.")
    ] = in_seconds(limits.REVOKE_TIMEOUT_MS_DEFAULT)

    def to_domain(self) -> GroupSpec:
        """The specification, which the engine checks."""
        return GroupSpec(
            stream=self.stream,
            kind=self.kind,
            start=self.start,
            start_time_ms=_optional_moment_ms(self.start_time),
            session_timeout_ms=to_ms(self.session_timeout_seconds),
            static_timeout_ms=to_ms(self.static_timeout_seconds),
            revoke_timeout_ms=to_ms(self.revoke_timeout_seconds),
        )


def _optional_moment_ms(moment: datetime | None) -> int | None:
    return None if moment is None else moment_ms(moment)


def _optional_time(ms: int | None) -> str | None:
    return None if ms is None else rfc3339(ms)


class GroupOut(BaseModel):
    """A group: its configuration, and its version, which is its ETag."""

    name: str
    stream: str
    kind: GroupKind
    start: StartAt
    start_time: Time | None
    session_timeout_seconds: Seconds
    static_timeout_seconds: Seconds
    revoke_timeout_seconds: Seconds
    version: int
    created_at: Time
    changed_at: Time

    @classmethod
    def from_domain(cls, group: Group) -> Self:
        return cls(**_group_fields(group))


def _group_fields(group: Group) -> dict[str, Any]:
    spec = group.spec
    return {
        "name": group.name.name,
        "stream": spec.stream,
        "kind": spec.kind,
        "start": spec.start,
        "start_time": _optional_time(spec.start_time_ms),
        "session_timeout_seconds": in_seconds(spec.session_timeout_ms),
        "static_timeout_seconds": in_seconds(spec.static_timeout_ms),
        "revoke_timeout_seconds": in_seconds(spec.revoke_timeout_ms),
        "version": group.version,
        "created_at": rfc3339(group.created_at_ms),
        "changed_at": rfc3339(group.changed_at_ms),
    }


class MemberOut(BaseModel):
    """A member. `away`: it left for a while and keeps its shards. `revoked` are those it is to give up."""

    member: str
    static: bool
    away: bool
    joined_at: Time
    heartbeat_at: Time
    assigned: list[int]
    revoked: list[int]

    @classmethod
    def from_domain(cls, member: Member, leases: list[Lease]) -> Self:
        own = [lease for lease in leases if lease.owner == member.member_id]
        return cls(
            member=member.member_id,
            static=member.static,
            away=member.away,
            joined_at=rfc3339(member.joined_at_ms),
            heartbeat_at=rfc3339(member.heartbeat_ms),
            assigned=[lease.shard for lease in own if lease.revoke_by_ms is None],
            revoked=[lease.shard for lease in own if lease.revoke_by_ms is not None],
        )


class GroupShardOut(BaseModel):
    """A shard as the group sees it. `finished`: it is closed, and was read to its end."""

    shard: int
    member: str | None
    committed: Annotated[int | None, Field(description="Null before the first commit.")]
    finished: bool


class GroupDetail(GroupOut):
    """A group with its members and shards, as they are at one time."""

    generation: int
    members: list[MemberOut]
    shards: list[GroupShardOut]

    @classmethod
    def of(
        cls, group: Group, members: tuple[Member, ...], shards: list[tuple[Lease, int | None]]
    ) -> Self:
        """The group and all that belongs to it; a shard with its committed offset."""
        leases = [lease for lease, _ in shards]
        return cls(
            **_group_fields(group),
            generation=group.generation,
            members=[MemberOut.from_domain(member, leases) for member in members],
            shards=[
                GroupShardOut(
                    shard=lease.shard,
                    member=lease.owner,
                    committed=committed,
                    finished=lease.finished,
                )
                for lease, committed in shards
            ],
        )


class GroupPage(BaseModel):
    """Groups by name. `next_cursor` is null on the last page."""

    items: list[GroupOut]
    next_cursor: str | None


class JoinIn(Config):
    """Who joins: a name of its own, an instance that keeps its shards through a restart, or neither."""

    member: Name | None = None
    instance_id: Annotated[
        Name | None, Field(description="Makes a static member, which has this name.")
    ] = None


class PlaceOut(BaseModel):
    """A shard that a member reads, and the next offset of the group there."""

    shard: int
    committed: Annotated[
        int | None, Field(description="Null before the first commit: read from the group's start.")
    ]

    @classmethod
    def from_domain(cls, place: Place) -> Self:
        return cls(shard=place.shard, committed=place.committed)


class MembershipOut(BaseModel):
    """What a member is told: what it reads, what it is to give up, and what its commits carry."""

    member: str
    generation: int
    assigned: list[PlaceOut]
    revoked: list[PlaceOut]
    heartbeat_seconds: float
    session_timeout_seconds: Seconds

    @classmethod
    def from_domain(cls, membership: Membership) -> Self:
        spec = membership.group.spec
        return cls(
            member=membership.member_id,
            generation=membership.generation,
            assigned=[PlaceOut.from_domain(place) for place in membership.assigned],
            revoked=[PlaceOut.from_domain(place) for place in membership.revoked],
            heartbeat_seconds=to_seconds(spec.heartbeat_ms),
            session_timeout_seconds=in_seconds(spec.session_timeout_ms),
        )


class ResetIn(Config):
    """Where to take the group; `time`, `offsets` and `bookmark` go with the target of that name."""

    to: Annotated[ResetTo, Field(strict=False)]
    shards: Annotated[list[ShardIndex] | None, Field(description="Only these.")] = None
    time: Moment | None = None
    offsets: Positions | None = None
    bookmark: Name | None = None
    dry_run: Annotated[bool, Field(description="Show what would change, and change nothing.")] = (
        False
    )

    def to_domain(self) -> ResetSpec:
        """The reset, which the engine checks. Raises ValidationFailed."""
        return ResetSpec(
            to=self.to,
            shards=None if self.shards is None else tuple(self.shards),
            time_ms=_optional_moment_ms(self.time),
            offsets=None if self.offsets is None else positions_from(self.offsets, "/offsets"),
            bookmark=self.bookmark,
        )


class ShardResetOut(BaseModel):
    """What happens to a shard. `expired`: records behind the new offset that are gone already."""

    shard: int
    before: int | None
    after: int
    expired: int

    @classmethod
    def from_domain(cls, done: ShardReset) -> Self:
        return cls(shard=done.shard, before=done.before, after=done.after, expired=done.expired)


class ResetOut(BaseModel):
    """What a reset did, or with `dry_run` would do."""

    dry_run: bool
    shards: list[ShardResetOut]


class BookmarkIn(Config):
    """Positions to keep; without any, where the group is now."""

    positions: Positions | None = None


class BookmarkOut(BaseModel):
    """Positions under a name."""

    name: str
    positions: dict[str, int]
    created_at: Time

    @classmethod
    def from_domain(cls, bookmark: Bookmark) -> Self:
        return cls(
            name=bookmark.name,
            positions={str(shard): offset for shard, offset in bookmark.positions.items()},
            created_at=rfc3339(bookmark.created_at_ms),
        )


class BookmarkList(BaseModel):
    """A group's bookmarks by name."""

    items: list[BookmarkOut]


class ShardLagOut(BaseModel):
    """How far the group is in one shard."""

    shard: int
    member: str | None
    committed: int | None
    position: Annotated[int, Field(description="The next offset that the group reads.")]
    start: int
    tip: int
    records: Annotated[int, Field(description="Still to be read; holes are not counted.")]
    expired: Annotated[int, Field(description="Lost to retention before they were read.")]
    lag_seconds: Annotated[float, Field(description="Age of the next record to be read.")]
    loss_in_seconds: Annotated[
        float | None,
        Field(
            description="Until that record is older than retention allows; null when all is read, or "
            "records do not expire by age."
        ),
    ]
    finished: bool

    @classmethod
    def from_domain(cls, lag: ShardLag) -> Self:
        return cls(
            shard=lag.shard,
            member=lag.owner,
            committed=lag.committed,
            position=lag.position,
            start=lag.start,
            tip=lag.tip,
            records=lag.records,
            expired=lag.expired,
            lag_seconds=to_seconds(lag.lag_ms),
            loss_in_seconds=None if lag.loss_in_ms is None else to_seconds(lag.loss_in_ms),
            finished=lag.finished,
        )


class GroupLag(BaseModel):
    """How far a group is behind: all records together, the oldest of them, the soonest loss."""

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


def positions_from(told: dict[str, int], pointer: str) -> dict[int, int]:
    """Offsets by shard, whose number is a text in JSON. Raises ValidationFailed."""
    for shard in told:
        if not (shard.isascii() and shard.isdecimal() and len(shard) <= 9):
            raise ValidationFailed.at(f"{pointer}/{shard[:80]}", "is not the number of a shard")
    return {int(shard): offset for shard, offset in told.items()}
