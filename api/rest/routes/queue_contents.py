"""Queue contents: single messages, dead letters and their redrive, parked groups."""

from typing import Annotated, Literal

import msgspec
from fastapi import APIRouter, Body, Depends, Path, Query, Response

from api.http.codecs import JSON
from api.native.audited_route import AuditedRoute
from api.native.cursors import decode_cursor, page_of
from api.native.dependencies import Cursor, Limit, QueuePath, StorageDep, may, require_json
from api.native.examples import AT, BROWSED, LATER, Example
from api.native.fields import to_ms
from api.rest.schemas.browsed_message import BrowsedMessageOut, DeadLetterOut
from api.rest.schemas.move import MoveOut
from api.rest.schemas.queue_contents import (
    DeathReasonOut,
    DeathReasons,
    MessageChange,
    MessageHistoryOut,
    ParkedGroupOut,
    ParkedGroups,
    PauseConfig,
    RedriveConfig,
    Redriven,
    Resumed,
)
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.errors import MessageNotFound
from storage.domain.names import QueueName
from storage.domain.queues.message import WhichDead

router = APIRouter(prefix="/v1/queues", tags=["queues"], route_class=AuditedRoute)

MANAGE = Depends(may(Action.QUEUE_MANAGE))
SEE = Depends(may(Action.QUEUE_LIST))
PEEK = Depends(may(Action.QUEUE_PEEK))
REDRIVE = Depends(may(Action.QUEUE_REDRIVE))
PURGE = Depends(may(Action.QUEUE_PURGE))
JSON_ONLY = Depends(require_json)
MessagePath = Annotated[str, Path(description="Message id or offset.")]

_SCHEMAS = [
    {"$ref": f"#/components/schemas/{schema.__name__}"}
    for schema in (BrowsedMessageOut, DeadLetterOut)
]
_MESSAGE = {"schema": {"anyOf": _SCHEMAS}}


@router.get(
    "/{queue}/messages/{message}",
    dependencies=[PEEK],
    response_class=Response,
    responses={200: {"content": {JSON: _MESSAGE}}},
)
async def get_message(queue: QueuePath, message: MessagePath, storage: StorageDep) -> Response:
    """Show a message or dead letter by id or offset, without receiving it."""
    return await _message_response(queue, message, storage)


async def _message_response(queue: QueueName, message: str, storage: Storage) -> Response:
    out: BrowsedMessageOut | DeadLetterOut
    try:
        shown = await storage.inspector.show(queue, message)
        consumers = await storage.queue_consumers.receivers_of(queue, [shown])
        out = BrowsedMessageOut.from_domain(shown, False, consumers)
    except MessageNotFound:
        letter = await storage.dead_letters.get(queue, message)
        consumers = await storage.queue_consumers.receivers_of(queue, [letter])
        out = DeadLetterOut.from_domain(letter, False, consumers)
    return Response(msgspec.json.encode(out), media_type=JSON)


@router.get("/{queue}/messages/{message}/history", dependencies=[PEEK])
async def get_message_history(
    queue: QueuePath, message: MessagePath, storage: StorageDep
) -> MessageHistoryOut:
    """Show the history of a message, even after it was deleted.

    Requires a queue with `history` enabled.
    """
    history = await storage.inspector.history(queue, message)
    consumers = await storage.queue_consumers.receivers_of(queue, history.attempts)
    return MessageHistoryOut.from_domain(message, history, consumers)


@router.patch(
    "/{queue}/messages/{message}",
    dependencies=[MANAGE, JSON_ONLY],
    response_class=Response,
    responses={200: {"content": {JSON: _MESSAGE}}},
)
async def change_message(
    queue: QueuePath, message: MessagePath, storage: StorageDep, change: MessageChange
) -> Response:
    """Change the body, the due time or the priority of a message.

    The due time is a delay from now.
    """
    new_body = change.new_body()
    if new_body is not None:
        await storage.inspector.replace(queue, message, *new_body)
    if change.delay_seconds is not None or change.priority is not None:
        delay = change.delay_seconds
        await storage.inspector.change(
            queue,
            message,
            delay_ms=None if delay is None else to_ms(delay),
            priority=change.priority,
        )
    return await _message_response(queue, message, storage)


@router.delete("/{queue}/messages/{message}", dependencies=[PURGE], status_code=204)
async def delete_message(queue: QueuePath, message: MessagePath, storage: StorageDep) -> None:
    """Delete a message or dead letter by id or offset, in any state."""
    await storage.inspector.drop(queue, message)


@router.get("/{queue}/dead-letters/reasons", dependencies=[SEE])
async def list_death_reasons(queue: QueuePath, storage: StorageDep) -> DeathReasons:
    """Count the dead letters of a queue by reason, most frequent first."""
    reasons = await storage.dead_letters.reasons(queue)
    return DeathReasons(items=[DeathReasonOut.from_domain(one) for one in reasons])


