"""The table of hot routes, dispatched ahead of FastAPI's router.

    path      /v1/queues/{queue}/messages            every other segment is a name, so that
              ─────────── ─────── ────────           `path.split("/")[::2]` finds the route in one
              literal     name    literal            dict lookup; one more segment is a literal too

One declaration gives a route its path, handler, types, authorise step and OpenAPI entry:

    @fast_routes.post("/v1/queues/{queue}/receive", action=Action.QUEUE_RECEIVE)
    async def receive_messages(call: Call[Receive]) -> Received: ...

Each request is one short path: admit → authorise → decode → call → encode. It begins when the request has
arrived completely, whichever way it came: through ASGI, or straight from `api.server.http_protocol`.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol, TypeVar, cast, get_args

import msgspec

from api.http.codecs import (
    Codec,
    Located,
    StructBody,
    answer_type,
    encode_answer,
    items_in,
    refuse_field_headers,
)
from api.http.query import read_query
from api.http.rate_limit_headers import rate_limit_headers
from api.http.request import AppContext, Call, FastRequest, In, Name
from api.observability.metric_buffers import MetricBuffers, ProtocolMetrics
from api.types import RequestHeaders
from storage.domain.access.permissions import Action, Principal
from storage.domain.errors import ValidationFailed
from storage.domain.names import GroupName, QueueName, StreamName, TopicName
from storage.domain.requests.token import RequestId
from storage.settings import Durability

Result = TypeVar("Result")


_NAMES: Mapping[str, Callable[[str, str], Name]] = {
    "queues": QueueName,
    "streams": StreamName,
    "topics": TopicName,
    "groups": GroupName,
    "requests": RequestId,
}


class RawQuery(Protocol):
    """Query of a route with a body: what callers that cannot set headers add to them."""

    def applied_to(self, headers: RequestHeaders) -> RequestHeaders:
        """Return the request's headers with those that the query stands for."""
        ...


class StreamingResponse(msgspec.Struct, frozen=True):
    """A streaming response: `pieces` of a media type, with its own headers.

    Without pieces it has ended.
    """

    kind: str
    headers: tuple[tuple[bytes, bytes], ...] = ()
    pieces: AsyncGenerator[bytes] | None = None
    status: int = 200


class HandlerResult(msgspec.Struct, frozen=True, gc=False):
    """Response to one request: a body, or `pieces` of a streaming response."""

    status: int
    kind: str
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()
    pieces: AsyncGenerator[bytes] | None = None


HandlerOf = Callable[[Call[In]], Awaitable[msgspec.Struct]]
Handler = HandlerOf[Any]
Declared = Callable[[HandlerOf[In]], HandlerOf[In]]
"""Decorator of a declaration, which returns the handler unchanged."""


_ADDED: Mapping[Action, Callable[[Any], int]] = {
    Action.QUEUE_SEND: items_in,
    Action.STREAM_PUT: items_in,
    Action.TOPIC_PUBLISH: items_in,
}
"""Number of messages or records in an input, by the action that adds them."""


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One hot route, with its complete declaration."""

    method: str
    path: str
    handler: Handler
    operation: str
    """The operationId: the handler's name."""
    action: Action | None
    """The action to authorise; None for every caller of the namespace."""
    answers: Mapping[type[msgspec.Struct], int]
    body: Codec[Any] | None = None
    query: type[msgspec.Struct] | None = None
    idempotent: bool = False
    is_on_any_name: bool = False
    """The action is to be allowed on any name, as the path names none that policies apply to."""
    sends: Callable[[Any], int] | None = None
    """Returns the number of messages or records in its input, if it adds some."""
    lasting: Mapping[str, str] = {}
    """For a streaming response: the description of each media type's items."""

    @property
    def noun(self) -> str:
        """Return the resource kind of its path, such as 'queues'."""
        return self.path.split("/")[2]


class FastRouter:
    """A noun's hot routes, collected by decoration as with an APIRouter."""

    def __init__(self) -> None:
        self.routes: list[Route] = []

    def post(
        self,
        path: str,
        *,
        action: Action,
        answer: Mapping[type[msgspec.Struct], int] | None = None,
        body: Codec[In] | None = None,
        idempotent: bool = False,
        sends: Callable[[In], int] | None = None,
        query: type[RawQuery] | None = None,
        is_on_any_name: bool = False,
    ) -> Declared[In]:
        """Declare a route that takes a body, by default the struct that the handler's call has.

        `answer`: the status of each of its structs; by default 200 and the struct that the handler returns. `sends`: the number
        of messages or records that it adds; by default that of the items of a send or an append. `query`: parameters for callers that cannot set headers.
        """

        return lambda handler: self._add(
            method="POST",
            path=path,
            handler=handler,
            action=action,
            body=body or StructBody(_input_of(handler)),
            query=cast("type[msgspec.Struct] | None", query),
            answers=answer or {_answer_of(handler): 200},
            idempotent=idempotent,
            is_on_any_name=is_on_any_name,
            sends=sends or _ADDED.get(action),
        )

    def get(
        self,
        path: str,
        *,
        action: Action | None,
        answer: type[msgspec.Struct] | Mapping[type[msgspec.Struct], int] | None = None,
        lasting: Mapping[str, str] | None = None,
    ) -> Declared[Any]:
        """Declare a route whose input is its query, read into the struct that its call has.

        `answer`: its struct, or the status of each. `lasting`: its answer is a `StreamingResponse`, of `answer` after `answer`; what it is in each media type.
        """

        return lambda handler: self._add(
            method="GET",
            path=path,
            action=action,
            handler=handler,
            query=_input_of(handler),
            answers=answer if isinstance(answer, Mapping) else {answer or _answer_of(handler): 200},
            lasting=lasting or {},
        )

    def _add(self, *, handler: HandlerOf[Any], **declaration: Any) -> HandlerOf[Any]:
        self.routes.append(Route(handler=handler, operation=handler.__name__, **declaration))
        return handler


