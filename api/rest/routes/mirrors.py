"""Mirrors: configuration, progress, promotion."""

from typing import Annotated, Any

from fastapi import Body, Depends, Request

from api.native.dependencies import MirrorPath, StorageDep, may
from api.native.examples import AT, CREATED, LATER, Example
from api.native.fields import to_ms
from api.rest.definition_router import JSON_ONLY, definition_router
from api.rest.noun import Noun, Schemas, Verbs, verbs_of
from api.rest.schemas.mirror import (
    MirrorConfig,
    MirrorOut,
    MirrorPage,
    MirrorPromotion,
    MirrorStats,
    MirrorStored,
    PromotionIn,
)
from consumers.mirrors.promotion import MirrorPromoter
from storage.bootstrap import Storage
from storage.domain.access.permissions import Action, Effect, Grant, Principal
from storage.domain.errors import Forbidden
from storage.domain.mirrors.mirror import MirrorSpec

MANAGE = Depends(may(Action.MIRROR_MANAGE))
SEE = Depends(may(Action.MIRROR_LIST))
_WRITES = (Action.STREAM_PUT.value, Action.STREAM_MANAGE.value)
_WRITES_QUEUES = (Action.QUEUE_SEND.value, Action.QUEUE_MANAGE.value)
_MOVES = (Action.GROUP_MANAGE.value, Action.GROUP_RESET.value)


def _authorise(_: Storage, principal: Principal, __: object, spec: MirrorSpec) -> None:
    """Require permission to write all matching streams and queues, and to move groups.

    Raises Forbidden.
    """
    writes = Grant(Effect.ALLOW, _WRITES, spec.streams)
    if spec.streams and not principal.policy.covers((writes,)):
        raise Forbidden(
            f"'{principal.name}' is not allowed to create and write all streams that these patterns name.",
            action=Action.STREAM_PUT.value,
        )
    writes = Grant(Effect.ALLOW, _WRITES_QUEUES, spec.queues)
    if spec.queues and not principal.policy.covers((writes,)):
        raise Forbidden(
            f"'{principal.name}' is not allowed to create and write all queues that these patterns name.",
            action=Action.QUEUE_MANAGE.value,
        )
    if spec.streams and spec.groups and not principal.policy.covers((Grant(Effect.ALLOW, _MOVES),)):
        raise Forbidden(
            f"'{principal.name}' is not allowed to create and reset all groups; mirror without 'groups'.",
            action=Action.GROUP_RESET.value,
        )


def _verbs(storage: Storage, _: Principal) -> Verbs:
    return verbs_of(storage.mirrors, list=storage.mirrors.list_mirrors)


MIRRORS = Noun(
    name="mirror",
    path=MirrorPath,
    schemas=Schemas(MirrorOut, MirrorConfig, MirrorStored, page=MirrorPage),
    body_required=True,
    verbs=_verbs,
    authorise=_authorise,
    is_etag_complete=True,
    descriptions={
        "put": """Create a mirror that copies streams and queues of another deployment to this one, or replace its configuration.

            Each record of the other deployment is added once, and those of a key stay in order. Streams are created here with the
            settings and the number of shards that they have there, and so are the consumer groups that read them, whose committed
            offsets move with those of the other deployment, unless `groups` is false. The copy of a queue has the messages and dead
            letters that the queue has, takes no other messages, and delivers nothing until the mirror is promoted. What has been copied stays. Whether the mirror is
            paused does not change. With `If-None-Match: *`, an existing mirror is not changed: the response is 412, with the mirror
            (`current`) and the requested fields that differ from it (`changes`).
            """,
        "get": "Show the configuration of a mirror, without its key.",
        "pause": "Pause a mirror. It continues where it was when it is resumed.",
        "resume": "Resume a paused mirror.",
        "delete": "Delete a mirror. The streams and queues and what was copied to them are kept; queues stay read-only.",
        "list": "List mirrors by name.",
    },
)
router = definition_router(MIRRORS)


@router.get("/{mirror}/stats", dependencies=[SEE])
async def get_mirror_stats(mirror: MirrorPath, storage: StorageDep) -> MirrorStats:
    """Show the progress of a mirror by shard, queue and group, and why it fails, if it does."""
    definition = await storage.mirrors.get(mirror)
    now_ms = definition.promoted_at_ms or storage.mirrors.now_ms()
    return MirrorStats.of(await storage.mirrors.status(definition), now_ms)