@router.post(
    "/{queue}/redrives",
    dependencies=[REDRIVE, JSON_ONLY],
    response_model=Redriven,
    responses={202: {"model": MoveOut, "description": "Continues in the background"}},
)
async def redrive_queue(
    queue: QueuePath,
    storage: StorageDep,
    config: Annotated[RedriveConfig, Body(default_factory=RedriveConfig)],
) -> Redriven | Response:
    """Redrive dead letters of a queue, oldest first: all of them, or those that match.

    With `per_second`, this starts a move, whose progress is at `location`.
    """
    which = WhichDead(
        reason=config.reason, group=config.group, references=tuple(config.messages or ())
    )
    if config.per_second is not None:
        return await _begin_redrive(queue, storage, which, config.per_second)
    redriven = await storage.dead_letters.redrive(queue, which, messages_max=config.messages_max)
    return Redriven(redriven=redriven)


async def _begin_redrive(
    queue: QueueName, storage: Storage, which: WhichDead, per_second: int
) -> Response:
    move = MoveOut.from_domain(await storage.moves.redrive(queue, which, per_second))
    location = f"/v1/queues/{queue.name}/moves/{move.id}"
    return Response(move.model_dump_json(), 202, {"location": location}, media_type=JSON)


GroupPath = Annotated[str, Path(description="Name of the message group.")]


@router.get("/{queue}/groups", dependencies=[SEE])
async def list_parked_groups(
    queue: QueuePath,
    storage: StorageDep,
    state: Annotated[Literal["parked"], Query(description="Groups to list.")] = "parked",
    limit: Limit = limits.PAGE_ITEMS_DEFAULT,
    cursor: Cursor = "",
) -> ParkedGroups:
    """List the parked groups of a queue by name. They are not delivered until resumed."""
    about = ("groups", (await storage.catalog.queue(queue)).log_id, state)
    after = decode_cursor(cursor, about, str) if cursor else ""
    groups = await storage.parked_groups.browse(queue, after=after, groups_max=limit + 1)
    page = page_of(groups, limit, about, lambda parked: parked.group)
    items = [ParkedGroupOut.from_domain(group) for group in page.items]
    return ParkedGroups(items=items, next_cursor=page.next_cursor)


@router.put("/{queue}/groups/{group:path}/pause", dependencies=[MANAGE, JSON_ONLY], status_code=204)
async def pause_group(
    queue: QueuePath,
    group: GroupPath,
    storage: StorageDep,
    config: Annotated[PauseConfig, Body(default_factory=PauseConfig)],
) -> None:
    """Pause delivery of a group until it is resumed. Messages in flight stay in flight."""
    await storage.parked_groups.park(queue, group, config.reason)


@router.delete("/{queue}/groups/{group:path}/pause", dependencies=[MANAGE])
async def resume_group(queue: QueuePath, group: GroupPath, storage: StorageDep) -> Resumed:
    """Resume delivery of a parked group in order.

    The failing message gets all its attempts again.
    """
    return Resumed(resumed=await storage.parked_groups.resume(queue, group))


# Examples of the OpenAPI document

_PARKED = {
    "group": "customer-7",
    "state": "parked",
    "parked_at": AT,
    "reason": "disputed",
    "poison_offset": None,
    "messages": 0,
    "first_offset": None,
}

_EVENT = {"at": AT, "reason": "", "details": ""}

EXAMPLES = {
    "get_message": Example(
        "/v1/queues/orders/messages/2",
        answer=BROWSED,
        before=(("POST", "/v1/queues/orders/messages", {"body": "hello"}),),
    ),
    "get_message_history": Example(
        "/v1/queues/orders/messages/0/history",
        answer={
            "id": "0",
            "offset": 0,
            "state": "in_flight",
            "truncated": False,
            "attempts": [
                {
                    "number": 1,
                    "received_at": AT,
                    "ended_at": None,
                    "outcome": "in_flight",
                    "consumer": {
                        "id": "7f3a90c2e51b",
                        "principal": "order-worker",
                        "protocol": "rest",
                        "address": "192.0.2.7",
                        "client": "millstream-client/0.1.0",
                    },
                    "reason": "",
                    "details": "",
                }
            ],
            "events": [
                {**_EVENT, "type": "sent", "until": None, "number": None},
                {**_EVENT, "type": "delivered", "until": LATER, "number": 1},
            ],
        },
    ),
    "change_message": Example(
        "/v1/queues/orders/messages/2",
        {"body": "hello again", "delay_seconds": 30},
        answer={**BROWSED, "state": "delayed", "due_at": LATER},
    ),
    "delete_message": Example("/v1/queues/orders/messages/2", status=204),
    "list_death_reasons": Example(
        "/v1/queues/orders/dead-letters/reasons",
        answer={
            "items": [
                {
                    "reason": "no such customer",
                    "count": 3,
                    "first_died_at": AT,
                    "last_died_at": LATER,
                }
            ]
        },
    ),
    "redrive_queue": Example(
        "/v1/queues/orders/redrives", {"reason": "no such customer"}, answer={"redriven": 3}
    ),
    "list_parked_groups": Example(
        "/v1/queues/orders/groups?state=parked",
        answer={"items": [_PARKED], "next_cursor": None},
        before=(("PUT", "/v1/queues/orders/groups/customer-7/pause", {"reason": "disputed"}),),
    ),
    "pause_group": Example(
        "/v1/queues/orders/groups/customer-8/pause", {"reason": "disputed"}, 204
    ),
    "resume_group": Example("/v1/queues/orders/groups/customer-8/pause", answer={"resumed": 0}),
}
