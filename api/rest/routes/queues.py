"""Queues: configuration, counts and purges."""

from typing import Annotated

from fastapi import APIRouter, Body, Depends, Request, Response

from api.native.audited_route import AuditedRoute
from api.native.cursors import decode_cursor, page_of
from api.native.dependencies import (
    Cursor,
    Limit,
    Prefix,
    PrincipalDep,
    QueuePath,
    StorageDep,
    may,
    require_json,
)
from api.native.examples import AT, CREATED, LATER, Example
from api.native.former_names import note_former_members
from api.rest.conditional_requests import (
    IfMatch,
    IfNoneMatch,
    etag,
    expected_version,
    is_create_only,
    is_unchanged,
    note_outcome,
)
from api.rest.definition_changes import DryRun, comparing
from api.rest.schemas.queue import (
    Purged,
    QueueConfig,
    QueueOut,
    QueuePage,
    QueuePatch,
    QueueStatsOut,
    QueueStored,
)
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.access.permissions import Action, Principal
from storage.domain.errors import PreconditionFailed, QueueNotFound
from storage.domain.queues.queue import Queue, QueueSpec

router = APIRouter(prefix="/v1/queues", tags=["queues"], route_class=AuditedRoute)

MANAGE = Depends(may(Action.QUEUE_MANAGE))
SEE = Depends(may(Action.QUEUE_LIST))
PURGE = Depends(may(Action.QUEUE_PURGE))
JSON_ONLY = Depends(require_json)


@router.put(
    "/{queue}",
    dependencies=[MANAGE, JSON_ONLY],
    responses={201: {"model": QueueStored, "description": "Created"}},
)
async def put_queue(
    queue: QueuePath,
    storage: StorageDep,
    response: Response,
    principal: PrincipalDep,
    config: Annotated[QueueConfig, Body(default_factory=QueueConfig)],
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
    dry_run: DryRun = False,
) -> QueueStored:
    """Create a queue, or replace its configuration.

    A paused queue stays paused. With `If-None-Match: *`, an existing queue is not changed: the response is 412,
    with the queue (`current`) and the requested fields that differ from it (`changes`).
    """
    create_only = is_create_only(if_none_match)
    spec = config.to_domain()
    _authorise(storage, principal, spec)
    if if_match == "*":
        await _require_queue(storage, queue)
    with comparing(
        config, lambda definition: QueueConfig.from_domain(definition.spec), QueueOut.from_domain
    ):
        put = await storage.catalog.put_queue(
            queue,
            spec,
            if_match=expected_version(if_match),
            create_only=create_only,
            dry_run=dry_run,
            replace_pause=config.paused is not None,
        )
    note_former_members(response, config)
    note_outcome(response, put.definition.version, created=put.created and not dry_run)
    return QueueStored.of(put, dry_run=dry_run)


def _authorise(storage: Storage, principal: Principal, spec: QueueSpec) -> None:
    """Require permission to send to the dead-letter queue. Raises Forbidden."""
    if spec.dead_letters is not None:
        target = f"{principal.namespace}/{spec.dead_letters.queue}"
        storage.authorizer.authorise(principal, Action.QUEUE_SEND, target)


async def _require_queue(storage: StorageDep, queue: QueuePath) -> None:
    """Raise PreconditionFailed unless the queue exists."""
    try:
        await storage.catalog.fresh_queue(queue)
    except QueueNotFound:
        raise PreconditionFailed("If-Match: * requires an existing queue.") from None


def _queue_response(queue: Queue, response: Response) -> QueueOut:
    response.headers["etag"] = etag(queue.version)
    return QueueOut.from_domain(queue)


@router.get(
    "/{queue}",
    dependencies=[SEE],
    response_model=QueueOut,
    responses={304: {"description": "Not modified"}},
)
async def get_queue(
    queue: QueuePath, storage: StorageDep, response: Response, if_none_match: IfNoneMatch = None
) -> QueueOut | Response:
    """Show a queue's configuration."""
    stored = await storage.catalog.fresh_queue(queue)
    if is_unchanged(if_none_match, stored.version):
        return Response(status_code=304, headers={"etag": etag(stored.version)})
    return _queue_response(stored, response)


@router.patch("/{queue}", dependencies=[MANAGE, JSON_ONLY])
async def change_queue(
    queue: QueuePath,
    storage: StorageDep,
    response: Response,
    principal: PrincipalDep,
    patch: QueuePatch,
    if_match: IfMatch = None,
) -> QueueOut:
    """Change fields of a queue's configuration."""

    def change(spec: QueueSpec) -> QueueSpec:
        changed = patch.apply(spec)
        if changed.dead_letters != spec.dead_letters:
            _authorise(storage, principal, changed)
        return changed

    stored = await storage.catalog.change_queue(queue, change, if_match=expected_version(if_match))
    note_former_members(response, patch)
    return _queue_response(stored, response)


