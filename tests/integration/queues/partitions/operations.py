"""Short forms of operations on queues with partitions."""

from msgspec.structs import replace

from storage.domain import limits
from storage.domain.queues.message import (
    SettleAction,
    Settlement,
)
from storage.domain.queues.queue import DedupScope
from tests.queue_operations import WORK, create_queue

BODIES = [b"%d" % number for number in range(60)]


async def create(engines, name=WORK, partitions=4, **spec):
    if name.name.endswith(".fifo"):
        spec.setdefault("dedup_scope", DedupScope.GROUP)
    await create_queue(engines, name, partitions=partitions, **spec)
    return await engines.catalog.queue(name)


async def change_partitions(engines, count, name=WORK):
    queue = await engines.catalog.change_queue(name, lambda spec: replace(spec, partitions=count))
    assert queue.spec.partitions == count
    return queue


async def receive_all(queues, name, messages_max=10):
    """Receive and acknowledge until an answer is empty; return the messages."""
    messages = []
    while received := await queues.receive(name, messages_max=messages_max):
        messages += received
        verdicts = [Settlement(one.receipt_handle, SettleAction.ACK) for one in received]
        assert all(one.error is None for one in await queues.settle(name, verdicts))
    return messages


def partitions_of(messages):
    return [message.offset // limits.PARTITION_OFFSETS for message in messages]
