"""The table of hot routes, dispatched ahead of FastAPI's router.

    path      /v1/queues/{queue}/messages            every other segment is a name, so that
              ─────────── ─────── ────────           `path.split("/")[::2]` finds the route in one
              literal     name    literal            dict lookup

One declaration gives a route its path, handler, types, authorise step and OpenAPI entry:

    @dataplane.post("/v1/queues/{queue}/receive", body=StructBody(Receive), answer=Received,
                    action=Action.QUEUE_RECEIVE)
    async def receive_messages(call: Call[Receive]) -> Received: ...

Each request is one short path: admit → authorise → decode → call → encode. It begins when the request has
arrived completely, whichever way it came: through ASGI, or straight from `api.server.http_protocol`.
"""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar, cast
from urllib.parse import parse_qsl

import msgspec
from msgspec import inspect
from starlette.types import Message, Receive

from api.errors import ClientDisconnected
from api.http.codecs import Codec, answer_type, check_request_bytes, encode_answer
from api.http.rate_limit_headers import rate_limit_headers
from api.http.validation_errors import from_msgspec
from api.observability.metric_definitions import MetricBuffers, ProtocolMetrics
from api.observability.tracing import TraceSpan
from api.types import RequestHeaders
from consumers.feeds.feed import Feeds
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.access.permissions import Action, Principal
from storage.domain.errors import ShardNotFound, ValidationFailed
from storage.domain.names import GroupName, QueueName, StreamName, check_name
from storage.quotas.enforcer import QuotaEnforcer
from storage.settings import Durability

In = TypeVar("In")
Result = TypeVar("Result")

_SHARD_INDEX = re.compile(r"[0-9]{1,9}")
Name = QueueName | StreamName | GroupName
"""Name of the resource in a hot path."""

_NAMES: dict[str, type[QueueName] | type[StreamName] | type[GroupName]] = {
    "queues": QueueName,
    "streams": StreamName,
    "groups": GroupName,
}


class FastRequest:
    """A complete request for a hot route. `segments`: its path split at '/'.

    `is_connected` returns whether the connection is open as far as is known, without waiting. `client`: the client's address.
    `request_id` is assigned later, and a `trace` if spans are collected.
    """

    __slots__ = (
        "body",
        "client",
        "headers",
        "is_connected",
        "query_string",
        "request_id",
        "segments",
        "trace",
    )

    def __init__(
        self,
        segments: Sequence[str],
        headers: RequestHeaders,
        query_string: bytes,
        is_connected: Callable[[], bool],
        body: bytes = b"",
        client: tuple[str, int] | None = None,
    ) -> None:
        self.segments = segments
        self.headers = headers
        self.query_string = query_string
        self.is_connected = is_connected
        self.body = body
        self.client = client
        self.request_id = b""
        self.trace: TraceSpan | None = None


class AppContext(NamedTuple):
    """Open resources of a process. `feeds`: limit the number of concurrent streaming reads."""

    storage: Storage
    feeds: Feeds


class Call(Generic[In]):
    """One request, as a handler receives it. `body` is its input; for a GET, its query.

    No task watches an idle long poll; it calls `is_client_connected` when it wakes, before it takes anything.
    """

    __slots__ = (
        "body",
        "feeds",
        "headers",
        "is_client_connected",
        "metrics",
        "name",
        "principal",
        "request_id",
        "segments",
        "storage",
        "trace",
    )

    def __init__(
        self,
        context: "AppContext",
        principal: Principal,
        name: Name,
        body: In,
        request: FastRequest,
        metrics: ProtocolMetrics,
    ) -> None:
        self.storage = context.storage
        self.feeds = context.feeds
        self.principal = principal
        self.name = name
        self.body = body
        self.segments = request.segments
        self.headers = request.headers
        self.is_client_connected = request.is_connected
        self.request_id = request.request_id
        self.trace = request.trace
        self.metrics = metrics

    @property
    def query(self) -> In:
        """The parameters of the query."""
        return self.body

    @property
    def queue(self) -> QueueName:
        """Return the queue that the path names."""
        return cast(QueueName, self.name)

    @property
    def stream(self) -> StreamName:
        """Return the stream that the path names."""
        return cast(StreamName, self.name)

    @property
    def group(self) -> GroupName:
        """Return the consumer group that the path names."""
        return cast(GroupName, self.name)

    @property
    def member(self) -> str:
        """Return the member that the path names. Raises ValidationFailed for an invalid name."""
        check_name(self.segments[5])
        return self.segments[5]

    @property
    def shard(self) -> int:
        """Return the shard that the path names. Raises ShardNotFound when it is not a number."""
        word = self.segments[5]
        if not _SHARD_INDEX.fullmatch(word):
            raise ShardNotFound(f"'{word[:80]}' is not a shard number.")
        return int(word)


