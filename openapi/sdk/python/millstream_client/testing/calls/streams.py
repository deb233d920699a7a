"""Operations of streams: append and read records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream_client.testing.calls.registry import on, once, polled
from millstream_client.testing.codec import Request, Result
from millstream_client.testing.problems import unsupported

if TYPE_CHECKING:
    from millstream_client.testing.service import MemoryService


@on("POST", "streams/{stream}/records")
def _append(service: MemoryService, request: Request, name: str) -> Result:
    stream = service.streams.writable(name)

    def answer() -> dict[str, Any]:
        return {"records": stream.append(request.body["records"]), "failed": 0}

    return once(service, request, answer)


@on("GET", "streams/{stream}/records")
def _read(service: MemoryService, request: Request, name: str) -> Result:
    return polled(request, service.stream(name).read(request.query))


@on("GET", "streams/{stream}/shards")
def _shards(service: MemoryService, request: Request, name: str) -> Result:
    return Result(service.stream(name).list_shards())


@on("GET", "streams/{stream}/shards/{shard}/records")
def _read_shard(service: MemoryService, request: Request, name: str, shard: str) -> Result:
    return polled(request, service.stream(name).read_shard(int(shard), request.query))


@on("POST", "streams/{stream}/shards/{shard}/records")
def _append_to_shard(service: MemoryService, request: Request, name: str, shard: str) -> Result:
    if request.body.get("producer") or request.body.get("fence"):
        raise unsupported("producer or fence")
    records = service.streams.writable(name).append_to_shard(int(shard), request.body)
    return Result({"records": records, "failed": 0})
