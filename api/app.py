"""Composes the front doors over one open storage.

uvicorn --factory api.app:create_app

socket  ─▶ Doors ─▶ push
request ─▶ Doors: request id, gate, count
             ├─ a hot route ─▶ dataplane
             ├─ /, or a queue's address at Amazon's ─▶ aws
             └─ anything else ─▶ FastAPI: configuration, health, metrics, openapi.json
"""

import asyncio
import gc
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import lru_cache, partial
from importlib.metadata import version
from typing import Any, cast

from fastapi import APIRouter, Depends, FastAPI, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api import health
from api.answers import CLIENT_GONE_STATUS, Answer, FindPlace, Place, log_failure, weaker_promise
from api.asyncapi import build_asyncapi
from api.auth.gate import Gate, OpenMode, TrustingMode
from api.aws.kinesis.kept import Kept
from api.aws.kinesis.service import KINESIS
from api.aws.sqs.parity import LikeAmazon
from api.aws.sqs.service import SQS
from api.aws.wire.door import AwsDoor
from api.aws.wire.target import Fork, TargetDoor
from api.dataplane import Dispatcher, HotRequest, Opened, Route, Served, is_open, read_body
from api.logs import configure_logs
from api.metrics import (
    CONTENT_TYPE,
    EVENT_LOOP_LAG_SECONDS,
    Counts,
    DoorMetrics,
    RequestMetrics,
    render_metrics,
    set_build_info,
)
from api.native.errors import PROBLEM_JSON, problem
from api.openapi import build_document
from api.payloads import RequestHeaders
from api.push import door as push_door
from api.push import events
from api.push.door import PushDoor
from api.push.formats import FORMATS
from api.push.publishing import Publisher, PublishMetrics
from api.push.sessions import Sessions
from api.push.subscribing import Sources
from api.push.working import WorkEngine
from api.refusals import ClientGone
from api.request_ids import HEADER as REQUEST_ID
from api.request_ids import request_id_of
from api.rest import (
    archives,
    columns,
    contents,
    group_records,
    groups,
    jobs,
    messages,
    moves,
    queues,
    records,
    replays,
    shards,
    streams,
    tables,
    webhook_deliveries,
    webhooks,
    writes,
)
from api.rest.dependencies import PRINCIPAL_KEY, REQUEST_ID_KEY, may
from api.rest.handlers import install_handlers
from api.settings import Settings, read_settings
from consumers.feeds import Feeds
from consumers.webhooks.requested import Requested
from storage.domain.access import Action
from storage.domain.clock import SystemClock
from storage.domain.limits import Limits
from storage.lifespan import Storage, open_storage
from storage.settings import Durability

GARBAGE_YOUNG_MAX = 20_000  # objects made and not freed before the youngest are looked at
LAG_PROBE_SECONDS = 0.5
_LIMITS = Limits()


def create_app(
    settings: Settings | None = None, storage: Storage | None = None, known: Limits = _LIMITS
) -> "Doors":
    """The service as one ASGI application. `storage`: an open one to use; else the lifespan opens its own."""
    settings = settings or read_settings()
    counts = Counts()
    planes = (
        messages.dataplane,
        records.dataplane,
        columns.dataplane,
        group_records.dataplane,
        events.dataplane,
    )
    routes = [route for plane in planes for route in plane.routes]
    dispatcher = Dispatcher(routes, counts, settings.durability)
    control = _control_plane(settings, storage, dispatcher, counts, known)
    gate = TrustingMode() if settings.insecure else OpenMode()

    def opened() -> Storage:
        return cast(Storage, control.state.storage)

    sqs = AwsDoor(
        SQS,
        gate,
        counts,
        protocol="sqs",
        region=settings.aws_region,
        durability=settings.durability,
        storage=opened,
        kept=LikeAmazon(settings.limits == "aws"),
    )
    kinesis = TargetDoor(
        KINESIS,
        gate,
        counts,
        protocol="kinesis",
        region=settings.aws_region,
        durability=settings.durability,
        storage=opened,
        noun="stream",
        kept=Kept(settings.limits),
    )
    aws = Fork(sqs, kinesis)
    push = PushDoor(gate, lambda: control.state.sessions, lambda: control.state.sources)
    return Doors(control, dispatcher, aws, push, gate, counts, settings.durability)


def _control_plane(
    settings: Settings,
    storage: Storage | None,
    dispatcher: Dispatcher,
    counts: Counts,
    known: Limits,
) -> FastAPI:
    app = FastAPI(
        title="Millstream",
        version=version("millstream"),
        lifespan=_lifespan(settings, storage, counts, known),
        docs_url=None,  # their pages load scripts from elsewhere
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
        separate_input_output_schemas=False,
    )
    app.state.durability = settings.durability
    app.state.hot_methods = dispatcher.methods
    app.state.stream_metrics = dispatcher.metrics_of("streams")
    if storage is not None:
        _serve_from(app, storage, settings)
    operator = _operator_routes(app, dispatcher, counts)
    routers = (
        queues.router,
        contents.router,
        moves.router,
        streams.router,
        writes.router,
        tables.router,
        shards.router,
        groups.router,
        webhooks.router,
        webhook_deliveries.router,
        jobs.router,
        replays.router,
        archives.router,
        health.router,
        operator,
    )
    for router in routers:
        app.include_router(router)
    app.state.cold_routes = [route for router in routers for route in router.routes]
    install_handlers(app)
    return app