class StreamingResponse(msgspec.Struct, frozen=True):
    """A streaming response: `pieces` of a media type, with its own headers.

    Without pieces it has ended.
    """

    kind: str
    headers: tuple[tuple[bytes, bytes], ...] = ()
    pieces: AsyncGenerator[bytes] | None = None
    status: int = 200


class HandlerResult(NamedTuple):
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


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One hot route, with its complete declaration."""

    method: str
    path: str
    handler: Handler
    action: Action
    body: Codec[Any] | None
    query: type[msgspec.Struct] | None
    answers: Mapping[type[msgspec.Struct], int]
    idempotent: bool
    sends: Callable[[Any], int] | None = None
    """Returns the number of messages or records in its input, if it adds some."""
    lasting: Mapping[str, str] = {}
    """For a streaming response: the description of each media type's items."""

    @property
    def operation(self) -> str:
        """The operationId: the handler's name."""
        return self.handler.__name__

    @property
    def noun(self) -> str:
        """Return the resource kind of its path: 'queues', 'streams' or 'groups'."""
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
        answer: type[msgspec.Struct] | Mapping[type[msgspec.Struct], int],
        body: Codec[In],
        idempotent: bool = False,
        sends: Callable[[In], int] | None = None,
    ) -> Declared[In]:
        """Declare a route that takes a body.

        `answer`: its struct, or the status of each of its structs. `sends`: the number of messages or records that it adds.
        """
        answers = answer if isinstance(answer, Mapping) else {answer: 200}
        return self._declare(
            "POST", path, action, answers, body=body, idempotent=idempotent, sends=sends
        )

    def get(
        self,
        path: str,
        *,
        action: Action,
        answer: type[msgspec.Struct],
        query: Callable[..., In],
        lasting: Mapping[str, str] | None = None,
    ) -> Declared[In]:
        """Declare a route whose input is its query, read into the struct `query`.

        `lasting`: its answer is a `StreamingResponse`, of `answer` after `answer`; what it is in each media type.
        """
        kind = cast(type[msgspec.Struct], query)
        return self._declare("GET", path, action, {answer: 200}, query=kind, lasting=lasting or {})

    def _declare(
        self,
        method: str,
        path: str,
        action: Action,
        answers: Mapping[type[msgspec.Struct], int],
        *,
        body: Codec[Any] | None = None,
        query: type[msgspec.Struct] | None = None,
        idempotent: bool = False,
        sends: Callable[[Any], int] | None = None,
        lasting: Mapping[str, str] | None = None,
    ) -> Declared[Any]:
        def declare(handler: HandlerOf[Any]) -> HandlerOf[Any]:
            self.routes.append(
                Route(
                    method=method,
                    path=path,
                    handler=handler,
                    action=action,
                    body=body,
                    query=query,
                    answers=answers,
                    idempotent=idempotent,
                    sends=sends,
                    lasting=lasting or {},
                )
            )
            return handler

        return declare


class Dispatcher:
    """Dispatcher of requests to hot routes."""

    def __init__(
        self, routes: Sequence[Route], counts: MetricBuffers, durability: Durability
    ) -> None:
        self.routes = tuple(routes)
        self._metrics = {
            "queues": ProtocolMetrics(counts, "queue", "http", durability),
            "streams": ProtocolMetrics(counts, "stream", "http", durability),
            "groups": ProtocolMetrics(
                counts, "stream", "http", durability
            ),  # groups read records of streams
        }
        self._table = {f"{route.method} {_literals(route.path)}": route for route in routes}
        assert len(self._table) == len(self.routes), "two hot routes share a path"

    def metrics_of(self, noun: str) -> ProtocolMetrics:
        """Return the metrics of 'queues', 'streams' or 'groups', for their other routes as well."""
        return self._metrics[noun]

    def find(self, method: str, segments: Sequence[str]) -> Route | None:
        """Return the route of a path split at '/', or None when it is not a hot route."""
        if len(segments) % 2 == 0 or len(segments) < 5 or segments[1] != "v1":
            return None
        return self._table.get(f"{method} {'/'.join(segments[::2])}")

    def methods(self, path: str) -> list[str]:
        """Return the methods that hot routes accept at this path."""
        segments = path.split("/")
        return [method for method in ("GET", "POST") if self.find(method, segments)]

    async def serve(
        self, route: Route, context: AppContext, principal: Principal, request: FastRequest
    ) -> HandlerResult:
        """Serve a request. Raises whatever the handler raises, ClientDisconnected."""
        noun, word = request.segments[2:4]
        name = _name(noun, word, principal.namespace)
        context.storage.authorizer.authorise(principal, route.action, str(name))
        value = await _read_and_spend(route, context.storage.quotas, principal, request)
        call = Call(context, principal, name, value, request, self._metrics[noun])
        answer = await route.handler(call)
        if isinstance(answer, StreamingResponse):
            return HandlerResult(answer.status, answer.kind, b"", answer.headers, answer.pieces)
        media_type, encoded = encode_answer(answer, answer_type(request.headers))
        low = context.storage.quotas.near_limit(principal, resource_of(noun, word))
        rate_headers = rate_limit_headers(low) if low else ()
        return HandlerResult(route.answers[type(answer)], media_type, encoded, rate_headers)


