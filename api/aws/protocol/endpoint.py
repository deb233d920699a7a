"""The way of a request through an AWS door: admit → authorise → decode → call → encode.

    POST /                        X-Amz-Target names the operation: JSON; without one: Query
    POST /<12 digits>/<queue>     the same; the path names the queue for Query calls that do not
    GET  /?Action=…               Query
    GET  /<12 digits>/<queue>     Query

In open mode signatures are not looked at: only local callers are let in, and each may do everything.
"""

import re
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from starlette.types import Receive

from api.auth.audit import Auditing, Caller, address_of, spelled
from api.auth.authenticator import Gate
from api.auth.revalidation import Standing
from api.aws.protocol.audit_subject import about
from api.aws.protocol.errors import ACCESS_DENIED, UNEXPECTED, UNKNOWN, AwsError, from_refusal
from api.aws.protocol.json_query_protocols import JsonWire, QueryWire, Told, Wire
from api.aws.protocol.request_id import HEADER, new_request_id
from api.aws.protocol.service import Call, Operation, Service, Surroundings
from api.aws.protocol.service import Told as Answered
from api.aws.protocol.sigv4 import SignedRequest
from api.errors import ClientDisconnected, Refusal
from api.http.public_url import base_url_of
from api.http.request_spans import begin
from api.http.responses import (
    CLIENT_GONE_STATUS,
    AccessLog,
    Answer,
    Circumstances,
    Ended,
    ExtraHeaders,
    Place,
    log_failure,
    weaker_promise,
)
from api.http.routing import HotRequest, read_body
from api.observability.metric_definitions import Counts, DoorMetrics, RequestMetrics
from api.observability.tracing import Trace, Tracing, verb_of
from storage.bootstrap import Storage
from storage.domain.access.audit import Door, is_administrative, outcome
from storage.domain.access.permissions import Principal
from storage.domain.errors import Forbidden, MillstreamError, QuotaExceeded, Unauthenticated
from storage.quotas.enforcer import QuotaEnforcer
from storage.settings import Durability

_ACCOUNT = re.compile(r"[0-9]{12}")
_NO_OPERATION = "unknown"
_FORM = b"application/x-www-form-urlencoded"


class Deployment(msgspec.Struct, frozen=True, kw_only=True):
    """What all doors of a deployment have alike. `secure`: this process speaks TLS. `public_url`: as Surroundings."""

    gate: Gate
    standing: Standing
    auditing: Auditing
    counts: Counts
    storage: Callable[[], Storage]
    durability: Durability
    region: str
    secure: bool = False
    public_url: str = ""
    tracing: Tracing | None = None
    access: AccessLog | None = None


