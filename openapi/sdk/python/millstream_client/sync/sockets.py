"""Publishing, requests and replies over one WebSocket, for programs without an event loop."""

from collections.abc import Iterable
from typing import Any

from millstream_client.aio.sockets import AsyncSocket
from millstream_client.aio.transport import AsyncTransport
from millstream_client.publications import Published
from millstream_client.requests import Reply
from millstream_client.sync.connections import Connection
from millstream_client.sync.transport import Transport


class Socket(Connection[AsyncSocket]):
    """WebSocket for publishing to topics, for requests and for replies. Use it `with`, once.

    See AsyncSocket.
    """

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport.options)

    def _make(self, transport: AsyncTransport) -> AsyncSocket:
        return AsyncSocket(transport)

    def publish(
        self, topic: str, message: Any, *, subject: str = "", idempotency_key: str | None = None
    ) -> Published:
        """Publish a body or a NewPublication to a topic. Raises ItemRefused."""
        socket = self._opened
        return self._run(
            socket.publish(topic, message, subject=subject, idempotency_key=idempotency_key)
        )

    def publish_many(
        self, topic: str, items: Iterable[Any], *, subject: str = ""
    ) -> list[Published]:
        """Publish bodies or NewPublications to a topic; return the result of each, in order.

        Raises PartlyRefused.
        """
        return self._run(self._opened.publish_many(topic, items, subject=subject))

    def request(
        self,
        to: str,
        message: Any,
        *,
        replies_max: int = 1,
        timeout_seconds: float = 20.0,
        subject: str = "",
        idempotency_key: str | None = None,
    ) -> list[Reply]:
        """Send a request to "queue:quotes" or "topic:offers"; return its replies."""
        asking = self._opened.request(
            to,
            message,
            replies_max=replies_max,
            timeout_seconds=timeout_seconds,
            subject=subject,
            idempotency_key=idempotency_key,
        )
        return self._run(asking)

    def reply(
        self,
        reply_to: str,
        body: Any,
        *,
        headers: dict[str, str] | None = None,
        content_type: str = "",
        idempotency_key: str | None = None,
    ) -> None:
        """Reply to a request: the `reply_to` of a received message. Raises Conflict."""
        replying = self._opened.reply(
            reply_to,
            body,
            headers=headers,
            content_type=content_type,
            idempotency_key=idempotency_key,
        )
        self._run(replying)
