"""Moves of messages from a queue to others."""

from typing import Annotated

from fastapi import APIRouter, Body, Depends, Path, Response

from api.native.audited_route import AuditedRoute
from api.native.dependencies import Limit, PrincipalDep, QueuePath, StorageDep, may, require_json
from api.native.examples import AT, Example
from api.rest.schemas.move import MoveChange, MoveConfig, MoveList, MoveOut
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.errors import MoveNotFound, ValidationFailed
from storage.domain.names import QueueName
from storage.domain.queues.moves import Move, MoveState

router = APIRouter(prefix="/v1/queues/{queue}/moves", tags=["queues"], route_class=AuditedRoute)

REDRIVE = Depends(may(Action.QUEUE_REDRIVE))
SEE = Depends(may(Action.QUEUE_LIST))
MoveId = Annotated[str, Path(description="As returned when the move was started.")]


@router.post("", dependencies=[REDRIVE, Depends(require_json)], status_code=202)
async def start_move(
    queue: QueuePath,
    storage: StorageDep,
    principal: PrincipalDep,
    response: Response,
    config: Annotated[MoveConfig, Body(default_factory=MoveConfig)],
) -> MoveOut:
    """Start moving the ready messages to `destination`, or dead letters back to their sources.

    Without a destination the queue must be a dead-letter queue. Message groups keep their order. Messages that are delayed
    or in flight are moved when they are ready: stop senders and consumers first, and start the move again until it finds none.
    """
    destination = config.destination
    if destination is not None:
        where = f"{queue.namespace}/{destination}"
        storage.authorizer.authorise(principal, Action.QUEUE_SEND, where)
    move = await storage.moves.start(
        queue,
        None if destination is None else QueueName(destination, queue.namespace),
        config.per_second or 0,
    )
    response.headers["location"] = f"/v1/queues/{queue.name}/moves/{move.move_id}"
    return MoveOut.from_domain(move)


@router.get("", dependencies=[SEE])
async def list_moves(
    queue: QueuePath, storage: StorageDep, limit: Limit = limits.PAGE_ITEMS_DEFAULT
) -> MoveList:
    """List the moves from a queue, newest first."""
    await storage.catalog.queue(queue)
    moves = await storage.moves.list(queue, limit)
    return MoveList(items=[MoveOut.from_domain(move) for move in moves])


@router.get("/{move}", dependencies=[SEE])
async def get_move(queue: QueuePath, move: MoveId, storage: StorageDep) -> MoveOut:
    """Show the progress of a move."""
    return MoveOut.from_domain(await _move_of(storage, queue, move))


@router.patch("/{move}", dependencies=[REDRIVE, Depends(require_json)])
async def change_move(
    queue: QueuePath, move: MoveId, storage: StorageDep, change: MoveChange
) -> MoveOut:
    """Cancel a move: `{"state": "cancelled"}`."""
    if change.state is not MoveState.CANCELLED:
        raise ValidationFailed.at("/state", "A move can only be cancelled", "not_supported")
    stored = await _move_of(storage, queue, move)
    return MoveOut.from_domain(await storage.moves.cancel(stored.move_id))


async def _move_of(storage: StorageDep, queue: QueueName, move_id: str) -> Move:
    """Return the move from this queue. Raises MoveNotFound."""
    move = await storage.moves.get(move_id)
    if move.source != queue:
        raise MoveNotFound
    return move


# Examples of the OpenAPI document

MOVE_ID = "6f1d2c3b4a5968778695a4b3c2d1e0ff"
_MOVE = {
    "id": MOVE_ID,
    "source": "orders",
    "destination": "web",
    "per_second": 1,
    "state": "running",
    "moved": 0,
    "to_move": 2,
    "redrive": False,
    "failure": "",
    "started_at": AT,
}

EXAMPLES = {
    "start_move": Example(
        "/v1/queues/orders/moves",
        {"destination": "web", "per_second": 1},
        202,
        _MOVE,
        before=(
            ("PUT", "/v1/queues/web", {"dead_letters": {"queue": "orders", "receives_max": 3}}),
            ("POST", "/v1/queues/orders/messages", {"messages": [{"body": 1}, {"body": 2}]}),
        ),
    ),
    "list_moves": Example("/v1/queues/orders/moves", answer={"items": [_MOVE]}),
    "get_move": Example(f"/v1/queues/orders/moves/{MOVE_ID}", answer=_MOVE),
    "change_move": Example(
        f"/v1/queues/orders/moves/{MOVE_ID}",
        {"state": "cancelled"},
        answer={**_MOVE, "state": "cancelling"},
    ),
}
