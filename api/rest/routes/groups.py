"""Consumer groups: configuration, members, bookmarks and offsets."""

from functools import partial
from typing import Annotated

from fastapi import Body, Depends, Query

from api.native.dependencies import GroupPath, NamePart, StorageDep, may
from api.native.examples import AT, CREATED, LATER, MEMBERSHIP, Example
from api.rest.conditional_requests import IfNoneMatch, is_create_only
from api.rest.definition_router import JSON_ONLY, definition_router
from api.rest.noun import MeasurementOf, Noun, Schemas, Verbs, verbs_of
from api.rest.schemas.group import (
    BookmarkIn,
    BookmarkList,
    BookmarkOut,
    GroupConfig,
    GroupDetail,
    GroupLag,
    GroupMeasurement,
    GroupOut,
    GroupPage,
    GroupSnapshot,
    GroupStored,
    JoinIn,
    ListedGroup,
    MembershipOut,
    ResetIn,
    ResetOut,
    ShardResetOut,
    positions_from,
)
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.access.permissions import Action, Principal
from storage.domain.groups.group import GroupSpec
from storage.domain.names import GroupName
from storage.groups.engine import Groups

MANAGE = Depends(may(Action.GROUP_MANAGE))
Bookmark = Annotated[BookmarkIn, Body(default_factory=BookmarkIn)]
Join = Annotated[JoinIn, Body(default_factory=JoinIn)]
CONSUME = Depends(may(Action.GROUP_COMMIT))
RESET = Depends(may(Action.GROUP_RESET))
SEE = Depends(may(Action.GROUP_LIST))


def _authorise(storage: Storage, principal: Principal, _: object, spec: GroupSpec) -> None:
    """Require permission to read the stream. Raises Forbidden."""
    stream = f"{principal.namespace}/{spec.stream}"
    storage.authorizer.authorise(principal, Action.STREAM_READ, stream)


async def _describe(groups: Groups, name: GroupName) -> GroupSnapshot:
    group, members, shards = await groups.describe(name)
    return GroupSnapshot(group, members, [(one.lease, one.committed) for one in shards.values()])


def _verbs(storage: Storage, _: Principal) -> Verbs:
    groups = storage.groups
    return verbs_of(groups, get=partial(_describe, groups), list=groups.list_groups)


GROUPS = Noun(
    name="group",
    id="consumer_group",
    path=GroupPath,
    schemas=Schemas(
        GroupOut,
        GroupConfig,
        GroupStored,
        page=GroupPage,
        detail=GroupDetail,
        listed=ListedGroup,
    ),
    measurement=MeasurementOf(
        GroupMeasurement, lambda storage, namespace: storage.time_series.latest_groups(namespace)
    ),
    body_required=True,
    verbs=_verbs,
    authorise=_authorise,
    descriptions={
        "put": """Create a group that reads a stream, or change its timeouts.

            A paused group stays paused. With `If-None-Match: *`, an existing group is not changed: the response is 412,
            with the group (`current`) and the requested fields that differ from it (`changes`).
            """,
        "get": "Show a group, its members and their shards.",
        "pause": """Pause a group: its members receive no records until it is resumed.

            Members notice within one heartbeat, at most 5 seconds. They keep their shards, and may commit what they have received.
            """,
        "resume": "Resume a group.",
        "delete": "Delete a group, its offsets and its bookmarks.",
        "list": "List groups by name.",
    },
)
router = definition_router(GROUPS)


@router.post("/{group}/members", dependencies=[CONSUME, JSON_ONLY])
async def join_group(
    group: GroupPath,
    storage: StorageDep,
    join: Join,
) -> MembershipOut:
    """Join a group. Rejoining with the same name fences the previous instance.

    Members then send heartbeats, read their shards and commit. `GET …/records` does all of that except the commit.
    """
    joined = await storage.groups.join(
        group, member_id=join.member or "", instance_id=join.instance_id or ""
    )
    return MembershipOut.from_domain(joined)


@router.delete("/{group}/members/{member}", dependencies=[CONSUME], status_code=204)
async def leave_group(
    group: GroupPath,
    member: NamePart,
    storage: StorageDep,
    for_a_while: Annotated[
        bool, Query(description="A member with an `instance_id` keeps its shards until it returns.")
    ] = False,
    generation: Annotated[
        int | None,
        Query(
            ge=0,
            le=limits.OFFSET_MAX,
            description="The generation that the member has: a newer instance of it is left alone.",
        ),
    ] = None,
) -> None:
    """Leave a group. The member's shards are reassigned immediately."""
    await storage.groups.leave(group, member, for_good=not for_a_while, generation=generation)


@router.post("/{group}/reset", dependencies=[RESET, JSON_ONLY])
async def reset_group(group: GroupPath, storage: StorageDep, reset: ResetIn) -> ResetOut:
    """Reset the offsets of a group, even while members are active.

    Reads before the reset are discarded: their commits are rejected as stale.
    """
    done = await storage.groups.positions.reset(group, reset.to_domain(), dry_run=reset.dry_run)
    return ResetOut(
        dry_run=reset.dry_run, shards=[ShardResetOut.from_domain(shard) for shard in done]
    )


