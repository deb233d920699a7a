"""Replays of stream records to another stream or to a queue."""

from inspect import cleandoc
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Response

from api.native.audited_route import AuditedRoute
from api.native.cursors import decode_cursor, page_of
from api.native.dependencies import (
    Cursor,
    Limit,
    PrincipalDep,
    StorageDep,
    may,
    require_json,
)
from api.native.examples import AT, LATER, Example, Repeat
from api.rest.schemas.replay import PlanOut, ReplayConfig, ReplayDetail, ReplayOut, ReplayPage
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.access.permissions import Action, Principal
from storage.domain.errors import JobNotFound
from storage.domain.jobs import JobState
from storage.domain.replays.replay import ReplayRequest
from storage.operations.job_waits import wait_reasons
from storage.replays.engine import Replay

router = APIRouter(prefix="/v1/replays", tags=["replays"], route_class=AuditedRoute)

MANAGE = Depends(may(Action.REPLAY_RUN))
SEE = Depends(may(Action.REPLAY_LIST))
ReplayId = Annotated[str, Path(description="As returned when the replay was created.")]


@router.post(
    "",
    dependencies=[MANAGE, Depends(require_json)],
    status_code=202,
    responses={200: {"model": PlanOut, "description": "Result of a dry run"}},
    response_model=ReplayOut,
)
async def start_replay(
    storage: StorageDep, principal: PrincipalDep, response: Response, config: ReplayConfig
) -> ReplayOut | Response:
    """Start a replay, which sends each record once, or preview it with `dry_run`."""
    request = config.to_domain()
    _authorise(storage, principal, request)
    namespace = principal.namespace
    if config.dry_run:
        plan = await storage.replays.plan(namespace, request, exact=config.exact)
        body = PlanOut.from_domain(plan).model_dump_json()
        return Response(body, media_type="application/json")
    replay = await storage.replays.submit(namespace, request, config.id)
    response.headers["location"] = f"/v1/replays/{replay.spec.replay_id}"
    return await _answer(storage, replay)


async def _answer(storage: Storage, replay: Replay) -> ReplayOut:
    waits = await wait_reasons(storage.presence, replay.job)
    return ReplayOut.of(replay, waits.get(replay.job.job_id))


def _authorise(storage: Storage, principal: Principal, request: ReplayRequest) -> None:
    """Require permission to read the source and to write to the target. Raises Forbidden."""
    target, authorise = request.target, storage.authorizer.authorise
    authorise(principal, Action.REPLAY_RUN, f"{principal.namespace}/{request.stream}")
    authorise(principal, Action.STREAM_READ, f"{principal.namespace}/{request.stream}")
    if target.stream is not None:
        authorise(principal, Action.STREAM_PUT, f"{principal.namespace}/{target.stream}")
    if target.queue is not None:
        authorise(principal, Action.QUEUE_SEND, f"{principal.namespace}/{target.queue}")


@router.get("", dependencies=[SEE])
async def list_replays(
    storage: StorageDep,
    principal: PrincipalDep,
    state: Annotated[JobState | None, Query()] = None,
    limit: Limit = limits.PAGE_ITEMS_DEFAULT,
    cursor: Cursor = "",
) -> ReplayPage:
    """List replays, newest first. Finished replays are listed for 30 days."""
    about = ("replays", principal.namespace, state or "")
    after = decode_cursor(cursor, about, tuple[int, str]) if cursor else None
    replays = await storage.replays.page(
        principal.namespace, state=state, after=after, limit=limit + 1
    )
    page = page_of(
        replays,
        limit,
        about,
        lambda replay: (replay.job.created_at_ms, replay.job.job_id),
        lambda replay: principal.policy.allows(Action.REPLAY_LIST, replay.spec.request.stream),
    )
    waits = await wait_reasons(storage.presence, *(replay.job for replay in page.items))
    return ReplayPage(
        items=[ReplayOut.of(replay, waits.get(replay.job.job_id)) for replay in page.items],
        next_cursor=page.next_cursor,
    )


@router.get("/{replay}", dependencies=[SEE])
async def get_replay(
    replay: ReplayId, storage: StorageDep, principal: PrincipalDep
) -> ReplayDetail:
    """Show the progress of a replay, by shard."""
    stored = await _named(storage, principal, replay, Action.REPLAY_LIST)
    waits = await wait_reasons(storage.presence, stored.job)
    return ReplayDetail.of(stored, waits.get(stored.job.job_id))


