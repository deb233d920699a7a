"""Reads and commits of consumer group members (fast routes).

curl …/groups/g/records?member=alice&wait_seconds=20      a new instance of alice joins and reads
curl …/groups/g/commit --json '{"token": "…"}'            commits processed records
curl …/groups/g/records?member=alice&token=…              the same instance reads on
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from api.http.codecs import MSGPACK, Lined, answer_type
from api.http.query import RecordTerms
from api.http.request import Call
from api.http.request_spans import contexts_of_records
from api.http.routing import FastRouter
from api.native.cursors import decode_cursor, encode_cursor
from api.native.examples import MEMBERSHIP, RECORD, Example, Repeat
from api.native.fields import to_ms, to_seconds
from api.native.messages import WaitSeconds
from api.native.problems import ItemError, item_error
from api.native.records import RECORDS_DEFAULT, BytesMax, Count, GapOut, RecordOut, RecordsMax
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.errors import MillstreamError, ValidationFailed
from storage.domain.groups.group import (
    Commit,
    CommitResult,
    Fetched,
    GroupOffset,
    MemberShard,
    Membership,
)
from storage.domain.names import GroupName
from storage.domain.streams.stream import Tier, slowest

fast_routes = FastRouter()

MemberName = Annotated[str, Meta(pattern=r"^([A-Za-z0-9_.-]{1,80})?$")]
ShardIndex = Annotated[int, Meta(ge=0, le=10**9)]


class Token(msgspec.Struct, frozen=True, array_like=True):
    """Content of a commit token: member, generation and the next offset by shard."""

    member: MemberName = ""
    generation: Count = 0
    positions: dict[ShardIndex, Count] = {}


NO_TOKEN = Token()


class FetchRecords(RecordTerms, forbid_unknown_fields=True):
    """The member that reads, the filter of its records, and limits of the read."""

    member: Annotated[
        MemberName, Meta(description="Name of the member. Not allowed in a simple group.")
    ] = ""
    token: Annotated[
        str,
        Meta(
            description="The last token that this process got: it continues as the same instance of "
            "the member. Without a token, a new instance begins, and tokens of the previous one are rejected."
        ),
    ] = ""
    after: Annotated[
        str,
        Meta(
            description="Like `token`, but continue reading after this token, before it is committed."
        ),
    ] = ""
    limit: RecordsMax = RECORDS_DEFAULT
    bytes_max: BytesMax = limits.READ_BYTES_MAX
    wait_seconds: WaitSeconds = 0


class GroupRecords(Lined, kw_only=True):
    """Records of the member's shards, by arrival time, and in order within a shard.

    `token` commits them. `tier` is `archive` if any of them came from the archive.
    """

    lines_field: ClassVar[str] = "records"
    records: list[RecordOut]
    member: str
    generation: int
    shards: list[int]
    token: str
    behind_seconds: float
    tier: Tier
    gaps: list[GapOut]


class OffsetIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The next offset to read of a shard."""

    shard: ShardIndex
    offset: Count


