"""Protocols of a service whose operations X-Amz-Target names.

JSON 1.1, CBOR 1.1, and event streams in either.

    decode: bytes → types → constraints        each refuses with AWS's messages, in this order

The answer is in the request's own type.
"""

import base64
from collections.abc import Awaitable, Sequence
from typing import Any

import msgspec
from starlette.types import Receive

from api.aws.protocol.codecs import cbor
from api.aws.protocol.codecs.event_stream import KIND, EventStream
from api.aws.protocol.constraints import check
from api.aws.protocol.endpoint import AwsEndpoint
from api.aws.protocol.errors import (
    BAD_REQUEST,
    SERIALIZATION,
    UNEXPECTED,
    UNKNOWN_OPERATION,
    AwsError,
)
from api.aws.protocol.json_query_protocols import EncodedResponse
from api.aws.protocol.service import Operation, Service
from api.aws.protocol.sigv4 import service_of
from api.http.item_limits import check_cbor_items, check_json_items
from api.http.request import FastRequest
from api.http.responses import Response, RouteMatch, log_failure
from api.http.surrogates import HALF_OF_PAIR, has_halves

CBOR = "application/x-amz-cbor-1.1"
_CBOR = CBOR.encode()
_EVENT_JSON = "application/json"
_ID_2 = b"x-amz-id-2"

_json = msgspec.json.Encoder()


class TargetProtocol:
    """One request of such a service."""

    __slots__ = ("_cbor", "_request", "_service", "_target")

    def __init__(self, service: Service, request: FastRequest, target: bytes) -> None:
        self._service = service
        self._request = request
        self._target = target
        self._cbor = request.headers.get(b"content-type", b"").startswith(_CBOR)

    def operation(self) -> Operation:
        """Return the operation that the target names.

        Unreadable bytes are reported first, as at Amazon.
        """
        service, _, name = self._target.decode("latin-1").rpartition(".")
        named_operation = self._service.operations.get(name)
        if named_operation is None or service != self._service.target:
            self._parse(Any)
            raise AwsError(UNKNOWN_OPERATION, f"The action {name[:128]} is not supported.")
        return named_operation

    def read(self, operation: Operation) -> Any:
        """Decode the input."""
        payload = (
            self._parse(operation.input_type) if self._cbor else self._decode(operation.decode_json)
        )
        if operation.fast_validate is None or not operation.fast_validate(payload):
            check(payload, BAD_REQUEST)
        return payload

    def answer(self, operation: Operation, answer: Any, request_id: bytes) -> EncodedResponse:
        """Encode the answer; without content it has no body in JSON, as at Amazon."""
        headers = _headers(request_id)
        if isinstance(answer, EventStream):
            kind = CBOR if self._cbor else _EVENT_JSON

            def encode_error(error: Exception) -> tuple[str, bytes]:
                refused = error if isinstance(error, AwsError) else UNEXPECTED
                status = self._service.adapt_error(refused).fault.status
                log_failure(error, operation.name, status, request_id)
                return self._encode_error(refused)

            return EncodedResponse(
                KIND, b"", headers, answer.encoded(kind, self._encoded, encode_error)
            )
        if answer is None:
            return EncodedResponse(self._kind, b"", headers)
        return EncodedResponse(self._kind, self._encoded(answer), headers)

    def error(self, error: AwsError, request_id: bytes) -> EncodedResponse:
        """Encode the error."""
        _, body = self._encode_error(error)
        fault = self._service.adapt_error(error).fault
        return EncodedResponse(self._kind, body, (*_headers(request_id), fault.type_header))

    @property
    def _kind(self) -> str:
        return CBOR if self._cbor else self._service.json_type

    def _encoded(self, answer: msgspec.Struct) -> bytes:
        return cbor.dumps(answer, self._service.times) if self._cbor else _json.encode(answer)

    def _encode_error(self, error: AwsError) -> tuple[str, bytes]:
        spelled = self._service.adapt_error(error)
        return spelled.fault.shape, self._encoded(_Error(spelled.fault.shape, spelled.message))

    def _parse(self, kind: Any) -> Any:
        """Decode the body as `kind`, by way of plain values."""
        payload = self._request.body
        if not self._cbor:
            return self._decode(lambda body: msgspec.json.decode(body, type=kind))
        check_cbor_items(payload)
        try:
            plain = cbor.loads(payload) if payload else {}
            return msgspec.convert(plain, kind, builtin_types=(bytes,))
        except (cbor.MalformedCbor, msgspec.ValidationError) as error:
            raise AwsError(SERIALIZATION, f"The body cannot be parsed: {error}.") from None

    def _decode(self, decode: Any) -> Any:
        check_json_items(self._request.body)
        try:
            return decode(self._request.body or b"{}")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            reason = HALF_OF_PAIR if has_halves(self._request.body) else error
            raise AwsError(SERIALIZATION, f"The body cannot be parsed: {reason}.") from None


class _Error(msgspec.Struct):
    type: str = msgspec.field(name="__type")
    message: str


def _headers(request_id: bytes) -> tuple[tuple[bytes, bytes], ...]:
    return ((_ID_2, base64.b64encode(request_id)),)


class TargetEndpoint(AwsEndpoint):
    """Endpoint of one such service, with one route for every path."""

    def answer_target(
        self, request: FastRequest, receive: Receive | None
    ) -> Awaitable[Response | None]:
        """Answer a request whose target names an operation."""
        target = request.headers.get(b"x-amz-target", b"")
        return self.answer(TargetProtocol(self._service, request, target), request, receive)


class ServiceRouter:
    """Router of the path `/`, which services share.

    The target's prefix selects the service; for a form without a target, the service that it is signed for.
    """

    def __init__(
        self,
        otherwise: AwsEndpoint,
        targets: Sequence[TargetEndpoint],
        forms: Sequence[AwsEndpoint],
    ) -> None:
        self._otherwise = otherwise
        self._targets = {endpoint.target: endpoint for endpoint in targets}
        self._forms = {endpoint.signs_as: endpoint for endpoint in forms}

    def find(self, method: str, path: str, query_string: bytes) -> RouteMatch | None:
        """Return the route of a path, or None when no endpoint serves it."""
        match = self._otherwise.find(method, path, query_string)
        if match is None or path != "/":
            return match
        answer_otherwise = match.answer

        def answer(request: FastRequest, receive: Receive | None) -> Awaitable[Response | None]:
            target = request.headers.get(b"x-amz-target")
            if target is None:
                form = self._forms.get(service_of(request))
                if form is not None:
                    return form.answer_form(method, request, receive)
                return answer_otherwise(request, receive)
            endpoint = self._targets.get(target.partition(b".")[0])
            if endpoint is None or method != "POST":
                return answer_otherwise(request, receive)
            return endpoint.answer_target(request, receive)

        return RouteMatch(answer, match.takes_body, match.segments)
