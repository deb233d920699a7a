"""Errors of HTTP itself, raised before any engine is called."""

from enum import StrEnum

from storage.domain.errors import (
    ErrorCategory,
    MillstreamError,
    OutcomeUnknown,
    StorageBusy,
)


class HttpErrorCode(StrEnum):
    """Stable codes in addition to `ErrorCode`, with their statuses; none is retryable."""

    _value_: str
    category: ErrorCategory
    status: int

    def __new__(cls, value: str, category: ErrorCategory, status: int) -> "HttpErrorCode":
        code = str.__new__(cls, value)
        code._value_ = value
        code.category = category
        code.status = status
        return code

    BAD_REQUEST = "bad_request", ErrorCategory.INVALID, 400
    MALFORMED_JSON = "malformed_json", ErrorCategory.INVALID, 400
    MALFORMED_MSGPACK = "malformed_msgpack", ErrorCategory.INVALID, 400
    NOT_FOUND = "not_found", ErrorCategory.NOT_FOUND, 404
    METHOD_NOT_ALLOWED = "method_not_allowed", ErrorCategory.INVALID, 405
    REQUEST_TOO_LARGE = "request_too_large", ErrorCategory.TOO_LARGE, 413
    HEADERS_TOO_LARGE = "headers_too_large", ErrorCategory.TOO_LARGE, 431
    URL_TOO_LONG = "url_too_long", ErrorCategory.TOO_LARGE, 414
    REQUEST_TOO_SLOW = "request_too_slow", ErrorCategory.INVALID, 408
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type", ErrorCategory.INVALID, 415
    UPGRADE_REQUIRED = "upgrade_required", ErrorCategory.INVALID, 426
    SUBPROTOCOL_UNKNOWN = "subprotocol_unknown", ErrorCategory.INVALID, 400
    INTERNAL_ERROR = "internal_error", ErrorCategory.INTERNAL, 500

    @property
    def retryable(self) -> bool:
        """Return whether the same call may succeed later, unchanged."""
        return self.category.retryable

    @property
    def nothing_happened(self) -> bool:
        """Return whether the call changed nothing for certain; false for an unexpected error."""
        return self is not HttpErrorCode.INTERNAL_ERROR


class HttpError(Exception):
    """A request that no route accepts. `headers` are added to the response."""

    def __init__(
        self, code: HttpErrorCode, detail: str, headers: tuple[tuple[bytes, bytes], ...] = ()
    ) -> None:
        self.code = code
        self.detail = detail
        self.headers = headers
        super().__init__(detail)


class ClientDisconnected(Exception):
    """The client closed its connection before the response was ready."""


def interrupted(method: str) -> MillstreamError:
    """Return the error of a request that the server cancels when its grace period is over."""
    if method in _SAFE:
        return StorageBusy("The server is shutting down; try again.")
    return OutcomeUnknown("The server shut down; the request may have taken effect.")


_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
