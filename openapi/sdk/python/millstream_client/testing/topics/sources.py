"""Streams and queues that are the source of routes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from millstream_client.core.defaults import DEFAULTS
from millstream_client.testing.definitions import Clock
from millstream_client.testing.messages import StoredMessage
from millstream_client.testing.queues import MemoryQueue
from millstream_client.testing.streams import MemoryStream
from millstream_client.testing.topics.published import RESERVED
from millstream_client.testing.topics.routed_log import RoutedLog
from millstream_client.testing.topics.targets import OF_STREAM
from millstream_client.testing.topics.topic import TopicLog

if TYPE_CHECKING:
    from millstream_client.testing.service import MemoryService

UNROUTABLE = "unroutable"
"""Reason of a dead letter that no route took."""


class StreamTopic(RoutedLog):
    """A stream under the name of its routes, which take the records that are appended."""

    is_of_stream = True

    def __init__(self, stream: MemoryStream, now: Clock, service: MemoryService) -> None:
        super().__init__(f"{OF_STREAM}{stream.name}", {}, now, stream, service)
        self._positions = stream.ends()

    @property
    def described(self) -> str:
        """The stream as the subject of a sentence."""
        return f"Stream '{self.log.name}'"

    @property
    def meta(self) -> dict[str, str]:
        """Names of its place, for matches: a stream has none."""
        return {}

    def shown(self) -> dict[str, Any]:
        """Return the configuration of the stream, as that of a topic."""
        stream, topic = self.log.shown(), DEFAULTS["TopicConfig"]
        names = (*topic, "open_shards", "version", "created_at", "changed_at")
        return {
            **topic,
            **{name: stream[name] for name in names if name in stream},
            "name": self.name,
            "stream": self.log.name,
            "unmatched": "drop",
            "message_bytes_max": stream["record_bytes_max"],
        }

    def collect(self) -> bool:
        """Let the routes take the records since the last call; return whether there are any."""
        records, _ = self.log.since(self._positions, sys.maxsize)
        for record in records:
            self.add(record, {})
        return bool(records)


class QueueTopic(TopicLog):
    """A topic that takes the ready messages of a queue."""

    def __init__(
        self,
        name: str,
        config: dict[str, Any],
        now: Clock,
        service: MemoryService,
        queue: MemoryQueue,
    ) -> None:
        super().__init__(name, config, now, service)
        self._queue = queue

    def collect(self) -> bool:
        """Take the ready messages, while there is a live route; return whether there were any.

        A message that no route takes becomes a dead letter of the queue, or is dropped.
        """
        if not any(route.is_live for route in self.routes.objects.values()):
            return False
        messages = self._queue.transferable()
        for message in messages:
            self._take(message)
        return bool(messages)

    def _take(self, message: StoredMessage) -> None:
        fields = self._publication(message)
        if self.refuses_unmatched and not self.is_taken(fields):
            self._queue.reject(message, UNROUTABLE)
            return
        self._queue.clear(message)
        self.append(fields)

    def _publication(self, message: StoredMessage) -> dict[str, Any]:
        """Return a message as the routes take it. An empty body becomes a line feed."""
        left = message.expires_at - self.now() if message.expires_at else 0
        headers = message.headers.items()
        return {
            "body": message.body or b"\n",
            "content_type": message.content_type,
            "headers": {name: value for name, value in headers if not name.startswith(RESERVED)},
            "subject": message.subject,
            "key": message.group,
            "dedup_id": message.dedup_id,
            "ttl_seconds": left,
            "priority": message.priority,
            "reply_to": message.reply_to,
            "hops": message.hops,
        }
