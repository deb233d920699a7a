"""Refusals of requests beyond the limits of a head, of every version of HTTP."""

from api.errors import HttpError, HttpErrorCode
from storage.domain import limits

HEAD_TOO_LARGE = HttpError(
    HttpErrorCode.HEADERS_TOO_LARGE,
    f"The request line and headers can have at most {limits.HEAD_BYTES_MAX} bytes and {limits.HEAD_HEADERS_MAX} headers.",
)
URL_TOO_LONG = HttpError(
    HttpErrorCode.URL_TOO_LONG, f"The path and query can have at most {limits.URL_BYTES_MAX} bytes."
)
TOO_SLOW = HttpError(
    HttpErrorCode.REQUEST_TOO_SLOW, "The request was not complete within the time limit."
)
MALFORMED = HttpError(HttpErrorCode.BAD_REQUEST, "Invalid HTTP request.")
NO_TUNNEL = HttpError(
    HttpErrorCode.METHOD_NOT_ALLOWED, "CONNECT is not supported: WebSockets use HTTP/1.1."
)