def _input_of(handler: Handler) -> type[msgspec.Struct]:
    """Return the struct of a handler's call, from its annotation `Call[...]`."""
    [kind] = get_args(handler.__annotations__["call"])
    return cast("type[msgspec.Struct]", kind)


def _answer_of(handler: Handler) -> type[msgspec.Struct]:
    return cast("type[msgspec.Struct]", handler.__annotations__["return"])


class Dispatcher:
    """Dispatcher of requests to hot routes."""

    def __init__(
        self, routes: Sequence[Route], counts: MetricBuffers, durability: Durability
    ) -> None:
        self.routes = tuple(routes)
        self._metrics = {
            "queues": ProtocolMetrics(counts, "queue", "http", durability),
            "streams": ProtocolMetrics(counts, "stream", "http", durability),
            "topics": ProtocolMetrics(counts, "topic", "http", durability),
            "groups": ProtocolMetrics(
                counts, "stream", "http", durability
            ),  # groups read records of streams
            "requests": ProtocolMetrics(counts, "queue", "http", durability),
        }
        self._table = {
            f"{route.method} {_literals(route.path.split('/'))}": route for route in routes
        }
        assert len(self._table) == len(self.routes), "two hot routes share a path"

    def metrics_of(self, noun: str) -> ProtocolMetrics:
        """Return the metrics of a kind such as 'queues', for its other routes as well."""
        return self._metrics[noun]

    def find(self, method: str, segments: Sequence[str]) -> Route | None:
        """Return the route of a path split at '/', or None when it is not a hot route."""
        if len(segments) < 5 or segments[1] != "v1":
            return None
        return self._table.get(f"{method} {_literals(segments)}")

    def methods(self, path: str) -> list[str]:
        """Return the methods that hot routes accept at this path."""
        segments = path.split("/")
        return [method for method in ("GET", "POST") if self.find(method, segments)]

    async def serve(
        self, route: Route, context: AppContext, principal: Principal, request: FastRequest
    ) -> HandlerResult:
        """Serve a request. Raises whatever the handler raises, ClientDisconnected."""
        storage, (_, _, noun, word, *_) = context.storage, request.segments
        quotas, resource = storage.quotas, resource_of(noun, word)
        name, qualified_name = _name(noun, word, principal.namespace)
        if route.action is not None and not route.is_on_any_name:
            storage.authorizer.authorise(principal, route.action, qualified_name)
        elif route.action is not None:
            storage.authorizer.authorise_list(principal, route.action)
        messages = size_bytes = 0
        try:
            value = _read_input(route, request)
            if route.sends is not None:
                messages, size_bytes = route.sends(value), len(request.body)
        finally:  # a call with an invalid input counts, too
            waiting = quotas.acquire(principal, resource, messages=messages, size_bytes=size_bytes)
            if waiting is not None:
                await waiting
        call: Call[Any] = Call(
            storage,
            context.feeds,
            principal,
            name,
            value,
            request.segments,
            request.headers,
            request.client,
            request.is_connected,
            request.request_id,
            request.trace,
            self._metrics[noun],
        )
        answer = await route.handler(call)
        if isinstance(answer, StreamingResponse):
            return HandlerResult(answer.status, answer.kind, b"", answer.headers, answer.pieces)
        media_type, encoded = encode_answer(answer, answer_type(request.headers))
        low = quotas.near_limit(principal, resource)
        headers = rate_limit_headers(low) if low else ()
        if isinstance(answer, Located):
            headers = (*headers, (b"location", answer.location.encode()))
        return HandlerResult(route.answers[type(answer)], media_type, encoded, headers)


def _read_input(route: Route, request: FastRequest) -> Any:
    """Decode the input of a call. Raises ValidationFailed, HttpError."""
    if route.body is None:
        refuse_field_headers(request.headers)
        if request.body.strip():
            raise ValidationFailed("The operation takes no request body.")
        return read_query(request.query_string, route.query)
    headers = request.headers
    if request.query_string:
        query = read_query(request.query_string, route.query)
        headers = query.applied_to(headers)
    return route.body.decode(request.body, headers)


@lru_cache(maxsize=4096)
def resource_of(noun: str, word: str) -> str:
    """Return the quota resource of an object in a path: `queue/orders`."""
    return f"{noun.removesuffix('s')}/{word}"


@lru_cache(maxsize=4096)
def _name(noun: str, word: str, namespace: str) -> tuple[Name, str]:
    """Return a checked name, also as text; it stays valid. Raises ValidationFailed."""
    name = _NAMES[noun](word, namespace)
    return name, str(name)


def _literals(segments: Sequence[str]) -> str:
    literals = "/".join(segments[::2])
    return literals if len(segments) % 2 else f"{literals}/{segments[-1]}"
