"""The two protocols of a query-compatible service, JSON and Query.

          operation                    input                       answer, errors
JSON      X-Amz-Target: <service>.<n>  a JSON object               JSON, `__type`
Query     Action=<n>                   parameters (`wire.query`)   XML (`wire.xml`)
"""

from collections.abc import AsyncGenerator
from typing import Any, NamedTuple, Protocol

import msgspec

from api.aws.protocol.codecs.query import parse_parameters, read_parameters
from api.aws.protocol.codecs.xml import answer_xml, error_xml
from api.aws.protocol.errors import MISSING_ACTION, SERIALIZATION, UNKNOWN_OPERATION, AwsError
from api.aws.protocol.service import Operation, Service
from api.http.item_limits import check_json_items
from api.http.public_url import base_url_of
from api.http.request import FastRequest

XML = "text/xml"
_ACTION = "Action"

_json = msgspec.json.Encoder()


class EncodedResponse(NamedTuple):
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
        check_json_items(self._request.body)
        try:
            return operation.decode_json(self._request.body or b"{}")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise AwsError(SERIALIZATION, f"The body cannot be parsed: {error}.") from None

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
            self._service.json_type, body, ((b"x-amzn-query-error", query_error),)
        )


class QueryProtocol:
    """AWS Query: https://smithy.io/2.0/aws/protocols/aws-query-protocol.html."""

    __slots__ = ("_parameters", "_request", "_service")

    def __init__(self, service: Service, request: FastRequest) -> None:
        self._service = service
        self._request = request
        self._parameters: dict[str, str] = {}

    def operation(self) -> Operation:
        """Return the operation that Action names."""
        self._parameters = parse_parameters(self._request.query_string, self._request.body)
        name = self._parameters.get(_ACTION, "")
        if not name:
            raise AwsError(MISSING_ACTION, "The request must contain the parameter Action.")
        named_operation = self._service.operations.get(name)
        if named_operation is None:
            raise AwsError(
                UNKNOWN_OPERATION, f"The action {name[:128]} is not valid for this endpoint."
            )
        return named_operation

    def read(self, operation: Operation) -> Any:
        """Decode the input; the path gives the queue if no parameter does."""
        if len(self._request.segments) > 2:
            place = f"{base_url_of(self._request.headers)}{'/'.join(self._request.segments)}"
            self._parameters.setdefault(self._service.path_parameter, place)
        return read_parameters(self._parameters, operation.input_type)

    def answer(
        self, operation: Operation, answer: msgspec.Struct | None, request_id: bytes
    ) -> EncodedResponse:
        """Encode the answer."""
        namespace = self._service.namespace
        return EncodedResponse(
            XML, answer_xml(operation.name, answer, request_id.decode(), namespace)
        )

    def error(self, error: AwsError, request_id: bytes) -> EncodedResponse:
        """Encode the error."""
        return EncodedResponse(XML, error_xml(error, request_id.decode(), self._service.namespace))
