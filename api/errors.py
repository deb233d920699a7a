"""Errors of HTTP itself, raised before any engine is called."""

from enum import StrEnum


class HttpErrorCode(StrEnum):
    """Stable codes in addition to `ErrorCode`; none is retryable, and nothing happened."""

    BAD_REQUEST = "bad_request"
    MALFORMED_JSON = "malformed_json"
    MALFORMED_MSGPACK = "malformed_msgpack"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    REQUEST_TOO_LARGE = "request_too_large"
    HEADERS_TOO_LARGE = "headers_too_large"
    URL_TOO_LONG = "url_too_long"
    REQUEST_TOO_SLOW = "request_too_slow"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    UPGRADE_REQUIRED = "upgrade_required"
    SUBPROTOCOL_UNKNOWN = "subprotocol_unknown"
    INTERNAL_ERROR = "internal_error"


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