class CommitIn(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A commit token, or offsets with their member and generation.

    Simple groups have no member; without a generation, commits are not fenced.
    """

    token: str = ""
    member: MemberName = ""
    generation: Count | None = None
    offsets: Annotated[list[OffsetIn], Meta(max_length=limits.COMMIT_SHARDS_MAX)] = []


class CommittedOut(msgspec.Struct, omit_defaults=True, kw_only=True, gc=False):
    """The group's offset in a shard, or the error for the shard."""

    shard: int
    offset: int | UnsetType = UNSET
    error: ItemError | UnsetType = UNSET


class CommittedOffsets(msgspec.Struct):
    """One result per shard, and the number of failed shards."""

    offsets: list[CommittedOut]
    failed: int


class HeartbeatIn(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The member's generation, and the shards that it still holds.

    Shards that are not listed can be reassigned.
    """

    generation: Count | None = None
    owned: Annotated[list[ShardIndex], Meta(max_length=limits.COMMIT_SHARDS_MAX)] | None = None


class AssignedShard(msgspec.Struct, frozen=True):
    """An assigned shard, its committed offset and the next offset to read.

    `committed` is null before the first commit; `position` is null if it could not be determined yet.
    """

    shard: int
    committed: int | None
    position: int | None


class Heartbeat(msgspec.Struct, kw_only=True):
    """The member's shards, the shards to release, and the generation for its commits."""

    member: str
    generation: int
    assigned: list[AssignedShard]
    revoked: list[AssignedShard]
    heartbeat_seconds: float


@fast_routes.get("/v1/groups/{group}/records", action=Action.GROUP_COMMIT)
async def fetch_records(call: Call[FetchRecords]) -> GroupRecords:
    """Read records as a member of a group.

    Joins if necessary, sends a heartbeat, and reads the member's shards. Repeating the call with the same `token` and without
    a commit returns the same records. With `wait_seconds`, the call waits for the next record. Revoked shards are released
    by the next call. With a filter, records that do not match are passed over: where none matches, the call commits what it has
    passed, and reads on while it waits. A call without a token fences any other process with this member name.
    """
    query = call.query
    about = _about(call.group)
    instance, previous = _instance(query, about)
    fetched = await call.storage.groups.fetcher.fetch(
        call.group,
        query.member,
        positions=previous.positions,
        generation=instance.generation,
        new_instance=instance is NO_TOKEN,
        records_max=query.limit,
        bytes_max=query.bytes_max,
        wait_ms=to_ms(query.wait_seconds),
        record_filter=query.record_filter(),
        is_there=call.is_client_connected,
    )
    call.metrics.read(sum([len(read.records) for read in fetched.reads]))
    if call.trace is not None:
        records = [at.record for read in fetched.reads for at in read.records]
        call.trace.add_links(contexts_of_records(records), len(records))
    positions = {**_of_now(fetched.membership, previous), **fetched.positions}
    token = Token(query.member, fetched.membership.generation, positions)
    binary = answer_type(call.headers) == MSGPACK
    return _records_out(fetched, encode_cursor(about, token), binary)


def _instance(query: FetchRecords, about: Sequence[str]) -> tuple[Token, Token]:
    """Return the token that identifies the instance, and the one to read after.

    Raises InvalidCursor, ValidationFailed.
    """
    if query.token and query.after:
        raise ValidationFailed.at("/after", "Specify only one of 'token' and 'after'", "conflict")
    if not query.token and not query.after:
        return NO_TOKEN, NO_TOKEN
    token = decode_cursor(query.token or query.after, about, Token)
    if token.member != query.member:
        pointer = "/after" if query.after else "/token"
        raise ValidationFailed.at(pointer, "The token belongs to another member", "conflict")
    return token, token if query.after else NO_TOKEN


def _of_now(membership: Membership, previous: Token) -> dict[int, int]:
    """Return the offsets of a previous token for shards that are still assigned to the member."""
    since = {place.shard: place.generation for place in membership.assigned}
    return {
        shard: offset
        for shard, offset in previous.positions.items()
        if shard in since and previous.generation >= since[shard]
    }


def _about(group: GroupName) -> tuple[str, ...]:
    return ("group", str(group))


def _records_out(fetched: Fetched, token: str, binary: bool) -> GroupRecords:
    """Arrival times of a shard never fall and the sort is stable: each shard keeps its order."""
    records = [(read.shard, record) for read in fetched.reads for record in read.records]
    records.sort(key=lambda pair: pair[1].arrival_ms)
    membership = fetched.membership
    return GroupRecords(
        records=[RecordOut.from_domain(record, binary, shard) for shard, record in records],
        member=membership.member_id,
        generation=membership.generation,
        shards=[place.shard for place in membership.assigned],
        token=token,
        behind_seconds=to_seconds(max([read.behind_ms for read in fetched.reads], default=0)),
        tier=slowest(fetched.reads),
        gaps=[
            GapOut(shard=shard, first=gap.first, next=gap.next, reason=gap.reason)
            for shard, gap in fetched.gaps
        ],
    )


@fast_routes.post("/v1/groups/{group}/commit", action=Action.GROUP_COMMIT)
async def commit_offsets(call: Call[CommitIn]) -> CommittedOffsets:
    """Commit offsets, with a token or with the next offset of each shard.

    Each shard has its own result: check `failed`. If all shards fail, the response is a problem. An offset below the
    committed one changes nothing, so a commit can be repeated.
    """
    commits = _commits(call)
    if not commits:
        await call.storage.groups.check_exists(call.group)
        return CommittedOffsets([], 0)
    results = await call.storage.groups.commit(call.group, commits)
    refused = [result for result in results if isinstance(result, MillstreamError)]
    if len(refused) == len(results):
        raise refused[0]
    pairs = zip(commits, results, strict=True)
    return CommittedOffsets([_committed_out(*pair) for pair in pairs], len(refused))


def _commits(call: Call[CommitIn]) -> Sequence[Commit]:
    """Return the requested commits. Raises InvalidCursor, ValidationFailed."""
    body = call.body
    if not body.token:
        if not body.offsets:
            raise ValidationFailed.at("/token", "'token' or 'offsets' is required", "required")
        return [Commit(one.shard, one.offset, body.member, body.generation) for one in body.offsets]
    if body.offsets or body.member or body.generation is not None:
        raise ValidationFailed.at("/token", "A commit token excludes other fields", "conflict")
    token = decode_cursor(body.token, _about(call.group), Token)
    return [
        Commit(shard, offset, token.member, token.generation)
        for shard, offset in token.positions.items()
    ]


def _committed_out(commit: Commit, result: CommitResult) -> CommittedOut:
    if isinstance(result, GroupOffset):
        return CommittedOut(shard=result.shard, offset=result.offset)
    return CommittedOut(shard=commit.shard, error=item_error(result))


@fast_routes.post("/v1/groups/{group}/members/{member}/heartbeat", action=Action.GROUP_COMMIT)
async def send_heartbeat(call: Call[HeartbeatIn]) -> Heartbeat:
    """Send a heartbeat of a member and return its assignment.

    A member stops reading its `revoked` shards, commits, and omits them from `owned` in the next heartbeat; then they are
    reassigned. A member that sent no heartbeat for too long is unknown and must join again.
    """
    membership = await call.storage.groups.heartbeat(
        call.group, call.member, generation=call.body.generation, owned=call.body.owned
    )
    return Heartbeat(
        member=membership.member_id,
        generation=membership.generation,
        assigned=[_assigned(place) for place in membership.assigned],
        revoked=[_assigned(place) for place in membership.revoked],
        heartbeat_seconds=to_seconds(membership.group.spec.heartbeat_ms),
    )


def _assigned(place: MemberShard) -> AssignedShard:
    return AssignedShard(place.shard, place.committed, place.position)


# Examples of the OpenAPI document

READ_MARK = "kpKlZ3JvdXCvZGVmYXVsdC9yZWFkZXJzk6VhbGljZQeBAAI"

EXAMPLES = {
    "fetch_records": Example(
        "/v1/groups/readers/records?member=alice&wait_seconds=1",
        answer={
            "records": [{"shard": 0, **RECORD}],
            "member": "alice",
            "generation": 1769860800002,
            "shards": [0, 1],
            "token": READ_MARK,
            "behind_seconds": 0,
            "tier": "hot",
            "gaps": [],
        },
    ),
    "commit_offsets": Example(
        "/v1/groups/readers/commit",
        {"token": READ_MARK},
        answer={"offsets": [{"shard": 0, "offset": 2}], "failed": 0},
        repeat=Repeat.SAFE,
    ),
    "send_heartbeat": Example(
        "/v1/groups/readers/members/bob/heartbeat",
        {"owned": [1]},
        answer=MEMBERSHIP,
        repeat=Repeat.SAFE,
    ),
}
