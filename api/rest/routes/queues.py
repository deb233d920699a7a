"""Queues: configuration, counts and purges."""

from fastapi import Depends, Request

from api.native.dependencies import QueuePath, StorageDep, may
from api.native.examples import AT, CREATED, LATER, Example
from api.rest.definition_router import definition_router
from api.rest.noun import MeasurementOf, Noun, Schemas, catalog_verbs
from api.rest.schemas.queue import (
    ListedQueue,
    Purged,
    QueueConfig,
    QueueMeasurement,
    QueueOut,
    QueuePage,
    QueuePatch,
    QueueStatsOut,
    QueueStored,
)
from api.rest.schemas.queue_contents import QueueConsumerList
from storage.bootstrap import Storage
from storage.domain.access.permissions import Action, Principal
from storage.domain.names import QueueName
from storage.domain.queues.queue import QueueSpec

MANAGE = Depends(may(Action.QUEUE_MANAGE))
SEE = Depends(may(Action.QUEUE_LIST))
PURGE = Depends(may(Action.QUEUE_PURGE))


def _authorise(
    storage: Storage, principal: Principal, before: QueueSpec | None, after: QueueSpec
) -> None:
    """Require permission to write to a new target of dead letters. Raises Forbidden."""
    changes = before is None or before.dead_letters != after.dead_letters
    if changes and after.dead_letters is not None:
        after.check()
        target = after.dead_letters.resolve(principal.namespace)
        action = Action.QUEUE_SEND if isinstance(target, QueueName) else Action.TOPIC_PUBLISH
        storage.authorizer.authorise(principal, action, str(target))


QUEUES = Noun(
    name="queue",
    path=QueuePath,
    schemas=Schemas(QueueOut, QueueConfig, QueueStored, QueuePatch, QueuePage, listed=ListedQueue),
    measurement=MeasurementOf(
        QueueMeasurement, lambda storage, namespace: storage.time_series.latest_queues(namespace)
    ),
    verbs=catalog_verbs("queue"),
    authorise=_authorise,
    is_etag_complete=True,
    descriptions={
        "put": """Create a queue, or replace its configuration.

            A paused queue stays paused. With `If-None-Match: *`, an existing queue is not changed: the response is 412,
            with the queue (`current`) and the requested fields that differ from it (`changes`).
            """,
        "get": "Show a queue's configuration.",
        "change": "Change fields of a queue's configuration.",
        "pause": "Pause delivery: the queue accepts messages and delivers none until it is resumed.",
        "resume": "Resume delivery.",
        "delete": "Delete a queue and its messages.",
        "list": "List queues by name.",
    },
)
router = definition_router(QUEUES)


@router.get("/{queue}/stats", dependencies=[SEE])
async def get_queue_stats(queue: QueuePath, storage: StorageDep, request: Request) -> QueueStatsOut:
    """Return exact message counts of a queue by state."""
    stats = await storage.queues.stats(queue)
    copies = await storage.stores.copies()
    return QueueStatsOut.from_domain(
        stats,
        durability=request.app.state.durability,
        replication_factor=copies.replication_factor,
        min_insync_replicas=copies.min_insync_replicas,
    )


@router.get("/{queue}/consumers", dependencies=[SEE])
async def list_queue_consumers(queue: QueuePath, storage: StorageDep) -> QueueConsumerList:
    """List the consumers of a queue, by any protocol.

    Those that received in the last five minutes, and those with messages in flight; at most some 500. Other processes report
    their consumers every ten seconds.
    """
    return QueueConsumerList.from_domain(await storage.queue_consumers.active(queue))


@router.post("/{queue}/purges", dependencies=[PURGE])
async def purge_queue(queue: QueuePath, storage: StorageDep) -> Purged:
    """Delete all messages of a queue, including those in flight. Dead letters are kept."""
    return Purged(purged=await storage.queues.purge(queue))


# Examples of the OpenAPI document

_QUEUE = {
    "name": "orders",
    "type": "standard",
    "partitions": 1,
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
    "expires_after_idle_seconds": None,
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
    "fenced": False,
    "replication_factor": 1,
    "min_insync_replicas": 1,
}
_MEASUREMENT = {
    "measured_at": LATER,
    "ready": 3,
    "delayed": 0,
    "in_flight": 2,
    "parked": 0,
    "dead_lettered": 0,
    "bytes_held": 312,
    "consumers": 1,
    "oldest_ready_at": AT,
    "sent_per_second": 1.5,
    "received_per_second": 1.2,
    "acknowledged_per_second": 1.2,
    "failed_per_second": 0.3,
    "failure_ratio": 0.2,
    "acknowledge_p50_seconds": 0.4,
    "acknowledge_p95_seconds": 1.8,
    "acknowledge_p99_seconds": 2.6,
}
_CONSUMER = {
    "id": "7f3a90c2e51b",
    "principal": "order-worker",
    "protocol": "rest",
    "address": "192.0.2.7",
    "client": "millstream-client/0.1.0",
    "receives_per_second": 0.4,
    "messages_per_second": 1.2,
    "last_received_at": LATER,
    "waiting": 1,
    "in_flight": 2,
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
    "list_queues": Example(
        "/v1/queues?limit=10&measured=true",
        answer={"items": [{**_QUEUE, "measurement": _MEASUREMENT}], "next_cursor": None},
    ),
    "get_queue_stats": Example("/v1/queues/orders/stats", answer=_STATS),
    "list_queue_consumers": Example(
        "/v1/queues/orders/consumers",
        answer={"items": [_CONSUMER], "in_flight_is_estimate": False},
    ),
    "purge_queue": Example("/v1/queues/orders/purges", answer={"purged": 2}),
    "delete_queue": Example("/v1/queues/orders", status=204),
}
