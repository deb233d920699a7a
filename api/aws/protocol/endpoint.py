"""Endpoint of an AWS service: admit → authorise → decode → call → encode.

    POST /                        X-Amz-Target names the operation: JSON; without one: Query
    POST /<12 digits>/<queue>     the same; the path names the queue for Query calls that do not
    GET  /?Action=…               Query
    GET  /<12 digits>/<queue>     Query

A final slash is allowed, and what else follows the account is an invalid address of this endpoint.

In open mode signatures are not checked: only local callers are admitted, and each may do everything.
"""

import re
import time
from collections.abc import Awaitable
from functools import partial
from typing import Any

import msgspec
from starlette.types import Receive

from api.auth.audit import Caller, address_of, failure_outcome
from api.auth.endpoint_services import EndpointServices
from api.aws.protocol.audit_subject import subject_of
from api.aws.protocol.errors import ACCESS_DENIED, UNEXPECTED, UNKNOWN, AwsError, from_refusal
from api.aws.protocol.json_query_protocols import (
    EncodedResponse,
    JsonProtocol,
    QueryProtocol,
    RequestProtocol,
)
from api.aws.protocol.request_id import HEADER, new_request_id
from api.aws.protocol.service import AwsCall, Operation, OperationResult, Service, ServiceContext
from api.aws.protocol.sigv4 import SignedRequest
from api.errors import ClientDisconnected, HttpError
from api.http.body import read_body
from api.http.request import FastRequest
from api.http.request_spans import start_span
from api.http.responses import (
    CLIENT_CLOSED_REQUEST_STATUS,
    ExtraHeaders,
    RequestContext,
    RequestRecorder,
    Response,
    RouteMatch,
    durability_header,
    log_failure,
)
from api.observability.metric_buffers import ProtocolMetrics, RequestMetrics
from api.observability.tracing import TraceSpan, Tracing, verb_of
from storage.domain.access.audit import ApiProtocol, is_administrative, outcome
from storage.domain.access.permissions import Principal
from storage.domain.errors import Forbidden, MillstreamError, QuotaExceeded, Unauthenticated
from storage.quotas.enforcer import QuotaEnforcer

_ACCOUNT = re.compile(r"[0-9]{12}")
_NO_OPERATION = "unknown"
_FORM = b"application/x-www-form-urlencoded"
_UNAVAILABLE = 503
_RETRY_AFTER = (b"retry-after", b"1")


