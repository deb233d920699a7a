"""Assembly of the queues."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import NamedTuple

from storage.archive.trim import HotTrimmer
from storage.catalog.catalog import Catalog
from storage.concurrency.isolation import Isolation
from storage.concurrency.tasks import in_background
from storage.domain.clock import Clock
from storage.domain.limits import Limits
from storage.domain.names import QueueName
from storage.hot_store.wakeups import Wakeups
from storage.log.provisioner import LogProvisioner
from storage.log.queue_executor import QueueExecutor
from storage.postgres.database import Database
from storage.postgres.repositories.moves import MoveRows
from storage.queues.acknowledge_times import AcknowledgeTimes
from storage.queues.consumers import QueueConsumers
from storage.queues.copies import QueueCopies
from storage.queues.dead_letters import QueueDeadLetters
from storage.queues.engine import Queues
from storage.queues.expiry import QueueExpiry
from storage.queues.inspection import QueueInspector
from storage.queues.moves import Moves
from storage.queues.parked_groups import QueueParkedGroups
from storage.queues.transfer import MessageTransfer, PublishDeadLetters
from storage.quotas.memory_guard import MemoryGuard
from storage.redis.queues.consumers import RedisQueueConsumerStore
from storage.redis.queues.copies import RedisQueueCopyStore
from storage.redis.queues.inspection import RedisQueueContentStore
from storage.redis.queues.messages import RedisQueueStore
from storage.redis.queues.stats import RedisQueueStateStore
from storage.redis.queues.transfer import RedisTransferStore
from storage.redis.streams.idempotence import RedisWatermarkStore
from storage.redis.streams.logs import RedisLogStore
from storage.redis.transport.pipeline import Pipeline


class QueueEngines(NamedTuple):
    """Queues, and the verbs beside them."""

    queues: Queues
    consumers: QueueConsumers
    expiry: QueueExpiry
    inspector: QueueInspector
    dead_letters: QueueDeadLetters
    parked_groups: QueueParkedGroups
    copies: QueueCopies
    moves: Moves


async def open_queues(
    stack: AsyncExitStack,
    *,
    pipeline: Pipeline,
    logs: RedisLogStore,
    watermarks: RedisWatermarkStore,
    transfers: RedisTransferStore,
    database: Database,
    catalog: Catalog,
    provisioner: LogProvisioner,
    executor: QueueExecutor,
    trimmer: HotTrimmer,
    wakeups: Wakeups,
    memory_guard: MemoryGuard,
    publish_dead_letters: PublishDeadLetters,
    complete_routed: Callable[[QueueName], Awaitable[None]],
    isolation: Isolation,
    clock: Clock,
    limits: Limits,
) -> QueueEngines:
    """Open the queues, and run what reports their consumers and times."""
    rows = MoveRows(database)
    transfer = MessageTransfer(
        transfers, executor, provisioner, rows, clock, publish_dead_letters, complete_routed
    )
    states = RedisQueueStateStore(pipeline, limits)
    hot_consumers = RedisQueueConsumerStore(pipeline, limits)
    consumers = QueueConsumers(hot_consumers, executor, clock)
    await stack.enter_async_context(in_background(consumers.report_loop(), "queue-consumers"))
    acknowledge_times = AcknowledgeTimes(hot_consumers, clock)
    await stack.enter_async_context(
        in_background(acknowledge_times.report_loop(), "acknowledge-times")
    )
    queues = Queues(
        hot=RedisQueueStore(pipeline, limits),
        states=states,
        logs=logs,
        watermarks=watermarks,
        executor=executor,
        transfer=transfer,
        trimmer=trimmer,
        catalog=catalog,
        provisioner=provisioner,
        wakeups=wakeups,
        clock=clock,
        limits=limits,
        memory_guard=memory_guard,
        consumers=consumers,
        acknowledge_times=acknowledge_times,
    )
    stack.push_async_callback(queues.close)
    contents = RedisQueueContentStore(pipeline, limits)
    dead_letters = QueueDeadLetters(contents, executor, clock, catalog)
    moves = Moves(
        hot=transfers,
        executor=executor,
        transfer=transfer,
        queues=queues,
        dead_letters=dead_letters,
        catalog=catalog,
        rows=rows,
        database=database,
        clock=clock,
        isolation=isolation,
    )
    stack.push_async_callback(moves.close)
    return QueueEngines(
        queues=queues,
        consumers=consumers,
        expiry=QueueExpiry(states, executor, catalog, clock),
        inspector=QueueInspector(contents, executor, clock, catalog, dead_letters),
        dead_letters=dead_letters,
        parked_groups=QueueParkedGroups(contents, executor, clock),
        copies=QueueCopies(
            hot=RedisQueueCopyStore(pipeline, limits),
            logs=logs,
            executor=executor,
            provisioner=provisioner,
            wakeups=wakeups,
            clock=clock,
            memory_guard=memory_guard,
        ),
        moves=moves,
    )
