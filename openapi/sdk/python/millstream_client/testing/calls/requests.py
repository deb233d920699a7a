"""Operations of requests to queues and topics, and of their replies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream_client.testing.calls.registry import on, once
from millstream_client.testing.codec import Request, Result

if TYPE_CHECKING:
    from millstream_client.testing.service import MemoryService


@on("POST", "queues/{queue}/requests")
def _send_request(service: MemoryService, request: Request, name: str) -> Result:
    queue = service.queue(name)
    sent = once(service, request, lambda: {"request": service.requests.send(queue, request.body)})
    assert sent.body is not None
    wait = request.body.get("wait_seconds", 20) if request.headers.get("idempotency-key") else 0
    return _replies(service, sent.body["request"], wait)


@on("POST", "topics/{topic}/requests")
def _publish_request(service: MemoryService, request: Request, name: str) -> Result:
    topic = service.topic(name)
    published = once(
        service, request, lambda: {"request": service.requests.publish(topic, request.body)}
    )
    assert published.body is not None
    wait = request.body.get("wait_seconds", 20) if request.headers.get("idempotency-key") else 0
    return _replies(service, published.body["request"], wait)


@on("GET", "requests/{request}/reply")
def _get_reply(service: MemoryService, request: Request, token: str) -> Result:
    return _replies(service, token, float(request.query.get("wait_seconds", 0)))


@on("POST", "requests/{request}/replies")
def _send_reply(service: MemoryService, request: Request, token: str) -> Result:
    service.requests.reply(token, request.body, request.headers.get("idempotency-key", ""))
    return Result({"request": token}, 201)


def _replies(service: MemoryService, token: str, wait_s: float) -> Result:
    """Return the replies to a request; while they are not complete, the caller waits."""
    answer = service.requests.replies(token)
    return Result(answer) if answer["complete"] else Result(answer, 202, wait_s)