class AwsEndpoint:
    """Endpoint of one AWS service.

    `protocol`: its name in metrics, in the audit log, and in signatures. `noun`: the resource type of its calls, `queue` or
    `stream`; "" for a service without message metrics.
    """

    def __init__(
        self,
        service: Service,
        services: EndpointServices,
        *,
        protocol: str,
        noun: str = "",
        process_state: Any = None,
    ) -> None:
        self._service = service
        self._prefix = f"{service.target}.".encode()
        self._signs_as = protocol
        self._noun = noun
        self._protocol = ApiProtocol(protocol)
        self._tracing = services.tracing
        self._authenticator = services.authenticator
        self._revalidator = services.revalidator
        self._auditing = services.auditing
        self._storage = services.storage
        counts, durability = services.counts, services.durability
        self._recorder = RequestRecorder(RequestMetrics(counts, protocol), services.access)
        self._context = ServiceContext(
            services.region,
            ProtocolMetrics(counts, noun, protocol, durability) if noun else None,
            process_state,
            services.authenticator.guards,
            services.secure,
            services.public_url,
        )
        self._extra_headers: ExtraHeaders = durability_header(durability)

    @property
    def target(self) -> bytes:
        """The prefix of the X-Amz-Target of its calls."""
        return self._service.target.encode()

    @property
    def signs_as(self) -> bytes:
        """The service for which its calls are signed."""
        return self._signs_as.encode()

    def find(self, method: str, path: str, query_string: bytes) -> RouteMatch | None:
        """Return the route of a path, or None when the path does not belong to this endpoint.

        A GET of `/` is a browser visit unless it names an action.
        """
        segments = path.split("/")
        named = _ACCOUNT.fullmatch(segments[1]) is not None
        if method == "POST" and (named or path == "/"):
            return RouteMatch(self._answer_post, True, segments)
        if method == "GET" and (named or (path == "/" and b"Action=" in query_string)):
            return RouteMatch(self._answer_get, False, segments)
        return None

    def _answer_post(
        self, request: FastRequest, receive: Receive | None
    ) -> Awaitable[Response | None]:
        target = request.headers.get(b"x-amz-target")
        if target is None or self._is_foreign_form(request, target):
            return self.answer_form("POST", request, receive)
        return self.answer(JsonProtocol(self._service, request, target), request, receive)

    def _is_foreign_form(self, request: FastRequest, target: bytes) -> bool:
        """Return whether this is a Query call despite a foreign target.

        Some older clients sign every call with a target of their own making.
        """
        kind = request.headers.get(b"content-type", b"")
        return kind.startswith(_FORM) and not target.startswith(self._prefix)

    def _answer_get(
        self, request: FastRequest, receive: Receive | None
    ) -> Awaitable[Response | None]:
        return self.answer_form("GET", request, receive)

    def answer_form(
        self, method: str, request: FastRequest, receive: Receive | None
    ) -> Awaitable[Response | None]:
        """Answer a request of the Query protocol."""
        wire = QueryProtocol(self._service, request, method)
        return self.answer(wire, request, receive, method)

    async def answer(
        self,
        wire: RequestProtocol,
        request: FastRequest,
        receive: Receive | None,
        method: str = "POST",
    ) -> Response | None:
        """Return the response, errors included; None when the client has disconnected."""
        started = time.perf_counter()
        request_id = new_request_id()
        status, name = 200, _NO_OPERATION
        principal: Principal | None = None
        trace: TraceSpan | None = None
        failure = ""
        try:
            if receive is not None:
                request.body = await read_body(receive, request.headers)
            signed = SignedRequest(request, method, self._signs_as)
            principal = await self._authenticator.authenticate_signed(signed)
            operation = wire.operation()
            name = operation.name
            payload = wire.read(operation)
            if self._tracing is not None:
                trace = self._begin(self._tracing, operation, payload, request)
                trace.set_attributes({"millstream.namespace": principal.namespace})
            storage = self._storage()
            await self._charge_quota(
                storage.quotas, principal, operation, payload, len(request.body)
            )
            account = ""
            if self._context.guarded:
                namespaces, home = storage.namespaces, principal.namespace
                account = (namespaces.table.get(home) or await namespaces.find(home)).account_id
            call = AwsCall(
                payload,
                storage,
                principal,
                operation.action,
                request.is_connected,
                self._context,
                account,
                trace,
                request.headers,
                request.client,
            )
            if operation.action is not None and is_administrative(operation.action):
                answer = await self._audited(call, operation, request, request_id)
            else:
                answer = await operation.handler(call)
            encoded = wire.answer(operation, answer, request_id)
            if encoded.pieces is not None:
                watched = self._revalidator.guarded(principal, encoded.pieces)
                encoded = msgspec.structs.replace(encoded, pieces=watched)
        except ClientDisconnected:
            context = RequestContext(principal, trace, started)
            self._recorder.note(name, CLIENT_CLOSED_REQUEST_STATUS, request_id, context)
            return None
        except Exception as error:
            if principal is None and isinstance(error, AwsError | Unauthenticated):
                client, headers, word = request.client, request.headers, self._outcome_of(error)
                self._auditing.record_anonymous_failure(
                    error,
                    protocol=self._protocol,
                    client=client,
                    headers=headers,
                    request_id=request_id,
                    result=word,
                )
            status, encoded, failure = self._error_response(
                error, wire, name, request_id, RequestContext(principal, trace, started)
            )
        context = RequestContext(principal, trace, started)
        self._recorder.note(name, status, request_id, context, failure)
        extra_headers = (*self._extra_headers, (HEADER, request_id), *encoded.headers)
        return Response(
            status, encoded.kind, encoded.body, request_id, extra_headers, encoded.pieces
        )

    def _begin(
        self, tracing: Tracing, operation: Operation, payload: Any, request: FastRequest
    ) -> TraceSpan:
        verb = "" if operation.action is None else verb_of(operation.action, operation.name)
        _, _, name = self._service.quota_cost_of(operation, payload).resource.partition("/")
        return start_span(tracing, verb, operation.name, name, request.headers)

    async def _charge_quota(
        self,
        quotas: QuotaEnforcer,
        principal: Principal,
        operation: Operation,
        payload: Any,
        size_bytes: int,
    ) -> None:
        """Charge the call to the quota. Raises AwsError when it exceeds the quota now."""
        load = self._service.quota_cost_of(operation, payload)
        counted = size_bytes if load.messages else 0
        noun, _, name = load.resource.partition("/")
        mine = principal.policy.allows_something(
            noun, name
        )  # callers without permissions must not use up the resource's quota
        try:
            waiting = quotas.acquire(
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
        self, call: AwsCall[Any], operation: Operation, request: FastRequest, request_id: bytes
    ) -> OperationResult:
        caller = Caller(
            call.principal, self._protocol, address_of(request.client), request_id.decode()
        )
        subject = subject_of(operation.name, call.action, call.request, self._noun)
        handle = partial(operation.handler, call)
        return await self._auditing.run(caller, subject, handle, describe_error=self._outcome_of)

    def _outcome_of(self, error: Exception) -> str:
        """Return an error's audit outcome, with this service's error code."""
        if isinstance(error, MillstreamError):
            return failure_outcome(error)
        fault = self._service.adapt_error(self._as_aws_error(error)).fault
        return outcome("refused" if fault.sender else "failed", fault.code)

    def _error_response(
        self,
        error: Exception,
        wire: RequestProtocol,
        operation: str,
        request_id: bytes,
        context: RequestContext,
    ) -> tuple[int, EncodedResponse, str]:
        """Return the status, the encoded error, and the failure's code."""
        refused = self._service.adapt_error(self._as_aws_error(error))
        status = refused.fault.status
        log_failure(error, operation, status, request_id, context)
        encoded = wire.error(refused, request_id)
        if status == _UNAVAILABLE:
            encoded = msgspec.structs.replace(encoded, headers=(*encoded.headers, _RETRY_AFTER))
        return status, encoded, refused.fault.code

    def _as_aws_error(self, error: Exception) -> AwsError:
        match error:
            case AwsError():
                return error
            case Unauthenticated():
                return UNKNOWN
            case Forbidden():
                return AwsError(ACCESS_DENIED, error.detail)
            case MillstreamError():
                return self._service.translate(error)
            case HttpError():
                return from_refusal(error)
            case _:
                return UNEXPECTED