def promoter_of(request: Request) -> MirrorPromoter:
    """Return the promoter of this process."""
    promoter: MirrorPromoter = request.app.state.promoter
    return promoter


PromoterDep = Annotated[MirrorPromoter, Depends(promoter_of)]
Promote = Annotated[PromotionIn, Body(default_factory=PromotionIn)]


@router.post("/{mirror}/promotion", dependencies=[MANAGE, JSON_ONLY])
async def promote_mirror(
    mirror: MirrorPath, promoter: PromoterDep, promotion: Promote
) -> MirrorPromotion:
    """Make the streams and queues of a mirror independent of the other deployment.

    For a planned move, or after the other deployment failed. If it can be reached and the mirror's key has `stream:manage` there
    (for queues `queue:manage`), its streams and queues are made read-only and the last records are copied: nothing is lost. If these take longer than `wait_seconds`, the mirror
    is not promoted (`promoted_at` is null), and the other deployment stays read-only: call again. If it cannot be reached, or
    refuses, the mirror is promoted at once, and `origin` says so.

    A promoted mirror never copies again; nothing that is still on its way is added. A promotion cannot be undone: to copy again,
    in either direction, create another mirror.
    """
    done = await promoter.promote(
        mirror,
        fence=promotion.fence,
        force=promotion.force,
        wait_ms=to_ms(promotion.wait_seconds),
    )
    return MirrorPromotion.from_domain(done.mirror, outcome=done.origin)


# Examples of the OpenAPI document

_MIRROR: dict[str, Any] = {
    "name": "eu",
    "from": {"url": "https://eu.example.com"},
    "streams": ["eu.*"],
    "queues": ["eu.*"],
    "groups": True,
    "follow_definitions": False,
    "paused": False,
    "promoted_at": None,
    "version": 1,
    "created_at": AT,
    "changed_at": AT,
}

EXAMPLES = {
    "put_mirror": Example(
        "/v1/mirrors/eu",
        {
            "from": {"url": "https://eu.example.com", "key": "ms_8fKQ2rGq"},
            "streams": ["eu.*"],
            "queues": ["eu.*"],
        },
        201,
        {**_MIRROR, **CREATED},
    ),
    "get_mirror": Example("/v1/mirrors/eu", answer=_MIRROR),
    "list_mirrors": Example(
        "/v1/mirrors?prefix=eu", answer={"items": [_MIRROR], "next_cursor": None}
    ),
    "get_mirror_stats": Example(
        "/v1/mirrors/eu/stats",
        answer={
            "lag_records": 7,
            "lag_seconds": 0.4,
            "failures": [],
            "shards": [
                {
                    "stream": "eu.orders",
                    "shard": 0,
                    "next_offset": 1200,
                    "tip": 1207,
                    "lag_records": 7,
                    "lag_seconds": 0.4,
                    "copied": 1200,
                    "skipped": 0,
                    "ended": False,
                    "checked_at": LATER,
                    "failure": "",
                }
            ],
            "queues": [
                {
                    "queue": "eu.emails",
                    "next_offset": 310,
                    "tip": 310,
                    "lag_messages": 0,
                    "lag_seconds": 0,
                    "copied": 120,
                    "checked_at": LATER,
                    "failure": "",
                }
            ],
            "groups": [
                {
                    "group": "billing",
                    "stream": "eu.orders",
                    "state": "followed",
                    "moved_at": LATER,
                    "failure": "",
                }
            ],
        },
    ),
    "pause_mirror": Example(
        "/v1/mirrors/eu/pause",
        answer={**_MIRROR, "paused": True, "version": 2, "changed_at": LATER},
    ),
    "resume_mirror": Example(
        "/v1/mirrors/eu/pause", answer={**_MIRROR, "version": 3, "changed_at": LATER}
    ),
    "promote_mirror": Example(
        "/v1/mirrors/eu/promotion",
        {"wait_seconds": 10},
        answer={
            **_MIRROR,
            "promoted_at": LATER,
            "version": 4,
            "changed_at": LATER,
            "origin": "fenced",
        },
    ),
    "delete_mirror": Example("/v1/mirrors/eu", status=204),
}
