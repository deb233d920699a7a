"""Queues that expire when they are idle: they are deleted, and the deletion is audited."""

import logging

from consumers.maintenance.task import maintenance_task
from storage.audit.snapshots import definition_snapshot
from storage.bootstrap import Storage
from storage.concurrency.tasks import in_batches
from storage.domain import limits
from storage.domain.access.audit import DONE, ApiProtocol, AuditedCall
from storage.domain.access.permissions import Action
from storage.domain.presence import LeaseStore
from storage.domain.queues.queue import Queue

logger = logging.getLogger(__name__)


@maintenance_task("idle_queues", LeaseStore.POSTGRES, period_ms=limits.QUEUE_EXPIRY_PERIOD_MS)
async def delete_idle_queues(storage: Storage) -> int:
    """Delete the queues that nobody has used for their time; return their number."""

    async def visit(queue: Queue) -> bool:
        return await storage.isolation.visit(
            "idle_queues", f"queues/{queue.name}", lambda: _expire(storage, queue), False
        )

    queues = await storage.queue_expiry.idle()
    return sum(await in_batches(queues, visit, limits.MAINTENANCE_CONCURRENCY_MAX))


async def _expire(storage: Storage, queue: Queue) -> bool:
    if not await storage.queue_expiry.is_expired(queue):
        return False
    audit = storage.audit_log
    intent = await audit.begin(_call(queue, audit.now_ms()), definition_snapshot(queue.spec))
    if not await storage.queue_expiry.delete_expired(queue):
        await audit.abort(intent)
        return False
    await audit.commit(intent, DONE, None)
    idle_s = (queue.spec.expires_after_idle_ms or 0) / limits.SECOND_MS
    logger.info("queue_expired", extra={"queue": str(queue.name), "seconds": idle_s})
    return True


def _call(queue: Queue, now_ms: int) -> AuditedCall:
    return AuditedCall.of(
        at_ms=now_ms,
        protocol=ApiProtocol.SYSTEM,
        namespace=queue.name.namespace,
        principal="maintenance",
        credential="",
        authenticated="",
        address="",
        operation="delete_queue",
        action=Action.QUEUE_MANAGE.value,
        resource=f"queues/{queue.name.name}",
        request_id="",
    )
