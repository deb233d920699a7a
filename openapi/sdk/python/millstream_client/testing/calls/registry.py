"""Operations of the in-memory service, by method and path."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from millstream_client.testing.codec import Request, Result
from millstream_client.testing.problems import Problem, unsupported

if TYPE_CHECKING:
    from millstream_client.testing.service import MemoryService

Handler = Callable[..., Result]

_OPERATIONS: dict[tuple[str, tuple[str, ...]], Handler] = {}


def on(method: str, path: str) -> Callable[[Handler], Handler]:
    """Register a handler of a method and a path, with arguments in braces."""

    def register(handler: Handler) -> Handler:
        _OPERATIONS[method, tuple(path.split("/"))] = handler
        return handler

    return register


def dispatch(service: MemoryService, request: Request) -> Result:
    """Return the result of the operation with the fewest arguments. Raises Problem."""
    patterns = [
        pattern
        for method, pattern in _OPERATIONS
        if method == request.method and _fits(pattern, request.words)
    ]
    if not patterns:
        raise unsupported(f"{request.method} /{'/'.join(request.words)}")
    pattern = min(patterns, key=lambda parts: sum(map(_is_argument, parts)))
    parts = zip(request.words, pattern, strict=True)
    arguments = [word for word, part in parts if _is_argument(part)]
    return _OPERATIONS[request.method, pattern](service, request, *arguments)


def _is_argument(part: str) -> bool:
    return part.startswith("{")


def _fits(pattern: tuple[str, ...], words: tuple[str, ...]) -> bool:
    return len(pattern) == len(words) and all(
        part == word or _is_argument(part) for part, word in zip(pattern, words, strict=True)
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


def polled(request: Request, page: dict[str, Any]) -> Result:
    """Return a page; if it is empty, the caller waits for another."""
    is_empty = not page["records"] and not page.get("gaps") and not page.get("gap")
    return Result(page, wait_s=float(request.query.get("wait_seconds", 0)) if is_empty else 0)