@router.get("/{group}/lag", dependencies=[SEE])
async def get_group_lag(group: GroupPath, storage: StorageDep) -> GroupLag:
    """Show the lag of a group in records and time, and when unread records expire."""
    return GroupLag.from_domain(await storage.groups.lags.by_shard(group))


@router.put("/{group}/bookmarks/{bookmark}", dependencies=[MANAGE, JSON_ONLY])
async def put_bookmark(
    group: GroupPath,
    bookmark: NamePart,
    storage: StorageDep,
    body: Bookmark,
    if_none_match: IfNoneMatch = None,
) -> BookmarkOut:
    """Save the group's current offsets, or other offsets, as a bookmark."""
    offsets = body.positions
    positions = None if offsets is None else positions_from(offsets, "/positions")
    saved = await storage.groups.positions.save_bookmark(
        group, bookmark, positions, create_only=is_create_only(if_none_match)
    )
    return BookmarkOut.from_domain(saved)


@router.get("/{group}/bookmarks", dependencies=[SEE])
async def list_bookmarks(group: GroupPath, storage: StorageDep) -> BookmarkList:
    """List a group's bookmarks by name."""
    bookmarks = await storage.groups.positions.bookmarks(group)
    return BookmarkList(items=[BookmarkOut.from_domain(bookmark) for bookmark in bookmarks])


@router.delete("/{group}/bookmarks/{bookmark}", dependencies=[MANAGE], status_code=204)
async def delete_bookmark(group: GroupPath, bookmark: NamePart, storage: StorageDep) -> None:
    """Delete a bookmark."""
    await storage.groups.positions.delete_bookmark(group, bookmark)


# Examples of the OpenAPI document

_GROUP = {
    "name": "readers",
    "stream": "clicks",
    "kind": "ordered",
    "start": "earliest",
    "start_time": None,
    "session_timeout_seconds": 30,
    "static_timeout_seconds": 300,
    "revoke_timeout_seconds": 60,
    "paused": False,
    "version": 1,
    "created_at": AT,
    "changed_at": AT,
}
_GROUP_DETAIL = {
    **_GROUP,
    "generation": 1769860800002,
    "members": [
        {
            "member": "alice",
            "static": False,
            "disconnected": False,
            "joined_at": AT,
            "heartbeat_at": LATER,
            "assigned": [0, 1],
            "revoked": [],
        }
    ],
    "shards": [{"shard": 0, "member": "alice", "committed": 2, "finished": False}],
}
_BOOKMARK = {"name": "before-deploy", "positions": {"0": 2, "1": 0}, "created_at": AT}
_SHARD_LAG = {
    "shard": 0,
    "member": "alice",
    "committed": 2,
    "position": 2,
    "start": 0,
    "tip": 5,
    "records": 3,
    "expired": 0,
    "lag_seconds": 4.2,
    "loss_in_seconds": 604795.8,
    "finished": False,
}
_MEASUREMENT = {
    "measured_at": LATER,
    "members": 2,
    "lag_records": 41,
    "oldest_unread_at": AT,
    "last_commit_at": LATER,
    "committed_per_second": 12.5,
}

EXAMPLES = {
    "put_consumer_group": Example(
        "/v1/groups/readers", {"stream": "clicks"}, 201, {**_GROUP, **CREATED}
    ),
    "pause_consumer_group": Example(
        "/v1/groups/readers/pause",
        answer={**_GROUP, "paused": True, "version": 2, "changed_at": LATER},
    ),
    "resume_consumer_group": Example(
        "/v1/groups/readers/pause", answer={**_GROUP, "version": 3, "changed_at": LATER}
    ),
    "list_consumer_groups": Example(
        "/v1/groups?prefix=re&measured=true",
        answer={"items": [{**_GROUP, "measurement": _MEASUREMENT}], "next_cursor": None},
    ),
    "get_consumer_group": Example("/v1/groups/readers", answer=_GROUP_DETAIL),
    "get_group_lag": Example(
        "/v1/groups/readers/lag",
        answer={
            "records": 3,
            "lag_seconds": 4.2,
            "loss_in_seconds": 604795.8,
            "shards": [_SHARD_LAG],
        },
    ),
    "put_bookmark": Example("/v1/groups/readers/bookmarks/before-deploy", {}, answer=_BOOKMARK),
    "list_bookmarks": Example("/v1/groups/readers/bookmarks", answer={"items": [_BOOKMARK]}),
    "reset_group": Example(
        "/v1/groups/readers/reset",
        {"to": "bookmark", "bookmark": "before-deploy", "dry_run": True},
        answer={
            "dry_run": True,
            "shards": [{"shard": 0, "before": 5, "after": 2, "expired": 0}],
        },
    ),
    "delete_bookmark": Example("/v1/groups/readers/bookmarks/before-deploy", status=204),
    "join_group": Example(
        "/v1/groups/readers/members",
        {"member": "bob"},
        answer={**MEMBERSHIP, "session_timeout_seconds": 30},
        guards=("member", "instance_id"),
    ),
    "leave_group": Example("/v1/groups/readers/members/bob", status=204),
    "delete_consumer_group": Example("/v1/groups/readers", status=204),
}
