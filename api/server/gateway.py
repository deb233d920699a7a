"""Request gateway of every protocol: request ids, authentication, counting, dispatch.

socket  ─▶ push
request ─▶ request id, authentication, count
             ├─ a hot route ─▶ dataplane
             ├─ /, or a queue's address at Amazon's ─▶ aws
             └─ anything else ─▶ FastAPI: configuration, dashboard, health, metrics, openapi.json
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Coroutine, Sequence
from functools import lru_cache, partial
from typing import Any

import msgspec
from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from api.admin import access as dashboard
from api.auth.endpoint_services import EndpointServices
from api.aws.protocol.target_protocol import ServiceRouter
from api.errors import ClientDisconnected, interrupted
from api.http.body import is_open, read_body
from api.http.codecs import ACKNOWLEDGE
from api.http.content_codings import ACCEPT_ENCODING, CONTENT_ENCODING, decoded
from api.http.rate_limit_headers import rate_limit_headers
from api.http.request import FastRequest
from api.http.request_id import HEADER as REQUEST_ID
from api.http.request_id import request_id_of
from api.http.request_spans import name_by_route, start_fast_span
from api.http.responses import (
    CLIENT_CLOSED_REQUEST_STATUS,
    ExtraHeaders,
    FindRoute,
    RequestContext,
    RequestRecorder,
    Response,
    RouteMatch,
    durability_header,
    log_failure,
)
from api.http.routing import Dispatcher, HandlerResult, Route, resource_of
from api.native.dependencies import PRINCIPAL_KEY, REQUEST_ID_KEY
from api.native.problems import PROBLEM_JSON, problem
from api.observability.metric_buffers import RequestMetrics
from api.observability.tracing import failure_of
from api.rest.route_modules import ROUTE_MODULES
from api.rest.routes import health
from api.server.asgi_messages import NO_STORE, ResponseObserver, bounded, coded_answer
from api.server.cors import with_cors
from api.server.head_cache import HeadCache
from api.server.slow_requests import SlowRequestMonitor
from api.spec.openapi import build_document
from api.types import RequestHeaders
from api.websocket.endpoint import WebSocketEndpoint
from storage.domain import limits
from storage.domain.access.audit import ApiProtocol
from storage.domain.access.permissions import Principal
from storage.domain.errors import Unauthenticated, ValidationFailed
from storage.domain.replication.acknowledgement import acknowledged_by_primary

_PUBLIC = [module.is_public for module in ROUTE_MODULES if hasattr(module, "is_public")]


_ACKNOWLEDGE_BY_PRIMARY = b"primary"
_BY_PRIMARY: ExtraHeaders = ((ACKNOWLEDGE, _ACKNOWLEDGE_BY_PRIMARY),)


def _is_public(method: str, path: str) -> bool:
    """Return whether the request needs no credentials of ours, or brings others."""
    return (
        path == "/"
        or dashboard.is_public(path)
        or any(is_public(method, path) for is_public in _PUBLIC)
    )


def _body_bytes_max(headers: RequestHeaders, *, is_public: bool) -> int:
    """Return the limit of a body, which holds before it is buffered.

    JSON has a smaller one: its decoded values are larger than the bytes.
    """
    if is_public:
        return limits.PUBLIC_BODY_BYTES_MAX
    is_json = b"json" in headers.get(b"content-type", b"json")
    return limits.CONTROL_BYTES_MAX if is_json else limits.REQUEST_BYTES_MAX


class Gateway:
    """ASGI application with the processing common to requests of every protocol."""

    def __init__(
        self,
        services: EndpointServices,
        control: FastAPI,
        dispatcher: Dispatcher,
        *,
        aws: ServiceRouter,
        push: WebSocketEndpoint,
        cors_origins: Sequence[str] = (),
    ) -> None:
        self._tracing = services.tracing
        self.control = control
        self.dispatcher = dispatcher
        self._counted = {route.noun for route in dispatcher.routes}
        """Nouns that can have quotas: those with hot routes."""
        self._aws = aws
        self.socket_app = push
        """Application that serves sockets."""
        self._authenticator = services.authenticator
        self._revalidator = services.revalidator
        self._auditing = services.auditing
        metrics = RequestMetrics(services.counts, "http")
        self._recorder = RequestRecorder(metrics, services.access)
        self.cors = with_cors(self._serve, cors_origins) if cors_origins else None
        """Application with CORS for other sites' pages; None without CORS origins."""
        self.unfinished = SlowRequestMonitor()
        """Connections of this process with an incomplete request."""
        self._durability_header = durability_header(services.durability)
        self._is_replicated = services.durability == "replicated"
        self.match_route: FindRoute = lru_cache(maxsize=4096)(self._match_route)
        """Cached resolver of a method and a raw path, whose route never changes."""
        self.heads = HeadCache()
        """Parsed heads of hot requests."""

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document of all REST routes."""
        return build_document(self.control, self.dispatcher.routes)

    def drain(self) -> None:
        """Drain streaming responses because the process is to end."""
        self.control.state.feeds.drain()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self.socket_app(scope, receive, send)
            return
        if scope["type"] != "http":
            await self.control(scope, receive, send)
            return
        await (self.cors or self._serve)(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve an HTTP request."""
        method = scope["method"]
        only_head = method == "HEAD"
        if only_head:  # answered as GET; the server omits the body
            method = "GET"
            scope = {**scope, "method": method}
        headers = dict(scope["headers"])
        match = self._find_route(method, scope["path"], scope["query_string"])
        if match is None:
            await self._serve_control(headers, scope, receive, send)
            return
        query_string = scope["query_string"]
        is_connected = partial(is_open, receive, scope)
        request = FastRequest(
            match.segments, headers, query_string, is_connected, client=scope.get("client")
        )
        answer = await match.answer(request, receive if match.takes_body else None)
        if answer is None:
            return
        if answer.pieces is None:
            await _send(send, answer)
        elif only_head:
            await answer.pieces.aclose()
            await _send_head(send, answer)
        else:
            await _send_pieces(send, receive, answer, answer.pieces)

    def _match_route(self, method: bytes, path: bytes) -> RouteMatch | None:
        if b"%" in path or not path.isascii():
            return None
        return self._find_route(method.decode(), path.decode())

    def _find_route(self, method: str, path: str, query_string: bytes = b"") -> RouteMatch | None:
        segments = path.split("/")
        route = self.dispatcher.find(method, segments)
        if route is None:
            return self._aws.find(method, path, query_string)
        return RouteMatch(partial(self._answer, route), route.body is not None, segments)

    async def _answer(
        self, route: Route, request: FastRequest, receive: Receive | None
    ) -> Response | None:
        started = time.perf_counter()
        request_id = request.request_id = request_id_of(request.headers)
        extra_headers = self._durability_header
        trace = None if self._tracing is None else start_fast_span(self._tracing, route, request)
        failure = ""
        principal: Principal | None = None
        try:
            principal = await self._authenticator.authenticate(request.headers)
            if trace is not None:
                trace.set_attributes({"millstream.namespace": principal.namespace})
            if receive is not None:
                request.body = await read_body(receive, request.headers)
            if CONTENT_ENCODING in request.headers:
                request.body = await decoded(
                    request.body, request.headers, limits.REQUEST_BYTES_MAX
                )
            serving = self.dispatcher.serve(
                route, self.control.state["context"], principal, request
            )
            if self._is_replicated and route.idempotent and ACKNOWLEDGE in request.headers:
                served, extra_headers = await _served_by_primary(request, serving), _BY_PRIMARY
            else:
                served = await serving
            if served.pieces is not None:
                watched = self._revalidator.guarded(principal, served.pieces)
                served = msgspec.structs.replace(served, pieces=watched)
        except ClientDisconnected:
            context = RequestContext(principal, trace, started)
            self._recorder.note(route.operation, CLIENT_CLOSED_REQUEST_STATUS, request_id, context)
            return None
        except Exception as error:
            if isinstance(error, Unauthenticated):
                self._auditing.record_anonymous_failure(
                    error,
                    protocol=ApiProtocol.REST,
                    client=request.client,
                    headers=request.headers,
                    request_id=request_id,
                )
            path = "/".join(request.segments)
            details = problem(error, instance=path, request_id=request_id.decode())
            served = HandlerResult(details.status, PROBLEM_JSON, details.body)
            extra_headers = details.headers
            failure = failure_of(error)
            context = RequestContext(principal, trace, started)
            log_failure(error, route.operation, served.status, request_id, context)
        context = RequestContext(principal, trace, started)
        self._recorder.note(route.operation, served.status, request_id, context, failure)
        extra_headers = (*served.headers, *extra_headers) if served.headers else extra_headers
        body = served.body
        if ACCEPT_ENCODING in request.headers and route.method == "GET" and served.pieces is None:
            body, coding = await coded_answer(body, request.headers[ACCEPT_ENCODING])
            extra_headers = (*extra_headers, *coding)
        return Response(
            served.status,
            served.kind,
            body,
            request_id,
            extra_headers,
            served.pieces,
            drains=served.pieces is not None,
        )

    async def _serve_control(
        self, headers: RequestHeaders, scope: Scope, receive: Receive, send: Send
    ) -> None:
        request_id, started = request_id_of(headers), time.perf_counter()
        accepted = headers.get(ACCEPT_ENCODING, b"") if scope["method"] == "GET" else b""
        answer = ResponseObserver(send, request_id, accepted)
        principal: Principal | None = None
        trace = None
        if self._tracing is not None and scope["path"] not in health.PATHS:
            trace = self._tracing.start_request_span(scope["method"], headers)
        failure = ""
        scope = {**scope, REQUEST_ID_KEY: request_id.decode()}
        app: ASGIApp = self.control
        path: str = scope["path"]
        try:
            is_public = _is_public(scope["method"], path)
            if not is_public:
                if dashboard.is_page(path):
                    headers = dashboard.in_namespace(headers, scope["query_string"])
                principal = scope[PRINCIPAL_KEY] = await self._authenticator.authenticate(headers)
                answer.extra_headers = await self._charge_quota(principal, path)
            bytes_max = _body_bytes_max(headers, is_public=is_public)
            await app(scope, bounded(receive, headers, bytes_max), answer.send)
        except (Exception, asyncio.CancelledError) as raised:
            if isinstance(raised, Exception) or is_open(receive, scope):
                error = raised if isinstance(raised, Exception) else interrupted(scope["method"])
                await self._send_failure(error, scope, receive, answer, headers)
                failure = failure_of(error)
                context = RequestContext(principal, trace, started)
                log_failure(error, path, answer.status, request_id, context)
        route = scope.get("route")
        if trace is not None:
            name_by_route(trace, scope["method"], getattr(route, "path", ""))
        operation, status = (
            getattr(route, "name", "no_route"),
            answer.status or CLIENT_CLOSED_REQUEST_STATUS,
        )
        context = RequestContext(principal, trace, started)
        self._recorder.note(operation, status, request_id, context, failure)

    async def _send_failure(
        self,
        error: Exception,
        scope: Scope,
        receive: Receive,
        answer: ResponseObserver,
        headers: RequestHeaders,
    ) -> None:
        """Send an error: to a browser as a page, to others as a problem document.

        After the beginning of a response nothing is sent.
        """
        page = None if answer.status else dashboard.page_instead(self.control, scope, error)
        if isinstance(error, Unauthenticated) and not (
            page and self._authenticator.is_anonymous(headers)  # a browser is asked to log in
        ):
            self._auditing.record_anonymous_failure(
                error,
                protocol=ApiProtocol.REST,
                client=scope.get("client"),
                headers=headers,
                request_id=answer.request_id,
            )
        if page is not None:
            await page(scope, receive, answer.send)
        elif not answer.status:
            details = problem(error, instance=scope["path"], request_id=answer.request_id.decode())
            failed = Response(
                details.status, PROBLEM_JSON, details.body, answer.request_id, details.headers
            )
            await _send(answer.wrapped, failed)
            answer.status = details.status

    async def _charge_quota(self, principal: Principal, path: str) -> ExtraHeaders:
        """Spend one call, and return rate limit headers if the caller is to receive them."""
        quotas = self.control.state.storage.quotas
        _, _, noun, word, *_ = (*path.split("/"), "", "", "")
        resource = resource_of(noun, word) if noun in self._counted else ""
        if not principal.policy.allows_something(resource.partition("/")[0], word):
            resource = ""  # callers without permissions must not use up the resource's quota
        waiting = quotas.acquire(principal, resource)
        if waiting is not None:
            await waiting
        return rate_limit_headers(quotas.near_limit(principal, resource))


