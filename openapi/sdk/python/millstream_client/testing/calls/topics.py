"""Operations of topics and their routes in the in-memory service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream_client.testing.calls.registry import on, once
from millstream_client.testing.codec import Request, Result
from millstream_client.testing.topics.back_tests import run

if TYPE_CHECKING:
    from millstream_client.testing.service import MemoryService


@on("POST", "topics/{topic}/messages")
def _publish(service: MemoryService, request: Request, name: str) -> Result:
    topic = service.topic(name)

    def answer() -> dict[str, Any]:
        results = topic.publish(request.body["messages"])
        return {"messages": results, "failed": sum("error" in result for result in results)}

    return once(service, request, answer)


@on("GET", "topics/{topic}/stats")
def _stats(service: MemoryService, request: Request, name: str) -> Result:
    return Result(service.topic(name).stats())


@on("GET", "topics/{topic}/messages/{message}")
def _message(service: MemoryService, request: Request, name: str, message: str) -> Result:
    return Result(service.topic(name).message(message).shown())


@on("GET", "topics/{topic}/messages/{message}/routes")
def _message_routes(service: MemoryService, request: Request, name: str, message: str) -> Result:
    return Result(service.topic(name).message_routes(message))


# ── Back-tests ──


@on("POST", "topics/{topic}/backtests")
def _backtest(service: MemoryService, request: Request, name: str) -> Result:
    return Result(run(service.topic(name), request.body))


@on("POST", "topics/{topic}/backtests/jobs")
def _start_backtest(service: MemoryService, request: Request, name: str) -> Result:
    job = service.back_tests.start(service.topic(name), request.body)
    return Result(job.shown(), 202)


@on("GET", "topics/{topic}/backtests/jobs/{job}")
def _get_backtest(service: MemoryService, request: Request, name: str, job: str) -> Result:
    return Result(service.back_tests.of_topic(name, job).shown())


# ── Routes ──


@on("GET", "topics/{topic}/routes")
def _list(service: MemoryService, request: Request, name: str) -> Result:
    return Result(service.topic(name).routes.page(request.query))


@on("PUT", "topics/{topic}/routes/{route}")
def _put(service: MemoryService, request: Request, name: str, route: str) -> Result:
    only_new = request.headers.get("if-none-match") == "*"
    dry_run = request.query.get("dry_run") == "true"
    status, stored = service.topics.put_route(
        name, route, request.body, only_new=only_new, dry_run=dry_run
    )
    return Result(stored, status)


@on("GET", "topics/{topic}/routes/{route}")
def _get(service: MemoryService, request: Request, name: str, route: str) -> Result:
    return Result(service.topic(name).routes.get(route).shown())


@on("PATCH", "topics/{topic}/routes/{route}")
def _patch(service: MemoryService, request: Request, name: str, route: str) -> Result:
    return Result(service.topic(name).routes.patch(route, request.body))


@on("DELETE", "topics/{topic}/routes/{route}")
def _delete(service: MemoryService, request: Request, name: str, route: str) -> Result:
    service.topic(name).routes.delete(route)
    return Result(None, 204)


@on("PUT", "topics/{topic}/routes/{route}/pause")
def _pause(service: MemoryService, request: Request, name: str, route: str) -> Result:
    return Result(service.topic(name).routes.pause(route, paused=True))


@on("DELETE", "topics/{topic}/routes/{route}/pause")
def _resume(service: MemoryService, request: Request, name: str, route: str) -> Result:
    return Result(service.topic(name).routes.pause(route, paused=False))


@on("GET", "topics/{topic}/routes/{route}/stats")
def _route_stats(service: MemoryService, request: Request, name: str, route: str) -> Result:
    return Result(service.topic(name).routes.get(route).stats())
