"""Operations of queues: send, receive and settle messages, and look at them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream_client.testing.calls.registry import on, once
from millstream_client.testing.codec import Request, Result
from millstream_client.testing.problems import unsupported

if TYPE_CHECKING:
    from millstream_client.testing.service import MemoryService


@on("POST", "queues/{queue}/messages")
def _send(service: MemoryService, request: Request, name: str) -> Result:
    queue = service.queue(name)

    def answer() -> dict[str, Any]:
        return {"messages": queue.send(request.body["messages"])}

    return once(service, request, answer, status=201)


@on("POST", "queues/{queue}/receive")
def _receive(service: MemoryService, request: Request, name: str) -> Result:
    queue, body = service.queue(name), request.body
    messages = queue.receive(
        body.get("messages_max", 1),
        body.get("visibility_timeout_seconds"),
        body.get("attempt_id", ""),
    )
    wait = body.get("wait_seconds")
    wait = queue.config["receive_wait_seconds"] if wait is None else wait
    return Result({"messages": messages}, wait_s=0 if messages else wait)


@on("POST", "queues/{queue}/settle")
def _settle(service: MemoryService, request: Request, name: str) -> Result:
    queue, settlements = service.queue(name), request.body["settlements"]
    return Result({"results": [service.requests.settle(queue, one) for one in settlements]})


@on("GET", "queues/{queue}/stats")
def _stats(service: MemoryService, request: Request, name: str) -> Result:
    return Result(service.queue(name).stats())


@on("GET", "queues/{queue}/consumers")
def _consumers(service: MemoryService, request: Request, name: str) -> Result:
    service.queue(name)
    raise unsupported("list of consumers")


def _refuse_filters(request: Request, *known: str) -> None:
    """Refuse a list with conditions: ignoring them would return what was not asked for."""
    if conditions := request.query.keys() - {"limit", "cursor", *known}:
        raise unsupported(f"list of messages by {', '.join(sorted(conditions))}")


@on("GET", "queues/{queue}/messages")
def _browse(service: MemoryService, request: Request, name: str) -> Result:
    _refuse_filters(request, "state")
    state = request.query.get("state")
    messages = [m for m in service.queue(name).messages if state in {None, m.state}]
    return Result({"items": [message.browsed() for message in messages], "next_cursor": None})


@on("GET", "queues/{queue}/messages/{message}")
def _get_message(service: MemoryService, request: Request, name: str, message: str) -> Result:
    stored = service.queue(name).find(message)
    return Result(stored.died() if stored.state == "dead_lettered" else stored.browsed())


@on("DELETE", "queues/{queue}/messages/{message}")
def _delete_message(service: MemoryService, request: Request, name: str, message: str) -> Result:
    service.queue(name).delete_message(message)
    return Result(None, 204)


@on("POST", "queues/{queue}/purges")
def _purge(service: MemoryService, request: Request, name: str) -> Result:
    return Result({"purged": service.queue(name).purge()})


@on("GET", "queues/{queue}/dead-letters")
def _dead_letters(service: MemoryService, request: Request, name: str) -> Result:
    _refuse_filters(request)
    letters = service.queue(name).dead_letters
    return Result({"items": [letter.died() for letter in letters], "next_cursor": None})


@on("GET", "queues/{queue}/dead-letters/reasons")
def _reasons(service: MemoryService, request: Request, name: str) -> Result:
    return Result({"items": service.queue(name).reasons()})


@on("POST", "queues/{queue}/redrives")
def _redrive(service: MemoryService, request: Request, name: str) -> Result:
    return Result({"redriven": service.queue(name).redrive(request.body)})
