"""Stable error codes, and the categories that decide how each is answered."""

from enum import StrEnum


class ErrorCategory(StrEnum):
    """Kinds of errors, by what the caller can do; each protocol has a default answer for each."""

    INVALID = "invalid"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    CONFLICT = "conflict"
    GONE = "gone"
    TOO_LARGE = "too_large"
    THROTTLED = "throttled"
    UNAVAILABLE = "unavailable"
    UNKNOWN_OUTCOME = "unknown_outcome"
    INTERNAL = "internal"

    @property
    def retryable(self) -> bool:
        """Return whether the same call may succeed later, unchanged."""
        return self in _RETRYABLE

    @property
    def nothing_happened(self) -> bool:
        """Return whether the call changed nothing for certain; false only for an unknown outcome."""
        return self is not ErrorCategory.UNKNOWN_OUTCOME


_RETRYABLE = frozenset(
    {ErrorCategory.THROTTLED, ErrorCategory.UNAVAILABLE, ErrorCategory.UNKNOWN_OUTCOME}
)


class ErrorCode(StrEnum):
    """Stable error codes, which know whether a retry makes sense and whether nothing happened."""

    _value_: str
    category: ErrorCategory

    def __new__(cls, value: str, category: ErrorCategory) -> "ErrorCode":
        code = str.__new__(cls, value)
        code._value_ = value
        code.category = category
        return code

    VALIDATION_FAILED = "validation_failed", ErrorCategory.INVALID
    MATCH_INVALID = "match_invalid", ErrorCategory.INVALID
    MESSAGE_TOO_LARGE = "message_too_large", ErrorCategory.TOO_LARGE
    BATCH_TOO_LARGE = "batch_too_large", ErrorCategory.TOO_LARGE
    INVALID_CURSOR = "invalid_cursor", ErrorCategory.INVALID
    RECEIPT_HANDLE_INVALID = "receipt_handle_invalid", ErrorCategory.INVALID
    UNAUTHENTICATED = "unauthenticated", ErrorCategory.UNAUTHENTICATED
    FORBIDDEN = "forbidden", ErrorCategory.FORBIDDEN
    KEY_NOT_FOUND = "key_not_found", ErrorCategory.NOT_FOUND
    KEY_REFUSED = "key_refused", ErrorCategory.CONFLICT
    QUEUE_NOT_FOUND = "queue_not_found", ErrorCategory.NOT_FOUND
    STREAM_NOT_FOUND = "stream_not_found", ErrorCategory.NOT_FOUND
    STREAM_RECREATED = "stream_recreated", ErrorCategory.GONE
    STREAM_READ_ONLY = "stream_read_only", ErrorCategory.CONFLICT
    TOPIC_READ_ONLY = "topic_read_only", ErrorCategory.CONFLICT
    SHARD_NOT_FOUND = "shard_not_found", ErrorCategory.NOT_FOUND
    MESSAGE_NOT_FOUND = "message_not_found", ErrorCategory.NOT_FOUND
    PRECONDITION_FAILED = "precondition_failed", ErrorCategory.CONFLICT
    RECEIPT_HANDLE_EXPIRED = "receipt_handle_expired", ErrorCategory.GONE
    IDEMPOTENCY_KEY_REUSED = "idempotency_key_reused", ErrorCategory.INVALID
    IN_FLIGHT_LIMIT_REACHED = "in_flight_limit_reached", ErrorCategory.THROTTLED
    MESSAGE_IN_FLIGHT = "message_in_flight", ErrorCategory.CONFLICT
    QUEUE_FULL = "queue_full", ErrorCategory.THROTTLED
    GROUP_NOT_PARKED = "group_not_parked", ErrorCategory.NOT_FOUND
    PURGE_IN_PROGRESS = "purge_in_progress", ErrorCategory.THROTTLED
    MOVE_REFUSED = "move_refused", ErrorCategory.CONFLICT
    MOVE_NOT_FOUND = "move_not_found", ErrorCategory.NOT_FOUND
    STREAM_BUSY = "stream_busy", ErrorCategory.CONFLICT
    RECORD_NOT_FOUND = "record_not_found", ErrorCategory.NOT_FOUND
    OFFSET_EXPIRED = "offset_expired", ErrorCategory.GONE
    OFFSET_OUT_OF_RANGE = "offset_out_of_range", ErrorCategory.INVALID
    OFFSET_MISMATCH = "offset_mismatch", ErrorCategory.CONFLICT
    FENCE_MISMATCH = "fence_mismatch", ErrorCategory.CONFLICT
    SHARD_CLOSED = "shard_closed", ErrorCategory.CONFLICT
    PRODUCER_FENCED = "producer_fenced", ErrorCategory.CONFLICT
    SEQUENCE_OUT_OF_ORDER = "sequence_out_of_order", ErrorCategory.CONFLICT
    DUPLICATE_FORGOTTEN = "duplicate_forgotten", ErrorCategory.CONFLICT
    TOO_MANY_PRODUCERS = "too_many_producers", ErrorCategory.THROTTLED
    GROUP_NOT_FOUND = "group_not_found", ErrorCategory.NOT_FOUND
    MEMBER_UNKNOWN = "member_unknown", ErrorCategory.NOT_FOUND
    STALE_GENERATION = "stale_generation", ErrorCategory.CONFLICT
    GROUP_FULL = "group_full", ErrorCategory.CONFLICT
    BOOKMARK_NOT_FOUND = "bookmark_not_found", ErrorCategory.NOT_FOUND
    ARCHIVE_BEHIND = "archive_behind", ErrorCategory.THROTTLED
    ARCHIVE_DAMAGED = "archive_damaged", ErrorCategory.INTERNAL
    ARCHIVE_OFF = "archive_off", ErrorCategory.CONFLICT
    JOB_NOT_FOUND = "job_not_found", ErrorCategory.NOT_FOUND
    SOCKET_NOT_FOUND = "socket_not_found", ErrorCategory.NOT_FOUND
    JOB_REFUSED = "job_refused", ErrorCategory.CONFLICT
    VIEW_NOT_FOUND = "view_not_found", ErrorCategory.NOT_FOUND
    VIEW_REVISION_NOT_FOUND = "view_revision_not_found", ErrorCategory.NOT_FOUND
    VIEW_PLAN_PENDING = "view_plan_pending", ErrorCategory.UNAVAILABLE
    VIEW_SOURCES_PENDING = "view_sources_pending", ErrorCategory.UNAVAILABLE
    VIEW_SOURCES_UNTRACKED = "view_sources_untracked", ErrorCategory.CONFLICT
    VIEW_HISTORY_EXPIRED = "view_history_expired", ErrorCategory.GONE
    VIEW_BEHIND = "view_behind", ErrorCategory.UNAVAILABLE
    QUERY_FAILED = "query_failed", ErrorCategory.INVALID
    WEBHOOK_NOT_FOUND = "webhook_not_found", ErrorCategory.NOT_FOUND
    DELIVERY_NOT_FOUND = "delivery_not_found", ErrorCategory.NOT_FOUND
    PAYLOAD_GONE = "payload_gone", ErrorCategory.GONE
    WEBHOOK_BUSY = "webhook_busy", ErrorCategory.THROTTLED
    SOURCE_NOT_FOUND = "source_not_found", ErrorCategory.NOT_FOUND
    SOURCE_PAUSED = "source_paused", ErrorCategory.UNAVAILABLE
    SIGNATURE_REJECTED = "signature_rejected", ErrorCategory.UNAUTHENTICATED
    OUTBOX_FULL = "outbox_full", ErrorCategory.THROTTLED
    TOPIC_NOT_FOUND = "topic_not_found", ErrorCategory.NOT_FOUND
    ROUTE_NOT_FOUND = "route_not_found", ErrorCategory.NOT_FOUND
    ROUTES_LIMIT = "routes_limit", ErrorCategory.CONFLICT
    ROUTE_CYCLE = "route_cycle", ErrorCategory.INVALID
    ROUTE_OWNED = "route_owned", ErrorCategory.CONFLICT
    UNROUTABLE = "unroutable", ErrorCategory.INVALID
    FAN_OUT_TOO_LARGE = "fan_out_too_large", ErrorCategory.TOO_LARGE
    REQUEST_NOT_FOUND = "request_not_found", ErrorCategory.NOT_FOUND
    REPLY_TOO_LATE = "reply_too_late", ErrorCategory.CONFLICT
    REPLY_TAKEN = "reply_taken", ErrorCategory.CONFLICT
    MIRROR_NOT_FOUND = "mirror_not_found", ErrorCategory.NOT_FOUND
    NAMESPACE_NOT_FOUND = "namespace_not_found", ErrorCategory.NOT_FOUND
    NAMESPACE_IN_USE = "namespace_in_use", ErrorCategory.CONFLICT
    QUOTA_EXCEEDED = "quota_exceeded", ErrorCategory.THROTTLED
    QUOTA_TOO_SMALL = "quota_too_small", ErrorCategory.TOO_LARGE
    QUOTA_REACHED = "quota_reached", ErrorCategory.CONFLICT
    BACKLOG_FULL = "backlog_full", ErrorCategory.THROTTLED
    SECRETS_OFF = "secrets_off", ErrorCategory.CONFLICT
    SECRET_UNREADABLE = "secret_unreadable", ErrorCategory.INTERNAL
    STORAGE_UNAVAILABLE = "storage_unavailable", ErrorCategory.UNAVAILABLE
    STORAGE_FULL = "storage_full", ErrorCategory.UNAVAILABLE
    STORAGE_BUSY = "storage_busy", ErrorCategory.UNAVAILABLE
    NOT_ENOUGH_REPLICAS = "not_enough_replicas", ErrorCategory.UNAVAILABLE
    REPLICA_SET_REFUSED = "replica_set_refused", ErrorCategory.CONFLICT
    STORAGE_TIMEOUT = "storage_timeout", ErrorCategory.UNKNOWN_OUTCOME

    @property
    def retryable(self) -> bool:
        """Return whether the same call may succeed later, unchanged."""
        return self.category.retryable

    @property
    def nothing_happened(self) -> bool:
        """Return whether the call changed nothing for certain; false only for an unknown outcome."""
        return self.category.nothing_happened