class AwsDoor:
    """Answers the calls of one service. `protocol`: its word in metrics, in the audit log, and in signatures. `noun`: what
    its calls are about, `queue` or `stream`; "" for nothing that is counted."""

    def __init__(
        self,
        service: Service,
        deployment: Deployment,
        *,
        protocol: str,
        noun: str = "",
        kept: Any = None,
    ) -> None:
        self._service = service
        self._prefix = f"{service.target}.".encode()
        self._signs_as = protocol
        self._noun = noun
        self._door = Door(protocol)
        self._tracing = deployment.tracing
        self._gate = deployment.gate
        self._standing = deployment.standing
        self._auditing = deployment.auditing
        self._storage = deployment.storage
        counts, durability = deployment.counts, deployment.durability
        self._ended = Ended(RequestMetrics(counts, protocol), deployment.access)
        self._around = Surroundings(
            deployment.region,
            DoorMetrics(counts, noun, protocol, durability) if noun else None,
            kept,
            deployment.gate.guards,
            deployment.secure,
            deployment.public_url,
        )
        self._more: ExtraHeaders = weaker_promise(durability)

    @property
    def target(self) -> bytes:
        """What the X-Amz-Target of its calls begins with."""
        return self._service.target.encode()

    @property
    def signs_as(self) -> bytes:
        """The service that its calls are signed for."""
        return self._signs_as.encode()

    def find(self, method: str, path: str, query_string: bytes) -> Place | None:
        """The place that a path is, or None when it is none of this door's.

        A GET of `/` is a visit with a browser unless it names an action.
        """
        words = path.split("/")
        named = len(words) == 3 and _ACCOUNT.fullmatch(words[1]) is not None
        if method == "POST" and (named or path == "/"):
            return Place(self._answer_post, True, words)
        if method == "GET" and (named or (path == "/" and b"Action=" in query_string)):
            return Place(self._answer_get, False, words)
        return None

    async def _answer_post(self, request: HotRequest, receive: Receive | None) -> Answer | None:
        target = request.headers.get(b"x-amz-target")
        if target is None or self._is_form_of_others(request, target):
            return await self.answer_form("POST", request, receive)
        return await self.answer(JsonWire(self._service, request, target), request, receive)

    def _is_form_of_others(self, request: HotRequest, target: bytes) -> bool:
        """Whether it is Query all the same: some older clients sign every call with a target of their own making."""
        kind = request.headers.get(b"content-type", b"")
        return kind.startswith(_FORM) and not target.startswith(self._prefix)

    async def _answer_get(self, request: HotRequest, receive: Receive | None) -> Answer | None:
        return await self.answer_form("GET", request, receive)

    async def answer_form(
        self, method: str, request: HotRequest, receive: Receive | None
    ) -> Answer | None:
        """The answer to a request of the Query protocol."""
        return await self.answer(QueryWire(self._service, request), request, receive, method)

    async def answer(
        self, wire: Wire, request: HotRequest, receive: Receive | None, method: str = "POST"
    ) -> Answer | None:
        """What goes back to the client, refusals included; None when it is gone."""
        started = time.perf_counter()
        request_id = new_request_id()
        status, name = 200, _NO_OPERATION
        principal: Principal | None = None
        trace: Trace | None = None
        failure = ""
        try:
            if receive is not None:
                request.body = await read_body(receive, request.headers)
            signed = SignedRequest(request, method, self._signs_as)
            principal = await self._gate.admit_signed(signed)
            operation = wire.operation()
            name = operation.name
            asked = wire.read(operation)
            if self._tracing is not None:
                trace = self._begin(self._tracing, operation, asked, request)
                trace.about({"millstream.namespace": principal.namespace})
            storage = self._storage()
            await self._spend(storage.quotas, principal, operation, asked, len(request.body))
            account = ""
            if self._around.guarded:
                known, home = storage.namespaces, principal.namespace
                account = (known.table.get(home) or await known.find(home)).account_id
            call = Call(
                asked,
                storage,
                principal,
                operation.action,
                self._around.public_url or base_url_of(request.headers, secure=self._around.secure),
                request.is_there,
                self._around,
                account,
                trace,
                request.headers,
            )
            if operation.action is not None and is_administrative(operation.action):
                answer = await self._audited(call, operation, request, request_id)
            else:
                answer = await operation.handler(call)
            told = wire.answer(operation, answer, request_id)
            if told.pieces is not None:
                told = told._replace(pieces=self._standing.watched(principal, told.pieces))
        except ClientDisconnected:
            around = Circumstances(principal, trace, started)
            self._ended.note(name, CLIENT_GONE_STATUS, request_id, around)
            return None
        except Exception as error:
            if principal is None and isinstance(error, AwsError | Unauthenticated):
                client, headers, word = request.client, request.headers, self._spelled(error)
                self._auditing.note_stranger(error, self._door, client, headers, request_id, word)
            status, told, failure = self._refused(
                error, wire, name, request_id, Circumstances(principal, trace, started)
            )
        around = Circumstances(principal, trace, started)
        self._ended.note(name, status, request_id, around, failure)
        more = (*self._more, (HEADER, request_id), *told.headers)
        return Answer(status, told.kind, told.body, request_id, more, told.pieces)

    def _begin(
        self, tracing: Tracing, operation: Operation, asked: Any, request: HotRequest
    ) -> Trace:
        verb = "" if operation.action is None else verb_of(operation.action, operation.name)
        _, _, name = self._service.load_of(operation, asked).resource.partition("/")
        return begin(tracing, verb, operation.name, name, request.headers)

    async def _spend(
        self,
        quotas: QuotaEnforcer,
        principal: Principal,
        operation: Operation,
        asked: Any,
        size_bytes: int,
    ) -> None:
        """Spend what the call costs. Raises AwsError when that is too much now."""
        load = self._service.load_of(operation, asked)
        counted = size_bytes if load.messages else 0
        noun, _, name = load.resource.partition("/")
        mine = principal.policy.allows_something(
            noun, name
        )  # or it takes nothing from those whose it is
        try:
            waiting = quotas.spend(
                principal,
                load.resource if mine else "",
                messages=load.messages,
                size_bytes=counted,
            )
            if waiting is not None:
                await waiting
        except QuotaExceeded as error:
            raise self._service.throttled(operation, error) from None

    async def _audited(
        self, call: Call[Any], operation: Operation, request: HotRequest, request_id: bytes
    ) -> Answered:
        caller = Caller(call.principal, self._door, address_of(request.client), request_id.decode())
        wanted = about(operation.name, call.action, call.asked, self._noun)
        handle = partial(operation.handler, call)
        return await self._auditing.run(caller, wanted, handle, spell=self._spelled)

    def _spelled(self, error: Exception) -> str:
        """An outcome in this service's own words, where it refuses."""
        if isinstance(error, MillstreamError):
            return spelled(error)
        fault = self._service.spell(self._in_their_words(error)).fault
        return outcome("refused" if fault.sender else "failed", fault.code)

    def _refused(
        self,
        error: Exception,
        wire: Wire,
        operation: str,
        request_id: bytes,
        around: Circumstances,
    ) -> tuple[int, Told, str]:
        """The status, what is told, and the failure in one word."""
        refused = self._service.spell(self._in_their_words(error))
        status = refused.fault.status
        log_failure(error, operation, status, request_id, around)
        return status, wire.error(refused, request_id), refused.fault.code

    def _in_their_words(self, error: Exception) -> AwsError:
        match error:
            case AwsError():
                return error
            case Unauthenticated():
                return UNKNOWN
            case Forbidden():
                return AwsError(ACCESS_DENIED, error.detail)
            case MillstreamError():
                return self._service.translate(error)
            case Refusal():
                return from_refusal(error)
            case _:
                return UNEXPECTED
