"""Operations of the in-memory service, by method and path."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from millstream_client.testing.codec import Request, Result
from millstream_client.testing.problems import Problem, unsupported

if TYPE_CHECKING:
    from millstream_client.testing.definitions import Catalog
    from millstream_client.testing.service import MemoryService

Handler = Callable[..., Result]

_ROUTES: list[tuple[str, tuple[str, ...], Handler]] = []


def on(method: str, path: str) -> Callable[[Handler], Handler]:
    """Register a handler for a method and a path, whose parts in braces are its arguments."""

    def register(handler: Handler) -> Handler:
        _ROUTES.append((method, tuple(path.split("/")), handler))
        return handler

    return register


def route(service: MemoryService, request: Request) -> Result:
    """Return the result of a request. Raises Problem."""
    for method, pattern, handler in _ROUTES:
        if method == request.method and _fits(pattern, request.words):
            names = [
                word
                for word, part in zip(request.words, pattern, strict=True)
                if part.startswith("{")
            ]
            return handler(service, request, *names)
    raise unsupported(f"{request.method} /{'/'.join(request.words)}")


def _fits(pattern: tuple[str, ...], words: tuple[str, ...]) -> bool:
    return len(pattern) == len(words) and all(
        part == word or part.startswith("{") for part, word in zip(pattern, words, strict=True)
    )


def once(
    service: MemoryService,
    request: Request,
    answer: Callable[[], dict[str, Any]],
    status: int = 200,
) -> Result:
    """Answer a call with an idempotency key once; a repeat gets the same answer."""
    key = request.headers.get("idempotency-key", "")
    digest = hashlib.sha256(request.content).digest()
    place = ("/".join(request.words), key)
    if key and place in service.answers:
        earlier, result = service.answers[place]
        if earlier != digest:
            detail = "The idempotency key was already used with different content."
            raise Problem("idempotency_key_reused", detail)
        return _repeated(result)
    result = Result(answer(), status)
    if key and not (result.body or {}).get("failed"):
        service.answers[place] = (digest, result)
    return result


def _repeated(result: Result) -> Result:
    """Return the earlier answer, whose items are marked as duplicates."""
    body = {
        name: [_duplicate(item) for item in value] if isinstance(value, list) else value
        for name, value in (result.body or {}).items()
    }
    return Result(body, result.status)


def _duplicate(item: dict[str, Any]) -> dict[str, Any]:
    return {**item, "duplicate": True, **({"routes": None} if "routes" in item else {})}


# ── Definitions ──


def _catalog(service: MemoryService, nouns: str) -> Catalog[Any]:
    catalogs: dict[str, Catalog[Any]] = {
        "queues": service.queues,
        "streams": service.streams,
        "groups": service.groups,
        "topics": service.topics,
    }
    if nouns not in catalogs:
        raise unsupported(nouns)
    return catalogs[nouns]


@on("GET", "readyz")
def _ready(service: MemoryService, request: Request) -> Result:
    return Result({"status": "ok", "checks": {}})


@on("GET", "{nouns}")
def _list(service: MemoryService, request: Request, nouns: str) -> Result:
    return Result(_catalog(service, nouns).page(request.query))


@on("PUT", "{nouns}/{name}")
def _put(service: MemoryService, request: Request, nouns: str, name: str) -> Result:
    only_new = request.headers.get("if-none-match") == "*"
    dry_run = request.query.get("dry_run") == "true"
    if nouns == "groups":
        service.stream(request.body["stream"])
    catalog = _catalog(service, nouns)
    status, stored = catalog.put(name, request.body, only_new=only_new, dry_run=dry_run)
    return Result(stored, status)


@on("GET", "{nouns}/{name}")
def _get(service: MemoryService, request: Request, nouns: str, name: str) -> Result:
    existing = _catalog(service, nouns).get(name)
    return Result(existing.details() if nouns == "groups" else existing.shown())


@on("PATCH", "{nouns}/{name}")
def _patch(service: MemoryService, request: Request, nouns: str, name: str) -> Result:
    return Result(_catalog(service, nouns).patch(name, request.body))


@on("DELETE", "{nouns}/{name}")
def _delete(service: MemoryService, request: Request, nouns: str, name: str) -> Result:
    _catalog(service, nouns).delete(name)
    return Result(None, 204)


@on("PUT", "{nouns}/{name}/pause")
def _pause(service: MemoryService, request: Request, nouns: str, name: str) -> Result:
    return Result(_catalog(service, nouns).pause(name, paused=True))


@on("DELETE", "{nouns}/{name}/pause")
def _resume(service: MemoryService, request: Request, nouns: str, name: str) -> Result:
    return Result(_catalog(service, nouns).pause(name, paused=False))


# ── Queues ──


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


@on("POST", "queues/{queue}/requests")
def _send_request(service: MemoryService, request: Request, name: str) -> Result:
    queue = service.queue(name)
    sent = once(service, request, lambda: {"request": service.requests.send(queue, request.body)})
    assert sent.body is not None
    wait = request.body.get("wait_seconds", 20) if request.headers.get("idempotency-key") else 0
    return replies(service, sent.body["request"], wait)


@on("GET", "requests/{request}/reply")
def _get_reply(service: MemoryService, request: Request, token: str) -> Result:
    return replies(service, token, float(request.query.get("wait_seconds", 0)))


@on("POST", "requests/{request}/replies")
def _send_reply(service: MemoryService, request: Request, token: str) -> Result:
    service.requests.reply(token, request.body, request.headers.get("idempotency-key", ""))
    return Result({"request": token}, 201)


def replies(service: MemoryService, token: str, wait_s: float) -> Result:
    """Return the replies to a request; while they are not complete, the caller waits."""
    answer = service.requests.replies(token)
    return Result(answer) if answer["complete"] else Result(answer, 202, wait_s)


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


# ── Streams ──


@on("POST", "streams/{stream}/records")
def _append(service: MemoryService, request: Request, name: str) -> Result:
    stream = service.streams.writable(name)

    def answer() -> dict[str, Any]:
        return {"records": stream.append(request.body["records"]), "failed": 0}

    return once(service, request, answer)


@on("GET", "streams/{stream}/records")
def _read(service: MemoryService, request: Request, name: str) -> Result:
    return _waiting(request, service.stream(name).read(request.query))


def _waiting(request: Request, page: dict[str, Any]) -> Result:
    """Return a page; if it is empty, the caller waits for another."""
    is_empty = not page["records"] and not page.get("gaps") and not page.get("gap")
    return Result(page, wait_s=float(request.query.get("wait_seconds", 0)) if is_empty else 0)


@on("GET", "streams/{stream}/shards")
def _shards(service: MemoryService, request: Request, name: str) -> Result:
    return Result(service.stream(name).list_shards())


@on("GET", "streams/{stream}/shards/{shard}/records")
def _read_shard(service: MemoryService, request: Request, name: str, shard: str) -> Result:
    return _waiting(request, service.stream(name).read_shard(int(shard), request.query))


@on("POST", "streams/{stream}/shards/{shard}/records")
def _append_to_shard(service: MemoryService, request: Request, name: str, shard: str) -> Result:
    if request.body.get("producer") or request.body.get("fence"):
        raise unsupported("producer or fence")
    records = service.streams.writable(name).append_to_shard(int(shard), request.body)
    return Result({"records": records, "failed": 0})


# ── Groups ──


@on("GET", "groups/{group}/records")
def _fetch(service: MemoryService, request: Request, name: str) -> Result:
    return _waiting(request, service.group(name).fetch(request.query))


@on("POST", "groups/{group}/commit")
def _commit(service: MemoryService, request: Request, name: str) -> Result:
    return Result(service.group(name).commit(request.body))


@on("DELETE", "groups/{group}/members/{member}")
def _leave(service: MemoryService, request: Request, name: str, member: str) -> Result:
    service.group(name).leave(member, request.query.get("generation"))
    return Result(None, 204)


@on("GET", "groups/{group}/lag")
def _lag(service: MemoryService, request: Request, name: str) -> Result:
    return Result(service.group(name).lag())


@on("POST", "groups/{group}/reset")
def _reset(service: MemoryService, request: Request, name: str) -> Result:
    return Result(service.group(name).reset(request.body))


@on("GET", "groups/{group}/bookmarks")
def _bookmarks(service: MemoryService, request: Request, name: str) -> Result:
    return Result({"items": service.group(name).bookmarks()})


@on("PUT", "groups/{group}/bookmarks/{bookmark}")
def _put_bookmark(service: MemoryService, request: Request, name: str, bookmark: str) -> Result:
    return Result(service.group(name).put_bookmark(bookmark, request.body))


@on("DELETE", "groups/{group}/bookmarks/{bookmark}")
def _delete_bookmark(service: MemoryService, request: Request, name: str, bookmark: str) -> Result:
    service.group(name).delete_bookmark(bookmark)
    return Result(None, 204)