async def _read_and_spend(
    route: Route, quotas: QuotaEnforcer, principal: Principal, request: FastRequest
) -> Any:
    """Decode the input and charge the call; a call with an invalid input counts, too."""
    messages = size_bytes = 0
    try:
        if route.body is None:
            return read_query(request.query_string, route.query)
        value = route.body.decode(request.body, request.headers)
        if route.sends is not None:
            messages, size_bytes = route.sends(value), len(request.body)
        return value
    finally:
        resource = resource_of(*request.segments[2:4])
        waiting = quotas.acquire(principal, resource, messages=messages, size_bytes=size_bytes)
        if waiting is not None:
            await waiting


@lru_cache(maxsize=4096)
def resource_of(noun: str, word: str) -> str:
    """Return the quota resource of a queue, stream or group in a path: `queue/orders`."""
    return f"{noun.removesuffix('s')}/{word}"


@lru_cache(maxsize=4096)
def _name(noun: str, word: str, namespace: str) -> Name:
    """Return a checked name, cached because it stays valid. Raises ValidationFailed."""
    return _NAMES[noun](word, namespace)


def _literals(path: str) -> str:
    return "/".join(path.split("/")[::2])


def is_open(receive: Receive) -> bool:
    """Return whether an ASGI connection is open as far as is known.

    Does not wait: runs one step of `receive`.
    """
    step = receive().__await__()
    try:
        next(step)
    except StopIteration as done:
        return bool(done.value["type"] != "http.disconnect")
    step.close()  # it was still waiting for a message
    return True


async def read_body(receive: Receive, headers: RequestHeaders) -> bytes:
    """Read the request's body.

    Raises HttpError when it is too large, ClientDisconnected when it does not arrive completely.
    """
    if (length := headers.get(b"content-length")) is not None and length.isdigit():
        check_request_bytes(int(length))
    message = await receive()
    payload = cast(bytes, message.get("body", b""))
    if message["type"] == "http.request" and not message.get("more_body"):
        return payload
    return await _read_chunks(receive, message)


async def _read_chunks(receive: Receive, message: Message) -> bytes:
    chunks: list[bytes] = []
    size_bytes = 0
    while message["type"] == "http.request":
        chunks.append(message.get("body", b""))
        size_bytes += len(chunks[-1])
        check_request_bytes(size_bytes)
        if not message.get("more_body"):
            return b"".join(chunks)
        message = await receive()
    raise ClientDisconnected


def read_query(query_string: bytes, kind: type[msgspec.Struct] | None) -> Any:
    """Decode the query to a struct of `kind`.

    Raises ValidationFailed for unknown, repeated or wrong parameters.
    """
    if kind is None or not query_string:
        return kind and kind()
    try:
        pairs = parse_qsl(
            query_string.decode("latin-1"),
            keep_blank_values=True,
            errors="replace",
            max_num_fields=limits.QUERY_PARAMETERS_MAX,
        )
    except ValueError:
        detail = f"A query can have at most {limits.QUERY_PARAMETERS_MAX} parameters."
        raise ValidationFailed(detail) from None
    parameters: dict[str, Any] = dict(pairs)
    if repeatable := _repeatable(kind):
        for name in repeatable & parameters.keys():
            parameters[name] = [value for told, value in pairs if told == name]
        pairs = [pair for pair in pairs if pair[0] not in repeatable]
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValidationFailed("A query parameter is duplicated.")
    try:
        return msgspec.convert(parameters, kind, strict=False)
    except msgspec.ValidationError as error:
        raise from_msgspec(error, kind) from None


@lru_cache(maxsize=256)
def _repeatable(kind: type[msgspec.Struct]) -> frozenset[str]:
    """Return the parameters that may be repeated: their fields are tuples."""
    struct_type = inspect.type_info(kind)
    assert isinstance(struct_type, inspect.StructType)
    return frozenset(field.encode_name for field in struct_type.fields if _is_tuple(field.type))


def _is_tuple(kind: inspect.Type) -> bool:
    if isinstance(kind, inspect.Metadata):
        kind = kind.type
    return isinstance(kind, inspect.VarTupleType)
