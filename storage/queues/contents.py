"""Base of what a queue's owner does with its contents."""

import attrs

from storage.domain.clock import Clock
from storage.hot_store.queues.contents import QueueContentStore
from storage.log.queue_executor import QueueExecutor


@attrs.define(eq=False, slots=False)
class QueueContents:
    """Contents of a deployment's queues.

    Every verb raises QueueNotFound for a queue that does not exist.
    """

    _hot: QueueContentStore
    _executor: QueueExecutor
    _clock: Clock
