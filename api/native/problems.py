"""Errors of the native API: RFC 9457 problems, one row for each code."""

import json
from typing import Any

import msgspec

from api.errors import HttpError, HttpErrorCode
from api.http.rate_limit_headers import rate_limit_headers
from storage.domain.errors import (
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


class ProblemRow(msgspec.Struct, frozen=True):
    """HTTP status and title of a code."""

    status: int
    title: str


TABLE: dict[AnyCode, ProblemRow] = {
    HttpErrorCode.BAD_REQUEST: ProblemRow(400, "Bad request"),
    HttpErrorCode.MALFORMED_JSON: ProblemRow(400, "Malformed JSON"),
    HttpErrorCode.MALFORMED_MSGPACK: ProblemRow(400, "Malformed MessagePack"),
    HttpErrorCode.NOT_FOUND: ProblemRow(404, "Not found"),
    HttpErrorCode.METHOD_NOT_ALLOWED: ProblemRow(405, "Method not allowed"),
    HttpErrorCode.REQUEST_TOO_LARGE: ProblemRow(413, "Request too large"),
    HttpErrorCode.HEADERS_TOO_LARGE: ProblemRow(431, "Headers too large"),
    HttpErrorCode.URL_TOO_LONG: ProblemRow(414, "URL too long"),
    HttpErrorCode.REQUEST_TOO_SLOW: ProblemRow(408, "Request too slow"),
    HttpErrorCode.UNSUPPORTED_MEDIA_TYPE: ProblemRow(415, "Unsupported media type"),
    HttpErrorCode.UPGRADE_REQUIRED: ProblemRow(426, "Upgrade required"),
    HttpErrorCode.SUBPROTOCOL_UNKNOWN: ProblemRow(400, "Unknown subprotocol"),
    HttpErrorCode.INTERNAL_ERROR: ProblemRow(500, "Internal error"),
    ErrorCode.VALIDATION_FAILED: ProblemRow(422, "Validation failed"),
    ErrorCode.MESSAGE_TOO_LARGE: ProblemRow(413, "Message too large"),
    ErrorCode.BATCH_TOO_LARGE: ProblemRow(413, "Batch too large"),
    ErrorCode.INVALID_CURSOR: ProblemRow(400, "Invalid cursor"),
    ErrorCode.RECEIPT_HANDLE_INVALID: ProblemRow(422, "Receipt handle invalid"),
    ErrorCode.UNAUTHENTICATED: ProblemRow(401, "Unauthenticated"),
    ErrorCode.FORBIDDEN: ProblemRow(403, "Forbidden"),
    ErrorCode.KEY_NOT_FOUND: ProblemRow(404, "Key not found"),
    ErrorCode.KEY_REFUSED: ProblemRow(409, "Key rejected"),
    ErrorCode.QUEUE_NOT_FOUND: ProblemRow(404, "Queue not found"),
    ErrorCode.STREAM_NOT_FOUND: ProblemRow(404, "Stream not found"),
    ErrorCode.STREAM_RECREATED: ProblemRow(410, "Stream recreated"),
    ErrorCode.STREAM_READ_ONLY: ProblemRow(409, "Stream read only"),
    ErrorCode.SHARD_NOT_FOUND: ProblemRow(404, "Shard not found"),
    ErrorCode.MESSAGE_NOT_FOUND: ProblemRow(404, "Message not found"),
    ErrorCode.PRECONDITION_FAILED: ProblemRow(412, "Precondition failed"),
    ErrorCode.RECEIPT_HANDLE_EXPIRED: ProblemRow(409, "Receipt handle expired"),
    ErrorCode.IDEMPOTENCY_KEY_REUSED: ProblemRow(422, "Idempotency key reused"),
    ErrorCode.IN_FLIGHT_LIMIT_REACHED: ProblemRow(429, "In-flight limit reached"),
    ErrorCode.MESSAGE_IN_FLIGHT: ProblemRow(409, "Message in flight"),
    ErrorCode.QUEUE_FULL: ProblemRow(429, "Queue full"),
    ErrorCode.GROUP_NOT_PARKED: ProblemRow(404, "Group not parked"),
    ErrorCode.PURGE_IN_PROGRESS: ProblemRow(429, "Purge in progress"),
    ErrorCode.MOVE_REFUSED: ProblemRow(409, "Move rejected"),
    ErrorCode.MOVE_NOT_FOUND: ProblemRow(404, "Move not found"),
    ErrorCode.STREAM_BUSY: ProblemRow(409, "Stream busy"),
    ErrorCode.RECORD_NOT_FOUND: ProblemRow(404, "Record not found"),
    ErrorCode.OFFSET_EXPIRED: ProblemRow(410, "Offset expired"),
    ErrorCode.OFFSET_OUT_OF_RANGE: ProblemRow(416, "Offset out of range"),
    ErrorCode.OFFSET_MISMATCH: ProblemRow(412, "Offset mismatch"),
    ErrorCode.FENCE_MISMATCH: ProblemRow(412, "Fence mismatch"),
    ErrorCode.SHARD_CLOSED: ProblemRow(409, "Shard closed"),
    ErrorCode.PRODUCER_FENCED: ProblemRow(409, "Producer fenced"),
    ErrorCode.SEQUENCE_OUT_OF_ORDER: ProblemRow(409, "Sequence out of order"),
    ErrorCode.DUPLICATE_FORGOTTEN: ProblemRow(409, "Duplicate result expired"),
    ErrorCode.TOO_MANY_PRODUCERS: ProblemRow(429, "Too many producers"),
    ErrorCode.GROUP_NOT_FOUND: ProblemRow(404, "Group not found"),
    ErrorCode.MEMBER_UNKNOWN: ProblemRow(404, "Unknown member"),
    ErrorCode.STALE_GENERATION: ProblemRow(409, "Stale generation"),
    ErrorCode.GROUP_FULL: ProblemRow(409, "Group full"),
    ErrorCode.BOOKMARK_NOT_FOUND: ProblemRow(404, "Bookmark not found"),
    ErrorCode.ARCHIVE_BEHIND: ProblemRow(429, "Archive behind"),
    ErrorCode.ARCHIVE_DAMAGED: ProblemRow(500, "Archive corrupt"),
    ErrorCode.ARCHIVE_OFF: ProblemRow(409, "Archive disabled"),
    ErrorCode.JOB_NOT_FOUND: ProblemRow(404, "Job not found"),
    ErrorCode.SOCKET_NOT_FOUND: ProblemRow(404, "Socket not found"),
    ErrorCode.JOB_REFUSED: ProblemRow(409, "Job rejected"),
    ErrorCode.WEBHOOK_NOT_FOUND: ProblemRow(404, "Webhook not found"),
    ErrorCode.DELIVERY_NOT_FOUND: ProblemRow(404, "Delivery not found"),
    ErrorCode.PAYLOAD_GONE: ProblemRow(410, "Payload expired"),
    ErrorCode.WEBHOOK_BUSY: ProblemRow(429, "Webhook busy"),
    ErrorCode.NAMESPACE_NOT_FOUND: ProblemRow(404, "Namespace not found"),
    ErrorCode.NAMESPACE_IN_USE: ProblemRow(409, "Namespace in use"),
    ErrorCode.QUOTA_EXCEEDED: ProblemRow(429, "Quota exceeded"),
    ErrorCode.QUOTA_TOO_SMALL: ProblemRow(413, "Quota too small"),
    ErrorCode.QUOTA_REACHED: ProblemRow(409, "Quota reached"),
    ErrorCode.BACKLOG_FULL: ProblemRow(429, "Backlog full"),
    ErrorCode.SECRETS_OFF: ProblemRow(409, "Secrets disabled"),
    ErrorCode.SECRET_UNREADABLE: ProblemRow(500, "Secret unreadable"),
    ErrorCode.STORAGE_UNAVAILABLE: ProblemRow(503, "Storage unavailable"),
    ErrorCode.STORAGE_FULL: ProblemRow(503, "Storage full"),
    ErrorCode.STORAGE_BUSY: ProblemRow(503, "Storage busy"),
    ErrorCode.STORAGE_TIMEOUT: ProblemRow(504, "Outcome unknown"),
}
"""Complete: a test fails when a code has no row."""

_TYPES: dict[AnyCode, str] = {
    ErrorCode.QUOTA_EXCEEDED: "https://iana.org/assignments/http-problem-types#quota-exceeded",
    ErrorCode.BACKLOG_FULL: "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
}
"""Problem types with a registered name: draft-ietf-httpapi-ratelimit-headers."""

_CLASSES = error_types()

_SENTENCES: dict[ErrorCode, str] = {
    code: (kind.__doc__ or "").split("\n", 1)[0] for code, kind in _CLASSES.items()
}


def is_retryable(code: AnyCode) -> bool:
    """Return whether the same call may succeed later."""
    return isinstance(code, ErrorCode) and code.retryable


def nothing_happened(code: AnyCode) -> bool:
    """Return whether the call is known to have changed nothing."""
    if isinstance(code, ErrorCode):
        return code.nothing_happened
    return code is not HttpErrorCode.INTERNAL_ERROR


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
    row = TABLE[code]
    members = {
        "type": _TYPES.get(code) or f"{TYPE_PREFIX}{code}",
        "title": row.title,
        "status": row.status,
        "detail": _detail(error),
        "instance": instance,
        "code": code,
        "retryable": is_retryable(code),
        "request_id": request_id,
        **_more(error),
    }
    return Problem(code, row.status, _headers(error, row.status), _encode(members))


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