def _serve_from(app: FastAPI, storage: Storage, settings: Settings) -> None:
    app.state.storage = storage
    app.state.feeds = Feeds(storage.streams, storage.catalog, FORMATS)
    app.state.opened = Opened(storage, app.state.feeds)
    app.state.requested = Requested(storage, settings.webhook_allow_words())
    app.state.readiness = health.Readiness(storage.health)


def _lifespan(settings: Settings, given: Storage | None, counts: Counts, known: Limits) -> Any:
    metrics = PublishMetrics(
        DoorMetrics(counts, "queue", "ws", settings.durability, "push"),
        DoorMetrics(counts, "stream", "ws", settings.durability, "push"),
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        configure_logs(settings.log_level)
        set_build_info(app.version)
        async with AsyncExitStack() as stack:
            if given is None:
                opened = await stack.enter_async_context(open_storage(settings.storage()))
                _serve_from(app, opened, settings)
            await stack.enter_async_context(_pushing(app, metrics, known))
            await stack.enter_async_context(_watching_the_loop(counts))
            _settle_memory()
            yield

    return lifespan


@asynccontextmanager
async def _pushing(app: FastAPI, metrics: PublishMetrics, known: Limits) -> AsyncGenerator[None]:
    storage: Storage = app.state.storage
    feeds: Feeds = app.state.feeds
    sessions = Sessions(known, asyncio.get_running_loop().time)
    app.state.sessions = sessions
    app.state.sources = Sources(
        storage,
        feeds,
        metrics,
        Publisher(storage.queues, storage.streams, storage.access, metrics),
        WorkEngine(storage.queues, storage.catalog, SystemClock(), metrics.queues),
    )
    try:
        yield
    finally:
        await sessions.close()
        await feeds.close()


def _settle_memory() -> None:
    """What is there now stays, and a request leaves no cycles: look for garbage less often.

    With Python's own thresholds a tenth of a busy process's time goes into looking.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_YOUNG_MAX, 20, 50)


@asynccontextmanager
async def _watching_the_loop(counts: Counts) -> AsyncGenerator[None]:
    task = asyncio.create_task(_measure_lag(counts))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        counts.flush()


async def _measure_lag(counts: Counts) -> None:
    """Sleep again and again, and see how much too late the loop comes back; hand on what was counted."""
    while True:
        due = time.perf_counter() + LAG_PROBE_SECONDS
        await asyncio.sleep(LAG_PROBE_SECONDS)
        EVENT_LOOP_LAG_SECONDS.observe(max(0.0, time.perf_counter() - due))
        counts.flush()


def _operator_routes(app: FastAPI, dispatcher: Dispatcher, counts: Counts) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.get("/metrics", dependencies=[Depends(may(Action.METRICS_READ))])
    async def show_metrics() -> Response:
        """Every counter of this deployment, for Prometheus."""
        counts.flush()
        return Response(render_metrics(), headers={"content-type": CONTENT_TYPE})

    @router.get(push_door.PATH)
    async def open_socket() -> None:
        """For those who ask for the WebSocket endpoint as for a page."""
        raise push_door.upgrade_required()

    @router.get("/openapi.json")
    async def show_openapi() -> dict[str, Any]:
        """The OpenAPI document."""
        return build_document(app, dispatcher.routes)

    @router.get("/asyncapi.json")
    async def show_asyncapi() -> dict[str, Any]:
        """The AsyncAPI document of the WebSocket endpoint."""
        return build_asyncapi()

    return router


class Doors:
    """The application: what is the same for every request, whichever door it takes."""

    def __init__(
        self,
        control: FastAPI,
        dispatcher: Dispatcher,
        aws: Fork,
        push: PushDoor,
        gate: Gate,
        counts: Counts,
        durability: Durability,
    ) -> None:
        self.control = control
        self.dispatcher = dispatcher
        self._aws = aws
        self.socket_app = push
        """What sockets lead to."""
        self._gate = gate
        self._metrics = RequestMetrics(counts, "http")
        self._weaker_promise = weaker_promise(durability)
        self.find_place: FindPlace = lru_cache(maxsize=4096)(self._find_place)
        """The place of a method and a raw path. A path means the same for ever."""

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document of all REST routes."""
        return build_document(self.control, self.dispatcher.routes)

    def drain(self) -> None:
        """The process is to end: answers that go on come to their end."""
        self.control.state.feeds.drain()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self.socket_app(scope, receive, send)
            return
        if scope["type"] != "http":
            await self.control(scope, receive, send)
            return
        method = scope["method"]
        only_head = method == "HEAD"
        if only_head:  # answered as GET; the server leaves the body out
            method = "GET"
            scope = {**scope, "method": method}
        headers = dict(scope["headers"])
        place = self._place_of(method, scope["path"], scope["query_string"])
        if place is None:
            started = time.perf_counter()
            operation, status = await self._serve_control(headers, scope, receive, send)
            self._metrics.observe(operation, status, time.perf_counter() - started)
            return
        query_string = scope["query_string"]
        request = HotRequest(place.words, headers, query_string, partial(is_open, receive))
        answer = await place.answer(request, receive if place.takes_body else None)
        if answer is None:
            return
        if answer.pieces is None:
            await _send(send, answer)
        elif only_head:
            await answer.pieces.aclose()
            await _send_head(send, answer)
        else:
            await _send_pieces(send, receive, answer, answer.pieces)

    def _find_place(self, method: bytes, path: bytes) -> Place | None:
        if b"%" in path or not path.isascii():
            return None
        return self._place_of(method.decode(), path.decode())

    def _place_of(self, method: str, path: str, query_string: bytes = b"") -> Place | None:
        words = path.split("/")
        route = self.dispatcher.find(method, words)
        if route is None:
            return self._aws.find(method, path, query_string)
        return Place(partial(self._answer, route), route.body is not None, words)

    async def _answer(
        self, route: Route, request: HotRequest, receive: Receive | None
    ) -> Answer | None:
        started = time.perf_counter()
        request_id = request.request_id = request_id_of(request.headers)
        more = self._weaker_promise
        try:
            principal = self._gate.admit(request.headers)
            if receive is not None:
                request.body = await read_body(receive, request.headers)
            served = await self.dispatcher.serve(
                route, self.control.state.opened, principal, request
            )
        except ClientGone:
            self._metrics.observe(
                route.operation, CLIENT_GONE_STATUS, time.perf_counter() - started
            )
            return None
        except Exception as error:
            path = "/".join(request.words)
            told = problem(error, instance=path, request_id=request_id.decode())
            served = Served(told.status, PROBLEM_JSON, told.body)
            more = told.headers
            log_failure(error, route.operation, served.status, request_id)
        self._metrics.observe(route.operation, served.status, time.perf_counter() - started)
        more = (*served.headers, *more) if served.headers else more
        return Answer(
            served.status,
            served.kind,
            served.body,
            request_id,
            more,
            served.pieces,
            drains=served.pieces is not None,
        )

    async def _serve_control(
        self, headers: RequestHeaders, scope: Scope, receive: Receive, send: Send
    ) -> tuple[str, int]:
        """Names the operation and its status."""
        request_id = request_id_of(headers)
        answer = _Observed(send, request_id)
        scope = {**scope, REQUEST_ID_KEY: request_id.decode()}
        app: ASGIApp = self.control
        try:
            if scope["path"] not in health.PATHS:
                scope[PRINCIPAL_KEY] = self._gate.admit(headers)
            await app(scope, receive, answer.send)
        except Exception as error:
            if not answer.status:
                told = problem(error, instance=scope["path"], request_id=request_id.decode())
                failed = Answer(told.status, PROBLEM_JSON, told.body, request_id, told.headers)
                await _send(send, failed)
                answer.status = told.status
            log_failure(error, scope["path"], answer.status, request_id)
        route = scope.get("route")
        return getattr(route, "name", "no_route"), answer.status or CLIENT_GONE_STATUS


class _Observed:
    """Sends FastAPI's answer on with the request id, and remembers its status."""

    def __init__(self, send: Send, request_id: bytes) -> None:
        self._send = send
        self._request_id = request_id
        self.status = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), (REQUEST_ID, self._request_id)]
        await self._send(message)


async def _send_pieces(
    send: Send, receive: Receive, answer: Answer, pieces: AsyncGenerator[bytes]
) -> None:
    """Send an answer that goes on, until it ends or the client leaves."""

    async def sending() -> None:
        await _start(send, answer)
        async for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def leaving() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    tasks = [asyncio.create_task(sending()), asyncio.create_task(leaving())]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await pieces.aclose()
    for task in done:
        task.result()


async def _send_head(send: Send, answer: Answer) -> None:
    """What comes before an answer that goes on."""
    await _start(send, answer)
    await send({"type": "http.response.body", "body": b""})


async def _start(send: Send, answer: Answer) -> None:
    headers = [(b"content-type", answer.kind.encode()), (REQUEST_ID, answer.request_id)]
    headers += answer.more
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})


async def _send(send: Send, answer: Answer) -> None:
    headers = [
        (b"content-type", answer.kind.encode()),
        (b"content-length", b"%d" % len(answer.body)),
        (REQUEST_ID, answer.request_id),
        *answer.more,
    ]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
