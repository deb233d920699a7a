"""Errors of the native API: RFC 9457 problems, with the status of their category."""

import json
from typing import Any, assert_never

import msgspec

from api.errors import HttpError, HttpErrorCode
from api.http.rate_limit_headers import rate_limit_headers
from storage.domain.errors import (
    ErrorCategory,
    ErrorCode,
    FieldFault,
    MillstreamError,
    QuotaExceeded,
    ValidationFailed,
    error_types,
)

PROBLEM_JSON = "application/problem+json"
TYPE_PREFIX = "urn:millstream:problem:"
RETRY_AFTER_SECONDS = 1

AnyCode = ErrorCode | HttpErrorCode


CODES: tuple[AnyCode, ...] = (*HttpErrorCode, *ErrorCode)

_STATUSES = {
    ErrorCode.INVALID_CURSOR: 400,
    ErrorCode.OFFSET_OUT_OF_RANGE: 416,
    ErrorCode.PRECONDITION_FAILED: 412,
    ErrorCode.OFFSET_MISMATCH: 412,
    ErrorCode.FENCE_MISMATCH: 412,
    ErrorCode.RECEIPT_HANDLE_EXPIRED: 409,
}
"""Codes whose status differs from that of their category."""

_TITLES: dict[AnyCode, str] = {
    HttpErrorCode.MALFORMED_JSON: "Malformed JSON",
    HttpErrorCode.MALFORMED_MSGPACK: "Malformed MessagePack",
    HttpErrorCode.URL_TOO_LONG: "URL too long",
    HttpErrorCode.SUBPROTOCOL_UNKNOWN: "Unknown subprotocol",
    ErrorCode.KEY_REFUSED: "Key rejected",
    ErrorCode.IN_FLIGHT_LIMIT_REACHED: "In-flight limit reached",
    ErrorCode.MOVE_REFUSED: "Move rejected",
    ErrorCode.DUPLICATE_FORGOTTEN: "Duplicate result expired",
    ErrorCode.MEMBER_UNKNOWN: "Unknown member",
    ErrorCode.ARCHIVE_DAMAGED: "Archive corrupt",
    ErrorCode.ARCHIVE_OFF: "Archive disabled",
    ErrorCode.JOB_REFUSED: "Job rejected",
    ErrorCode.PAYLOAD_GONE: "Payload expired",
    ErrorCode.SECRETS_OFF: "Secrets disabled",
    ErrorCode.STORAGE_TIMEOUT: "Outcome unknown",
}
"""Titles that are not their code in words."""

_TYPES: dict[AnyCode, str] = {
    ErrorCode.QUOTA_EXCEEDED: "https://iana.org/assignments/http-problem-types#quota-exceeded",
    ErrorCode.BACKLOG_FULL: "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
}
"""Problem types with a registered name: draft-ietf-httpapi-ratelimit-headers."""

_CLASSES = error_types()

_SENTENCES: dict[ErrorCode, str] = {
    code: (kind.__doc__ or "").split("\n", 1)[0] for code, kind in _CLASSES.items()
}


def status_of(code: AnyCode) -> int:
    """Return the HTTP status of a code."""
    if isinstance(code, HttpErrorCode):
        return code.status
    return _STATUSES.get(code) or status_of_category(code.category)


def status_of_category(category: ErrorCategory) -> int:
    """Return the HTTP status of a category."""
    match category:
        case ErrorCategory.INVALID:
            return 422
        case ErrorCategory.UNAUTHENTICATED:
            return 401
        case ErrorCategory.FORBIDDEN:
            return 403
        case ErrorCategory.NOT_FOUND:
            return 404
        case ErrorCategory.CONFLICT:
            return 409
        case ErrorCategory.GONE:
            return 410
        case ErrorCategory.TOO_LARGE:
            return 413
        case ErrorCategory.THROTTLED:
            return 429
        case ErrorCategory.UNAVAILABLE:
            return 503
        case ErrorCategory.UNKNOWN_OUTCOME:
            return 504
        case ErrorCategory.INTERNAL:
            return 500
        case _:
            assert_never(category)


def title_of(code: AnyCode) -> str:
    """Return the title of a code: its words, unless it has another."""
    return _TITLES.get(code) or code.replace("_", " ").capitalize()


def error_of(code: ErrorCode) -> MillstreamError:
    """Return the error of a code."""
    return _CLASSES[code]()


class ItemError(msgspec.Struct, frozen=True):
    """Reason why one item of a batch was refused."""

    code: ErrorCode
    detail: str
    retryable: bool


def item_error(error: MillstreamError | ErrorCode) -> ItemError:
    """Return the error of one item, in an otherwise successful response."""
    if isinstance(error, ErrorCode):
        return ItemError(error, _SENTENCES[error], error.retryable)
    return ItemError(error.code, error.detail, error.code.retryable)


class Problem(msgspec.Struct, frozen=True):
    """A problem response. `headers` are sent in addition to the content type."""

    code: AnyCode
    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes


def problem(error: Exception, *, instance: str, request_id: str) -> Problem:
    """Return the problem that a client receives for `error`.

    For an unexpected error it states only that one happened.
    """
    code = code_of(error)
    status = status_of(code)
    members = {
        "type": _TYPES.get(code) or f"{TYPE_PREFIX}{code}",
        "title": title_of(code),
        "status": status,
        "detail": _detail(error),
        "instance": instance,
        "code": code,
        "retryable": code.retryable,
        "request_id": request_id,
        **_more(error),
    }
    return Problem(code, status, _headers(error, status), _encode(members))


def _encode(members: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(members)
    except UnicodeEncodeError:  # a name or text of the request with half of a surrogate pair
        return json.dumps(members, ensure_ascii=False).encode(errors="replace")


def code_of(error: Exception) -> AnyCode:
    """Return the stable code of any exception."""
    if isinstance(error, MillstreamError | HttpError):
        return error.code
    return HttpErrorCode.INTERNAL_ERROR


def _detail(error: Exception) -> str:
    if isinstance(error, MillstreamError | HttpError):
        return error.detail
    return "Internal error. The service's log contains the request id."


def _more(error: Exception) -> dict[str, Any]:
    """Return the members that only some problems have."""
    if not isinstance(error, MillstreamError):
        return {}
    members = dict(error.facts)
    if isinstance(error, QuotaExceeded):
        members["violated-policies"] = [members.get("policy", "")]
    if isinstance(error, ValidationFailed) and error.faults:
        members["errors"] = [_fault(fault) for fault in error.faults]
    if not error.code.nothing_happened:
        members["outcome"] = "unknown"
    return members


def _fault(fault: FieldFault) -> dict[str, str]:
    return {"pointer": fault.pointer, "detail": fault.detail, "code": fault.code}


def _headers(error: Exception, status: int) -> tuple[tuple[bytes, bytes], ...]:
    headers = error.headers if isinstance(error, HttpError) else ()
    if status == 401:
        return (*headers, (b"www-authenticate", b"Bearer"))
    if status not in (429, 503):
        return headers
    facts = error.facts if isinstance(error, MillstreamError) else {}
    seconds = int(facts.get("retry_after_seconds", RETRY_AFTER_SECONDS))
    limit_headers = rate_limit_headers(error.statuses) if isinstance(error, QuotaExceeded) else ()
    return (*headers, (b"retry-after", b"%d" % seconds), *limit_headers)
