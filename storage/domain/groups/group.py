"""What a consumer group is: who reads a stream together, and how far they are.

A *committed offset* is the next offset that the group will read of a shard. Where a group has committed nothing
yet, it starts where its start policy says. Committed offsets move forward by commits, and back only by a reset (G3).
"""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from storage.domain import limits
from storage.domain.errors import FieldFault, MillstreamError, ValidationFailed
from storage.domain.groups.assignment import MemberId, Patience
from storage.domain.names import GroupName, LogId, StreamName, check_name
from storage.domain.streams.stream import Gap, ShardRead


class GroupKind(StrEnum):
    """`ordered`: members share the shards, each shard one reader. `simple`: the group only keeps offsets."""

    ORDERED = "ordered"
    SIMPLE = "simple"


class StartAt(StrEnum):
    """Where a group begins that has committed nothing."""

    EARLIEST = "earliest"
    LATEST = "latest"
    TIME = "time"


class GroupSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What its owner asked of a group. `start_time_ms` belongs to `StartAt.TIME`, and only to it."""

    stream: str
    kind: GroupKind = GroupKind.ORDERED
    start: StartAt = StartAt.EARLIEST
    start_time_ms: int | None = None
    session_timeout_ms: int = limits.SESSION_TIMEOUT_MS_DEFAULT
    static_timeout_ms: int = limits.STATIC_TIMEOUT_MS_DEFAULT
    revoke_timeout_ms: int = limits.REVOKE_TIMEOUT_MS_DEFAULT

    def check(self) -> None:
        """Raise ValidationFailed with every fault of the specification."""
        faults = [
            *_check_seconds("/session_timeout_seconds", self.session_timeout_ms),
            *_check_seconds("/static_timeout_seconds", self.static_timeout_ms),
            *_check_seconds("/revoke_timeout_seconds", self.revoke_timeout_ms),
        ]
        if (self.start is StartAt.TIME) != (self.start_time_ms is not None):
            detail = 'A time is given with "start": "time", and only with it'
            faults.append(FieldFault("/start_time", detail, "conflict"))
        if faults:
            raise ValidationFailed("The group's configuration is not valid.", *faults)

    @property
    def patience(self) -> Patience:
        """How long the group waits for what."""
        return Patience(self.session_timeout_ms, self.static_timeout_ms, self.revoke_timeout_ms)

    @property
    def heartbeat_ms(self) -> int:
        """How often a member should say that it is there: one lost heartbeat costs nothing."""
        return min(self.session_timeout_ms // 3, limits.HEARTBEAT_MS_MAX)


def _check_seconds(pointer: str, ms: int) -> list[FieldFault]:
    low, high = limits.SESSION_TIMEOUT_MS_MIN, limits.SESSION_TIMEOUT_MS_MAX
    if low <= ms <= high:
        return []
    detail = f"must be {low // limits.SECOND_MS} to {high // limits.SECOND_MS}"
    return [FieldFault(pointer, detail, "out_of_range")]


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """A group's stored definition. It belongs to one stream for ever: one made anew by that name is another."""

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
        """The stream it reads."""
        return StreamName(self.spec.stream, self.name.namespace)


class Place(msgspec.Struct, frozen=True, gc=False):
    """A shard that a member reads: since which generation, and how far the group is. None: nothing committed."""

    shard: int
    generation: int
    committed: int | None


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    """What a member is told: the shards it reads, and those that it is to give up."""

    group: Group
    member_id: MemberId
    assigned: tuple[Place, ...]
    revoked: tuple[Place, ...]

    @property
    def generation(self) -> int:
        """The group's generation, which the member's commits carry."""
        return self.group.generation


class Commit(msgspec.Struct, frozen=True, gc=False):
    """The next offset to read of one shard, said by a member in a generation.

    In a simple group `member_id` is empty; there, without a generation, nothing is fenced.
    """

    shard: int
    offset: int
    member_id: MemberId = ""
    generation: int | None = None


class Committed(msgspec.Struct, frozen=True, gc=False):
    """Where the group stands in a shard after a commit: never before an offset that was committed earlier."""

    shard: int
    offset: int


CommitResult = Committed | MillstreamError


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """Records for a member, and where the group is once they are done: `positions`, by shard."""

    membership: Membership
    reads: tuple[ShardRead, ...]
    positions: Mapping[int, int]

    @property
    def gaps(self) -> list[tuple[int, Gap]]:
        """What could not be read, by shard."""
        return [(read.shard, read.gap) for read in self.reads if read.gap is not None]


class ResetTo(StrEnum):
    """Where a reset takes a group."""

    EARLIEST = "earliest"
    LATEST = "latest"
    TIME = "time"
    OFFSETS = "offsets"
    BOOKMARK = "bookmark"


class ResetSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A reset: of `shards`, or of all. `time_ms`, `offsets` and `bookmark` belong to the target of that name."""

    to: ResetTo
    shards: tuple[int, ...] | None = None
    time_ms: int | None = None
    offsets: Mapping[int, int] | None = None
    bookmark: str | None = None

    def check(self) -> None:
        """Raise ValidationFailed unless the target has what it needs, and nothing else is said."""
        said = {
            "time": self.time_ms is not None,
            "offsets": self.offsets is not None,
            "bookmark": self.bookmark is not None,
        }
        faults = [
            FieldFault(
                f"/{name}", f'\'{name}\' belongs to "to": "{name}", and only to it', "conflict"
            )
            for name, given in said.items()
            if given != (self.to == name)
        ]
        if self.shards is not None and self.offsets is not None:
            faults.append(FieldFault("/shards", "'offsets' names its shards itself", "conflict"))
        if faults:
            raise ValidationFailed(None, *faults)


class ShardReset(msgspec.Struct, frozen=True, gc=False):
    """What a reset does to one shard: `before` is None where nothing was committed.

    `expired`: so many records below the new offset's first readable one are gone already.
    """

    shard: int
    before: int | None
    after: int
    expired: int = 0


class ShardLag(msgspec.Struct, frozen=True, kw_only=True):
    """How far a group is in one shard.

    `position` is the next offset it reads; `committed` is None before its first commit. `records` are those
    still to be read, holes not counted; `lag_ms` the age of the next of them, and `loss_in_ms` the time until
    it is older than retention allows: None with nothing to read, or no such time. `expired`: so many were lost unread.
    `committed_at_ms` is when a commit last came.
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
    """Positions under a name, to come back to: by shard, the next offset to read."""

    name: str
    positions: Mapping[int, int]
    created_at_ms: int

    def __post_init__(self) -> None:
        check_name(self.name)


def without_holes(first: int, next_: int, holes: list[tuple[int, int]]) -> int:
    """How many of the offsets [first, next) have a record; `holes` lie apart from one another."""
    if first >= next_:
        return 0
    empty = sum(max(0, min(end, next_) - max(begin, first)) for begin, end in holes)
    return next_ - first - empty