@router.put("/{queue}/pause", dependencies=[MANAGE])
async def pause_queue(queue: QueuePath, storage: StorageDep, response: Response) -> QueueOut:
    """Pause delivery: the queue accepts messages and delivers none until it is resumed."""
    return _queue_response(await storage.catalog.pause_queue(queue, paused=True), response)


@router.delete("/{queue}/pause", dependencies=[MANAGE])
async def resume_queue(queue: QueuePath, storage: StorageDep, response: Response) -> QueueOut:
    """Resume delivery."""
    return _queue_response(await storage.catalog.pause_queue(queue, paused=False), response)


@router.delete("/{queue}", dependencies=[MANAGE], status_code=204)
async def delete_queue(queue: QueuePath, storage: StorageDep, if_match: IfMatch = None) -> None:
    """Delete a queue and its messages."""
    await storage.catalog.delete_queue(queue, if_match=expected_version(if_match))


@router.get("", dependencies=[SEE])
async def list_queues(
    storage: StorageDep,
    principal: PrincipalDep,
    prefix: Prefix = "",
    limit: Limit = limits.PAGE_ITEMS_DEFAULT,
    cursor: Cursor = "",
) -> QueuePage:
    """List queues by name."""
    about = ("queues", principal.namespace, prefix)
    after = decode_cursor(cursor, about, str) if cursor else ""
    queues = await storage.catalog.list_queues(
        principal.namespace, prefix=prefix, after=after, limit=limit + 1
    )
    page = page_of(
        queues,
        limit,
        about,
        lambda queue: queue.name.name,
        lambda queue: principal.policy.allows(Action.QUEUE_LIST, queue.name.name),
    )
    return QueuePage(
        items=[QueueOut.from_domain(queue) for queue in page.items], next_cursor=page.next_cursor
    )


@router.get("/{queue}/stats", dependencies=[SEE])
async def get_queue_stats(queue: QueuePath, storage: StorageDep, request: Request) -> QueueStatsOut:
    """Return exact message counts of a queue by state."""
    stats = await storage.queues.stats(queue)
    return QueueStatsOut.from_domain(stats, request.app.state.durability)


@router.post("/{queue}/purges", dependencies=[PURGE])
async def purge_queue(queue: QueuePath, storage: StorageDep) -> Purged:
    """Delete all messages of a queue, including those in flight. Dead letters are kept."""
    return Purged(purged=await storage.queues.purge(queue))


# Examples of the OpenAPI document

_QUEUE = {
    "name": "orders",
    "type": "standard",
    "visibility_timeout_seconds": 60,
    "delay_seconds": 0,
    "retention_seconds": 345600,
    "dead_letter_retention_seconds": 1209600,
    "message_bytes_max": 1048576,
    "ttl_seconds": None,
    "attempts_max": 10,
    "receive_wait_seconds": 0,
    "in_flight_max": 10000000,
    "deduplicate_by_content": False,
    "dedup_scope": "queue",
    "dead_letters": None,
    "redrive_allow": {"permission": "allow_all", "sources": []},
    "backoff": None,
    "paused": False,
    "messages_max": None,
    "bytes_max": None,
    "overflow": "reject",
    "on_poison": "skip",
    "group_weights": [],
    "stream_view": False,
    "archive": False,
    "history": False,
    "tags": {"team": "shop"},
    "version": 1,
    "created_at": AT,
    "changed_at": AT,
}
_STATS = {
    "ready": 1,
    "delayed": 0,
    "in_flight": 0,
    "dead_lettered": 0,
    "sent": 2,
    "deduplicated": 0,
    "acknowledged": 1,
    "expired": 0,
    "purged": 0,
    "receive_count": 1,
    "bytes_sent": 24,
    "moving": 0,
    "moved_in": 0,
    "moved_out": 0,
    "parked": 0,
    "dropped": 0,
    "bytes_held": 37,
    "oldest_ready_at": AT,
    "durability": "always",
}

EXAMPLES = {
    "put_queue": Example(
        "/v1/queues/orders",
        {"visibility_timeout_seconds": 60, "tags": {"team": "shop"}},
        201,
        {**_QUEUE, **CREATED},
    ),
    "pause_queue": Example(
        "/v1/queues/orders/pause",
        answer={**_QUEUE, "paused": True, "version": 2, "changed_at": LATER},
    ),
    "resume_queue": Example(
        "/v1/queues/orders/pause", answer={**_QUEUE, "version": 3, "changed_at": LATER}
    ),
    "get_queue": Example("/v1/queues/orders", answer=_QUEUE),
    "change_queue": Example(
        "/v1/queues/orders",
        {"attempts_max": 3},
        200,
        {**_QUEUE, "attempts_max": 3, "version": 2, "changed_at": LATER},
    ),
    "list_queues": Example("/v1/queues?limit=10", answer={"items": [_QUEUE], "next_cursor": None}),
    "get_queue_stats": Example("/v1/queues/orders/stats", answer=_STATS),
    "purge_queue": Example("/v1/queues/orders/purges", answer={"purged": 2}),
    "delete_queue": Example("/v1/queues/orders", status=204),
}
