"""Consumer group: members that share a stream, and their committed offsets.

A *committed offset* is the next offset that the group will read of a shard. A group that has committed nothing
yet starts where its start policy specifies; that *start* is stored when a shard is first read, so that what expires
afterwards is a gap. Committed offsets move forward by commits, and back only by a
reset (G3).
"""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from storage.domain import limits
from storage.domain.definitions import check_seconds
from storage.domain.errors import FieldFault, GroupNotFound, MillstreamError, ValidationFailed
from storage.domain.groups.assignment import MemberId, RevocationPolicy
from storage.domain.names import GroupName, LogId, StreamName, check_name
from storage.domain.streams.start_at import StartAt, start_faults
from storage.domain.streams.stream import Gap, Shard, ShardRead


class GroupKind(StrEnum):
    """Type of a consumer group.

    `ordered`: members share the shards, one reader for each shard. `simple`: the group only stores offsets.
    """

    ORDERED = "ordered"
    SIMPLE = "simple"


def group_not_found(name: GroupName) -> GroupNotFound:
    """Return the error for a group that does not exist."""
    return GroupNotFound(f"Group '{name.name}' does not exist.")


class GroupSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Configuration of a group as requested by its owner.

    `start_time_ms` is given with `StartAt.TIME`, and only with it. Members of a `paused` group receive nothing.
    """

    stream: str
    kind: GroupKind = GroupKind.ORDERED
    start: StartAt = StartAt.EARLIEST
    start_time_ms: int | None = None
    session_timeout_ms: int = limits.SESSION_TIMEOUT_MS_DEFAULT
    static_timeout_ms: int = limits.STATIC_TIMEOUT_MS_DEFAULT
    revoke_timeout_ms: int = limits.REVOKE_TIMEOUT_MS_DEFAULT
    paused: bool = False

    def check(self) -> None:
        """Raise ValidationFailed with every fault of the specification."""
        faults = [
            *_check_timeout("/session_timeout_seconds", self.session_timeout_ms),
            *_check_timeout("/static_timeout_seconds", self.static_timeout_ms),
            *_check_timeout("/revoke_timeout_seconds", self.revoke_timeout_ms),
            *start_faults(self.start, self.start_time_ms),
        ]
        if faults:
            raise ValidationFailed("The group's configuration is invalid.", *faults)

    @property
    def patience(self) -> RevocationPolicy:
        """Timeouts that apply to the group's members and leases."""
        return RevocationPolicy(
            self.session_timeout_ms, self.static_timeout_ms, self.revoke_timeout_ms
        )

    @property
    def heartbeat_ms(self) -> int:
        """Recommended heartbeat interval; losing one heartbeat has no effect."""
        return min(self.session_timeout_ms // 3, limits.HEARTBEAT_MS_MAX)


def _check_timeout(pointer: str, timeout_ms: int) -> list[FieldFault]:
    low, high = limits.SESSION_TIMEOUT_MS_MIN, limits.SESSION_TIMEOUT_MS_MAX
    return check_seconds(pointer, timeout_ms, low, high)


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """A group's stored definition.

    It belongs to one stream permanently: a stream re-created with that name is a different one.
    """

    name: GroupName
    group_id: str
    stream_id: LogId
    spec: GroupSpec
    version: int
    generation: int
    created_at_ms: int
    changed_at_ms: int

    @property
    def stream(self) -> StreamName:
        """Stream that the group reads."""
        return StreamName(self.spec.stream, self.name.namespace)


class MemberShard(msgspec.Struct, frozen=True, gc=False):
    """A shard assigned to a member, its lease's generation, and the group's offsets in it.

    `committed` is None before the first commit; `start`, until the shard is first read.
    """

    shard: int
    generation: int
    committed: int | None
    start: int | None = None

    @property
    def position(self) -> int | None:
        """Next offset to read: the committed one, or before the first commit the start."""
        return self.start if self.committed is None else self.committed


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    """A member's view of the group: the shards it reads, and those it must release.

    `is_cached`: as it was before Postgres was away.
    """

    group: Group
    member_id: MemberId
    assigned: tuple[MemberShard, ...]
    revoked: tuple[MemberShard, ...]
    is_cached: bool = False

    @property
    def generation(self) -> int:
        """The group's generation, which the member sends with its commits."""
        return self.group.generation


class Commit(msgspec.Struct, frozen=True, gc=False):
    """Commit of the next offset to read of one shard, by a member in a generation.

    In a simple group `member_id` is empty; there, without a generation, nothing is fenced.
    """

    shard: int
    offset: int
    member_id: MemberId = ""
    generation: int | None = None


class GroupOffset(msgspec.Struct, frozen=True, gc=False):
    """The group's offset in a shard after a commit: never below an offset committed earlier."""

    shard: int
    offset: int


CommitResult = GroupOffset | MillstreamError


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """Records for a member, and the group's `positions`, by shard, once they are processed."""

    membership: Membership
    reads: tuple[ShardRead, ...]
    positions: Mapping[int, int]

    @property
    def gaps(self) -> list[tuple[int, Gap]]:
        """Gaps in the records, by shard."""
        return [(read.shard, read.gap) for read in self.reads if read.gap is not None]


class ResetTo(StrEnum):
    """Target of a reset of a group's offsets."""

    EARLIEST = "earliest"
    LATEST = "latest"
    TIME = "time"
    OFFSETS = "offsets"
    BOOKMARK = "bookmark"


class ResetSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Reset of `shards`, or of all.

    `time_ms`, `offsets` and `bookmark` belong to the target of that name.
    """

    to: ResetTo
    shards: tuple[int, ...] | None = None
    time_ms: int | None = None
    offsets: Mapping[int, int] | None = None
    bookmark: str | None = None

    def check(self) -> None:
        """Raise ValidationFailed unless the target has the field it needs, and no other."""
        given_fields = {
            "time": self.time_ms is not None,
            "offsets": self.offsets is not None,
            "bookmark": self.bookmark is not None,
        }
        faults = [
            FieldFault(
                f"/{name}", f"""Specify '{name}' if and only if "to" is "{name}\"""", "conflict"
            )
            for name, given in given_fields.items()
            if given != (self.to == name)
        ]
        if self.shards is not None and self.offsets is not None:
            faults.append(
                FieldFault("/shards", "'offsets' already specifies the shards", "conflict")
            )
        if faults:
            raise ValidationFailed(None, *faults)


