"""Operations of consumer groups: fetch, commit, bookmarks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream_client.testing.calls.registry import on, polled
from millstream_client.testing.codec import Request, Result

if TYPE_CHECKING:
    from millstream_client.testing.service import MemoryService


@on("GET", "groups/{group}")
def _get(service: MemoryService, request: Request, name: str) -> Result:
    return Result(service.group(name).details())


@on("GET", "groups/{group}/records")
def _fetch(service: MemoryService, request: Request, name: str) -> Result:
    return polled(request, service.group(name).fetch(request.query))


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
