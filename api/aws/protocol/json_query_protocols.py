"""The two protocols of a query-compatible service, JSON and Query.

          operation                    input                         answer, errors
JSON      X-Amz-Target: <service>.<n>  a JSON object                 JSON, `__type`
Query     Action=<n>                   parameters (`codecs.query`)   XML (`codecs.xml`), or JSON if `Accept`
                                                                     names it (`codecs.query_json`)
"""

from collections.abc import AsyncGenerator
from typing import Any, Protocol

import msgspec

from api.aws.protocol.codecs.query import parse_parameters, read_parameters
from api.aws.protocol.codecs.query_json import answer_json, error_json
from api.aws.protocol.codecs.xml import NO_ACTION_XML, answer_xml, error_xml
from api.aws.protocol.errors import (
    MISSING_ACTION,
    NO_ACTION,
    SERIALIZATION,
    UNKNOWN_OPERATION,
    AwsError,
)
from api.aws.protocol.service import Operation, Service
from api.http.item_limits import check_json_items
from api.http.public_url import base_url_of
from api.http.request import FastRequest
from api.http.surrogates import replace_halves

XML = "text/xml"
_QUERY_JSON = "application/json"
_ACTION = "Action"
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_json = msgspec.json.Encoder()


class EncodedResponse(msgspec.Struct, frozen=True, gc=False):
    """An encoded answer before its final headers. A streaming one has `pieces` and no body."""

    kind: str
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()
    pieces: AsyncGenerator[bytes] | None = None


class RequestProtocol(Protocol):
    """One request's protocol. Every method raises AwsError for what it cannot read."""

    def operation(self) -> Operation: ...

    def read(self, operation: Operation) -> Any: ...

    def answer(self, operation: Operation, answer: Any, request_id: bytes) -> EncodedResponse: ...

    def error(self, error: AwsError, request_id: bytes) -> EncodedResponse: ...


def _unreadable(error: Exception) -> AwsError:
    return AwsError(SERIALIZATION, f"The body cannot be parsed: {error}.")


class JsonProtocol:
    """AWS JSON: https://smithy.io/2.0/aws/protocols/aws-json-1_0-protocol.html."""

    __slots__ = ("_request", "_service", "_target")

    def __init__(self, service: Service, request: FastRequest, target: bytes) -> None:
        self._service = service
        self._request = request
        self._target = target

    def operation(self) -> Operation:
        """Return the operation that the target names."""
        service, _, name = self._target.decode("latin-1").rpartition(".")
        named_operation = self._service.operations.get(name)
        if named_operation is None or service != self._service.target:
            raise AwsError(UNKNOWN_OPERATION, f"The action {name[:128]} is not supported.")
        return named_operation

    def read(self, operation: Operation) -> Any:
        """Decode the input."""
        body = self._request.body or b"{}"
        check_json_items(body)
        try:
            return operation.decode_json(body)
        except _UNREADABLE as error:
            # No operation accepts a text with what replaces a half: so the error names the entry of a batch.
            whole = replace_halves(body)
            if whole == body:
                raise _unreadable(error) from None
        try:
            return operation.decode_json(whole)
        except _UNREADABLE as error:
            raise _unreadable(error) from None

    def answer(
        self, operation: Operation, answer: msgspec.Struct | None, request_id: bytes
    ) -> EncodedResponse:
        """Encode the answer; without content it is an empty object."""
        return EncodedResponse(
            self._service.json_type, b"{}" if answer is None else _json.encode(answer)
        )

    def error(self, error: AwsError, request_id: bytes) -> EncodedResponse:
        """Encode the error, with its Query name in a header for clients that show that one."""
        fault = error.fault
        body = _json.encode({"__type": fault.shape, "message": error.message})
        blame = "Sender" if fault.sender else "Receiver"
        query_error = f"{fault.code};{blame}".encode()
        return EncodedResponse(
            self._service.json_type,
            body,
            ((b"x-amzn-query-error", query_error), fault.type_header),
        )


class QueryProtocol:
    """AWS Query: https://smithy.io/2.0/aws/protocols/aws-query-protocol.html."""

    __slots__ = ("_accepts_json", "_method", "_parameters", "_request", "_service")

    def __init__(self, service: Service, request: FastRequest, method: str) -> None:
        self._service = service
        self._request = request
        self._method = method
        self._parameters: dict[str, str] = {}
        self._accepts_json = _QUERY_JSON.encode() in request.headers.get(b"accept", b"")

    def operation(self) -> Operation:
        """Return the operation that Action names."""
        self._parameters = parse_parameters(self._request.query_string, self._request.body)
        name = self._parameters.get(_ACTION, "")
        if not name:
            raise self._no_action()
        named_operation = self._service.operations.get(name)
        if named_operation is None or (self._path and name in self._service.root_operations):
            raise AwsError(
                UNKNOWN_OPERATION, f"The action {name[:128]} is not valid for this endpoint."
            )
        return named_operation

    def _no_action(self) -> AwsError:
        if self._path and self._method == "GET":
            return AwsError(NO_ACTION, "A GET of a queue's address must name an action.")
        return AwsError(MISSING_ACTION, "The request must contain the parameter Action.")

    @property
    def _path(self) -> str:
        """The path without a final slash; "" for the service's root."""
        return "/".join(self._request.segments).removesuffix("/")

    def read(self, operation: Operation) -> Any:
        """Decode the input; the path gives the queue if no parameter does."""
        service, parameters = self._service, self._parameters
        if self._path:
            place = f"{base_url_of(self._request.headers)}{self._path}"
            parameters.setdefault(service.path_parameter, place)
        if address := parameters.get(service.path_parameter):
            service.check_address(address)
        return read_parameters(parameters, operation.input_type)

    def answer(
        self, operation: Operation, answer: msgspec.Struct | None, request_id: bytes
    ) -> EncodedResponse:
        """Encode the answer."""
        name, text = operation.name, request_id.decode()
        if self._accepts_json:
            return EncodedResponse(_QUERY_JSON, answer_json(name, answer, text))
        return EncodedResponse(XML, answer_xml(name, answer, text, self._service.namespace))

    def error(self, error: AwsError, request_id: bytes) -> EncodedResponse:
        """Encode the error."""
        text = request_id.decode()
        if error.fault is NO_ACTION:
            return EncodedResponse(XML, NO_ACTION_XML)
        if self._accepts_json:
            return EncodedResponse(_QUERY_JSON, error_json(error, text))
        return EncodedResponse(XML, error_xml(error, text, self._service.namespace))