class ShardReset(msgspec.Struct, frozen=True, gc=False):
    """Effect of a reset on one shard: `before` is None where nothing was committed.

    `expired`: number of records between the new offset and the first readable one, which are gone already.
    """

    shard: int
    before: int | None
    after: int
    expired: int = 0


class ShardLag(msgspec.Struct, frozen=True, kw_only=True):
    """Lag of a group in one shard.

    `position` is the next offset it reads; `committed` is None before its first commit. `records` are the unread
    ones, without holes; `lag_ms` is the age of the next of them, and `loss_in_ms` the time until it is older than
    the retention allows: None if nothing is unread, or there is no such time. `expired`: number of records lost
    unread. `committed_at_ms` is the time of the last commit.
    """

    shard: int
    owner: MemberId | None
    generation: int
    committed: int | None
    position: int
    start: int
    tip: int
    records: int
    expired: int
    lag_ms: int
    loss_in_ms: int | None
    finished: bool
    committed_at_ms: int | None = None


class Bookmark(msgspec.Struct, frozen=True, kw_only=True):
    """Named positions to return to: by shard, the next offset to read."""

    name: str
    positions: Mapping[int, int]
    created_at_ms: int

    def __post_init__(self) -> None:
        check_name(self.name)


def start_offset(shard: Shard, oldest: int, *, has_started: bool) -> int:
    """Return where a group begins to read a shard that was not assigned to it before.

    `oldest`: where its start policy leads. A child that appeared after the group had started continues what the
    group was reading, so it is read from its first record, and one that is gone already is a loss.
    """
    return 0 if has_started and shard.parents else oldest


def without_back(offsets: Mapping[int, int], committed: Mapping[int, int | None]) -> dict[int, int]:
    """Return the offsets that are ahead of the committed ones, or of none."""
    return {
        shard: offset
        for shard, offset in offsets.items()
        if committed.get(shard) is None or offset > (committed[shard] or 0)
    }


def without_holes(first: int, next_: int, holes: list[tuple[int, int]]) -> int:
    """Count the offsets [first, next) that have a record; `holes` are disjoint."""
    if first >= next_:
        return 0
    empty = sum(max(0, min(end, next_) - max(begin, first)) for begin, end in holes)
    return next_ - first - empty
