"""Copies of a queue in other deployments: its changes, its contents and its fence."""

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends
from msgspec import Meta

from api.http.request import Call
from api.http.routing import FastRouter
from api.native.audited_route import AuditedRoute
from api.native.dependencies import QueuePath, StorageDep, may, require_json
from api.native.examples import Example
from api.native.fields import to_ms
from api.native.messages import WaitSeconds
from api.rest.schemas.queue_contents import QueueFenceConfig, QueueFenceOut
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.queues.copies import QueueChanges, QueueContentsPage

router = APIRouter(prefix="/v1/queues", tags=["queues"], route_class=AuditedRoute)
fast_routes = FastRouter()

Offset = Annotated[int, Meta(ge=-1, le=limits.OFFSET_MAX)]
Partition = Annotated[int, Meta(ge=0, description="Number of the queue's partition.")]


class ChangesQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Position of a copy: that of its last changes, and the next offset that it knows."""

    position: Annotated[
        str, Meta(max_length=40, description="Position of the last response; empty for none.")
    ] = ""
    next_offset: Annotated[Offset, Meta(description="`next_offset` of the last response.")] = 0
    partition: Partition = 0
    wait_seconds: WaitSeconds = 0


class ContentsQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Start of a page of messages, or of dead letters."""

    after: Annotated[Offset, Meta(description="Offset behind which to begin.")] = -1
    dead_letters: bool = False
    partition: Partition = 0


@fast_routes.get("/v1/queues/{queue}/changes", action=Action.QUEUE_PEEK)
async def read_queue_changes(call: Call[ChangesQuery]) -> QueueChanges:
    """Read the changes of a queue's messages, to keep a copy of it in another deployment.

    Mirrors copy queues with this, partition by partition. Times are milliseconds since 1970. With `wait_seconds`, the call waits for a change, or a message
    from `next_offset` on. Changes are recorded for a day after the last call.
    """
    query = call.query
    return await call.storage.queue_copies.changes(
        call.queue,
        query.position,
        partition=query.partition,
        next_offset=query.next_offset,
        wait_ms=to_ms(query.wait_seconds),
    )


@fast_routes.get("/v1/queues/{queue}/contents", action=Action.QUEUE_PEEK)
async def read_queue_contents(call: Call[ContentsQuery]) -> QueueContentsPage:
    """Read the messages or dead letters of a queue by offset, with all that a copy needs.

    Mirrors copy queues with this, partition by partition. Nothing is received.
    """
    query = call.query
    return await call.storage.queue_copies.contents(
        call.queue, after=query.after, dead=query.dead_letters, partition=query.partition
    )


@router.put(
    "/{queue}/fence",
    dependencies=[Depends(may(Action.QUEUE_MANAGE)), Depends(require_json)],
)
async def put_queue_fence(
    queue: QueuePath, storage: StorageDep, fence: QueueFenceConfig
) -> QueueFenceOut:
    """Fence a queue: it accepts no messages and delivers none.

    Settlements are accepted. A mirror fences its copies of queues, and a promotion the queues of the other deployment, with the token `mirror`. An empty token
    removes the fence. With `expected`, only if that is the current token.
    """
    await storage.queue_copies.set_fence(queue, fence.token, fence.expected)
    return QueueFenceOut(fenced=fence.token != "")


# Examples of the OpenAPI document

_MESSAGE: dict[str, Any] = {
    "offset": 7,
    "data": "eyJvcmRlciI6IDd9",
    "headers": [{"name": ":content_type", "type": "", "value": "YXBwbGljYXRpb24vanNvbg=="}],
    "arrival_ms": 1767225600000,
}
_QUEUE_ID = "1c7e4a905b3df21a"

EXAMPLES = {
    "read_queue_changes": Example(
        "/v1/queues/orders/changes",
        answer={
            "queue_id": _QUEUE_ID,
            "position": "1-18",
            "complete": True,
            "removed": [3, 4],
            "changed": [],
            "purged_before": 0,
            "next_offset": 8,
            "truncated": False,
            "now_ms": 1767225600500,
            "fenced": False,
            "copy_of": None,
            "copied_to": 0,
            "partitions": 1,
        },
    ),
    "read_queue_contents": Example(
        "/v1/queues/orders/contents?after=6",
        answer={"queue_id": _QUEUE_ID, "messages": [_MESSAGE], "after": None},
    ),
    "put_queue_fence": Example("/v1/queues/orders/fence", {"token": ""}, answer={"fenced": False}),
}