def _add_command(command: str, description: str) -> None:
    """Add a route that commands a replay with the verb of its engine."""

    async def change_replay(
        replay: ReplayId, storage: StorageDep, principal: PrincipalDep
    ) -> ReplayOut:
        await _named(storage, principal, replay, Action.REPLAY_RUN)
        verb = getattr(storage.replays, command)
        return await _answer(storage, await verb(principal.namespace, replay))

    router.add_api_route(
        f"/{{replay}}/{command}",
        change_replay,
        methods=["POST"],
        name=f"{command}_replay",
        description=cleandoc(description),
        dependencies=[MANAGE],
    )


_add_command(
    "pause",
    """Pause a replay.

    A running replay stops within seconds; until then its `requested_state` is 'pause'.
    """,
)
_add_command("resume", "Resume a paused replay.")
_add_command("cancel", "Cancel a replay; records already sent are kept.")
_add_command("retry", "Retry a failed replay from its current position.")


async def _named(storage: Storage, principal: Principal, replay_id: str, action: Action) -> Replay:
    """Return the replay, if the caller may perform the action on its stream.

    Raises JobNotFound, also without the permission.
    """
    replay = await storage.replays.get(principal.namespace, replay_id)
    if not principal.policy.allows(action, replay.spec.request.stream):
        raise JobNotFound(f"Replay '{replay_id}' does not exist.")
    return replay


# Examples of the OpenAPI document

_REPLAY = {
    "id": "again",
    "stream": "clicks",
    "target": {"stream": None, "queue": "web", "shard_mode": "rehash"},
    "order": "key",
    "state": "queued",
    "requested_state": "none",
    "waiting_for": "worker",
    "attempt": 0,
    "failure": "",
    "created_at": AT,
    "started_at": None,
    "ended_at": None,
}
_REPLAY_COUNTS = {
    "read": 5000,
    "selected": 120,
    "sent": 120,
    "duplicates": 0,
    "bytes": 30720,
    "expired": 0,
}

EXAMPLES = {
    "start_replay": Example(
        "/v1/replays",
        {
            "id": "again",
            "stream": "clicks",
            "target": {"queue": "web"},
            "from": {"time": AT},
            "filter": {"body": [{"path": "/page", "equal_to": "/cart"}]},
            "order": "key",
            "pacing": {"records_per_second": 500},
        },
        status=202,
        answer=_REPLAY,
        before=(("PUT", "/v1/queues/web", {}),),
        guards=("id",),
    ),
    "list_replays": Example(
        "/v1/replays?limit=1", answer={"items": [_REPLAY], "next_cursor": None}
    ),
    "get_replay": Example(
        "/v1/replays/again",
        answer={
            **_REPLAY,
            "state": "running",
            "waiting_for": None,
            "request": {
                "stream": "clicks",
                "target": {"queue": "web", "shard_mode": "rehash"},
                "from": {"time": AT},
                "to": None,
                "filter": {"body": [{"path": "/page", "equal_to": "/cart"}]},
                "order": "key",
                "pacing": {"records_per_second": 500},
            },
            "progress": {**_REPLAY_COUNTS, "records": 10000, "parts": 1, "parts_done": 0},
            "shards": [
                {
                    **_REPLAY_COUNTS,
                    "shard": 0,
                    "first": 0,
                    "end": 10000,
                    "position": 5000,
                    "done": False,
                }
            ],
        },
    ),
    "pause_replay": Example(
        "/v1/replays/again/pause",
        answer={**_REPLAY, "state": "paused", "waiting_for": None},
        repeat=Repeat.SAFE,
    ),
    "resume_replay": Example("/v1/replays/again/resume", answer=_REPLAY, repeat=Repeat.SAFE),
    "retry_replay": Example("/v1/replays/again/retry", answer=_REPLAY, repeat=Repeat.SAFE),
    "cancel_replay": Example(
        "/v1/replays/again/cancel",
        answer={**_REPLAY, "state": "cancelled", "waiting_for": None, "ended_at": LATER},
        repeat=Repeat.SAFE,
    ),
}
