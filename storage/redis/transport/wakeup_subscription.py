"""Subscription to the wake-ups that scripts publish."""

from collections.abc import AsyncIterator

from redis.exceptions import RedisError

from storage.domain.names import LogId
from storage.redis.keys import WAKE_CHANNEL
from storage.redis.transport.client import unreachable
from storage.redis.transport.topology import Nodes


class WakeupSubscription:
    """Subscriptions to wake-ups, each to another server where there are several."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes

    async def __call__(self) -> AsyncIterator[LogId | None]:
        """Yield None once subscribed, then ids of logs.

        Raises StorageUnavailable when the subscription ends.
        """
        client = self._nodes.next_listener()
        try:
            async with client.pubsub(ignore_subscribe_messages=False) as subscription:
                await subscription.subscribe(WAKE_CHANNEL)
                while True:
                    message = await subscription.get_message(timeout=None)
                    if message is None:
                        continue
                    if message["type"] == "subscribe":
                        yield None
                    elif message["type"] == "message":
                        yield LogId(message["data"])
        except (RedisError, OSError) as error:
            raise unreachable(error) from None
