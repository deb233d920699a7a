"""Operations of definitions: list, create, replace, change, delete and pause."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream_client.testing.calls.registry import on
from millstream_client.testing.codec import Request, Result
from millstream_client.testing.problems import unsupported

if TYPE_CHECKING:
    from millstream_client.testing.definitions import Catalog
    from millstream_client.testing.service import MemoryService


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
    return Result(_catalog(service, nouns).get(name).shown())


@on("PATCH", "{nouns}/{name}")
def _patch(service: MemoryService, request: Request, nouns: str, name: str) -> Result:
    return Result(_catalog(service, nouns).patch(name, request.body))


@on("DELETE", "{nouns}/{name}")
def _delete(service: MemoryService, request: Request, nouns: str, name: str) -> Result:
    _catalog(service, nouns).delete(name)
    service.topics.discard(f"{nouns.removesuffix('s')}:{name}")
    return Result(None, 204)


@on("PUT", "{nouns}/{name}/pause")
def _pause(service: MemoryService, request: Request, nouns: str, name: str) -> Result:
    return Result(_catalog(service, nouns).pause(name, paused=True))


@on("DELETE", "{nouns}/{name}/pause")
def _resume(service: MemoryService, request: Request, nouns: str, name: str) -> Result:
    return Result(_catalog(service, nouns).pause(name, paused=False))