async def _send_pieces(
    send: Send, receive: Receive, answer: Response, pieces: AsyncGenerator[bytes]
) -> None:
    """Send a streaming response until it ends or the client disconnects."""

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


async def _send_head(send: Send, answer: Response) -> None:
    """Send the head of a streaming response, and no body."""
    await _start(send, answer)
    await send({"type": "http.response.body", "body": b""})


async def _start(send: Send, answer: Response) -> None:
    headers = [
        NO_STORE,
        (b"content-type", answer.kind.encode()),
        (REQUEST_ID, answer.request_id),
        *answer.extra_headers,
    ]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})


async def _served_by_primary(
    request: FastRequest, serving: Coroutine[Any, Any, HandlerResult]
) -> HandlerResult:
    """Serve a call whose writes the primary alone acknowledges. Raises ValidationFailed."""
    if request.headers[ACKNOWLEDGE] != _ACKNOWLEDGE_BY_PRIMARY:
        serving.close()
        raise ValidationFailed.at("/Millstream-Acknowledge", "The only value is 'primary'.")
    with acknowledged_by_primary():
        return await serving


async def _send(send: Send, answer: Response) -> None:
    headers = [
        NO_STORE,
        (b"content-type", answer.kind.encode()),
        (b"content-length", b"%d" % len(answer.body)),
        (REQUEST_ID, answer.request_id),
        *answer.extra_headers,
    ]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
