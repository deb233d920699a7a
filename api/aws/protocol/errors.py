"""Errors in AWS's protocols, and those common to every service.

One fault has two names: the shape that JSON errors carry in `__type`, and the code of the older Query protocol, which
SDKs of a query-compatible service still show to their users.
"""

from collections.abc import Mapping
from typing import assert_never

import msgspec

from api.errors import HttpError, HttpErrorCode
from storage.domain.errors import ErrorCategory, ErrorCode


class AwsFault(msgspec.Struct, frozen=True):
    """A type of error. `code`: its name in the Query protocol."""

    shape: str
    code: str
    status: int = 400

    @property
    def sender(self) -> bool:
        """Return whether the client caused the error."""
        return self.status < 500

    @property
    def type_header(self) -> tuple[bytes, bytes]:
        """The header that names the shape, beside `__type`."""
        return b"x-amzn-errortype", self.shape.rpartition("#")[2].encode()


class AwsError(Exception):
    """A call was refused. `query_message`: its text in the Query protocol, where it differs."""

    def __init__(self, fault: AwsFault, message: str, *, query_message: str | None = None) -> None:
        self.fault = fault
        self.message = message
        self.query_message = message if query_message is None else query_message
        super().__init__(message)


def _common(name: str, code: str, status: int = 400) -> AwsFault:
    return AwsFault(f"com.amazon.coral.service#{name}", code, status)


# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/CommonErrors.html, and what
# JSON services return for bytes that they cannot decode.
SERIALIZATION = _common("SerializationException", "SerializationException")
UNKNOWN_OPERATION = _common("UnknownOperationException", "InvalidAction")
NO_ACTION = _common("UnknownOperationException", "UnknownOperationException", 404)
MISSING_ACTION = _common("MissingActionException", "MissingAction")
MALFORMED_QUERY = _common("MalformedQueryStringException", "MalformedQueryString", 404)
UNKNOWN_CLIENT = _common("UnrecognizedClientException", "InvalidClientTokenId", 403)
MISSING_SIGNATURE = _common(
    "MissingAuthenticationTokenException", "MissingAuthenticationToken", 403
)
INCOMPLETE_SIGNATURE = _common("IncompleteSignatureException", "IncompleteSignature", 403)
WRONG_SIGNATURE = _common("InvalidSignatureException", "SignatureDoesNotMatch", 403)
ACCESS_DENIED = _common("AccessDeniedException", "AccessDenied", 403)
REQUEST_TOO_LARGE = _common("RequestEntityTooLargeException", "RequestEntityTooLarge", 413)
REQUEST_TIMEOUT = _common("RequestTimeoutException", "RequestTimeout", 408)
MALFORMED_HTTP = _common("MalformedHttpRequestException", "MalformedHttpRequest")
BAD_REQUEST = _common("ValidationException", "ValidationError")
INTERNAL_FAILURE = _common("InternalFailure", "InternalFailure", 500)
SERVICE_UNAVAILABLE = _common("ServiceUnavailableException", "ServiceUnavailable", 503)

UNKNOWN = AwsError(UNKNOWN_CLIENT, "The security token included in the request is invalid.")
UNEXPECTED = AwsError(
    INTERNAL_FAILURE, "Internal error. The service's log contains the request id."
)


class ErrorTranslation(msgspec.Struct, frozen=True):
    """Faults of a service by category, and by code where they differ; the rest are common."""

    categories: Mapping[ErrorCategory, AwsFault] = {}
    codes: Mapping[ErrorCode, AwsFault] = {}

    def fault_of(self, code: ErrorCode) -> AwsFault:
        """Return the fault of a code."""
        return self.codes.get(code) or self.fault_of_category(code.category)

    def fault_of_category(self, category: ErrorCategory) -> AwsFault:
        """Return the fault of a category."""
        return self.categories.get(category) or _common_fault(category)


def _common_fault(category: ErrorCategory) -> AwsFault:
    """Return the fault that every service has for a category."""
    match category:
        case ErrorCategory.UNAUTHENTICATED | ErrorCategory.FORBIDDEN:
            return ACCESS_DENIED
        case (
            ErrorCategory.INVALID
            | ErrorCategory.NOT_FOUND
            | ErrorCategory.CONFLICT
            | ErrorCategory.GONE
            | ErrorCategory.TOO_LARGE
        ):
            return BAD_REQUEST
        case ErrorCategory.THROTTLED | ErrorCategory.UNAVAILABLE:
            return SERVICE_UNAVAILABLE
        case ErrorCategory.UNKNOWN_OUTCOME | ErrorCategory.INTERNAL:
            return INTERNAL_FAILURE
        case _:
            assert_never(category)


def from_refusal(refusal: HttpError) -> AwsError:
    """Translate an HTTP error to an AWS error."""
    return AwsError(_HTTP_FAULTS.get(refusal.code, BAD_REQUEST), refusal.detail)


_HTTP_FAULTS = {
    HttpErrorCode.REQUEST_TOO_LARGE: REQUEST_TOO_LARGE,
    HttpErrorCode.URL_TOO_LONG: REQUEST_TOO_LARGE,
    HttpErrorCode.HEADERS_TOO_LARGE: REQUEST_TOO_LARGE,
    HttpErrorCode.REQUEST_TOO_SLOW: REQUEST_TIMEOUT,
    HttpErrorCode.BAD_REQUEST: MALFORMED_HTTP,
}
