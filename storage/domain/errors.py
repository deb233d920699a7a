"""Errors of Millstream: categories, codes, and one exception class for each code.

The first line of a class's docstring is the sentence its caller reads unless a detail is given.
`ErrorCode` is the stable code for programs. Its category determines whether a retry makes sense and how each protocol
answers; a protocol lists only the codes that it answers in another way.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, ClassVar

import msgspec


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


class FieldFault(msgspec.Struct, frozen=True):
    """One fault of an input: where it is (a JSON Pointer), what is wrong, and its code."""

    pointer: str
    detail: str
    code: str = "invalid"


class MillstreamError(Exception):
    """The request was rejected or failed."""

    code: ClassVar[ErrorCode]

    def __init__(self, detail: str | None = None, **facts: Any) -> None:
        self.detail = detail or (type(self).__doc__ or "").split("\n", 1)[0]
        self.facts = facts
        super().__init__(self.detail)


class ValidationFailed(MillstreamError):
    """Request validation failed."""

    code = ErrorCode.VALIDATION_FAILED

    def __init__(self, detail: str | None = None, *faults: FieldFault) -> None:
        super().__init__(detail or (faults[0].detail if faults else None))
        self.faults = faults

    @classmethod
    def at(cls, pointer: str, detail: str, code: str = "invalid") -> "ValidationFailed":
        """Return an error with one fault, at `pointer`."""
        return cls(detail, FieldFault(pointer, detail, code))


class MatchInvalid(ValidationFailed):
    """The match is invalid."""

    code = ErrorCode.MATCH_INVALID


class MessageTooLarge(MillstreamError):
    """The message is larger than its queue or stream accepts."""

    code = ErrorCode.MESSAGE_TOO_LARGE


class BatchTooLarge(MillstreamError):
    """The batch has more items or bytes than one call allows."""

    code = ErrorCode.BATCH_TOO_LARGE


class InvalidCursor(MillstreamError):
    """The cursor was not issued by this service, or belongs to a different list."""

    code = ErrorCode.INVALID_CURSOR


class ReceiptHandleInvalid(MillstreamError):
    """The receipt handle was not issued by this queue."""

    code = ErrorCode.RECEIPT_HANDLE_INVALID


class Unauthenticated(MillstreamError):
    """Missing or invalid credentials."""

    code = ErrorCode.UNAUTHENTICATED


class Forbidden(MillstreamError):
    """The caller is not allowed to do this."""

    code = ErrorCode.FORBIDDEN


class KeyNotFound(MillstreamError):
    """The key does not exist."""

    code = ErrorCode.KEY_NOT_FOUND


class KeyRefused(MillstreamError):
    """The key's state does not allow this."""

    code = ErrorCode.KEY_REFUSED


class QueueNotFound(MillstreamError):
    """The queue does not exist."""

    code = ErrorCode.QUEUE_NOT_FOUND


class StreamNotFound(MillstreamError):
    """The stream does not exist."""

    code = ErrorCode.STREAM_NOT_FOUND


class StreamRecreated(StreamNotFound):
    """The position belongs to a deleted stream; another stream has its name now."""

    code = ErrorCode.STREAM_RECREATED


class StreamReadOnly(MillstreamError):
    """The stream is a view of a queue, or a topic; send to the queue, publish to the topic."""

    code = ErrorCode.STREAM_READ_ONLY


class ShardNotFound(MillstreamError):
    """The shard does not exist in this stream."""

    code = ErrorCode.SHARD_NOT_FOUND


class MessageNotFound(MillstreamError):
    """The message is no longer in the queue."""

    code = ErrorCode.MESSAGE_NOT_FOUND


class PreconditionFailed(MillstreamError):
    """The resource is not in the state that the request requires."""

    code = ErrorCode.PRECONDITION_FAILED


class AlreadyExists(PreconditionFailed):
    """The request may only create, and the object exists. `current` is its definition."""

    def __init__(self, noun: str, name: str, current: object) -> None:
        super().__init__(f"The {noun} '{name}' already exists.")
        self.current = current


class ReceiptHandleExpired(MillstreamError):
    """This receipt handle belongs to an earlier delivery of the message."""

    code = ErrorCode.RECEIPT_HANDLE_EXPIRED


class IdempotencyKeyReused(MillstreamError):
    """The idempotency key was already used with different content."""

    code = ErrorCode.IDEMPOTENCY_KEY_REUSED


class InFlightLimitReached(MillstreamError):
    """The queue's limit of messages in flight is reached; settle some first."""

    code = ErrorCode.IN_FLIGHT_LIMIT_REACHED


class QueueFull(MillstreamError):
    """The queue is full; nothing of this call was added."""

    code = ErrorCode.QUEUE_FULL


class GroupNotParked(MillstreamError):
    """No parked group has this name in this queue."""

    code = ErrorCode.GROUP_NOT_PARKED


class MessageInFlight(MillstreamError):
    """The message is in flight; settle it with its receipt handle."""

    code = ErrorCode.MESSAGE_IN_FLIGHT


class PurgeInProgress(MillstreamError):
    """The queue was purged moments ago."""

    code = ErrorCode.PURGE_IN_PROGRESS


class MoveRefused(MillstreamError):
    """The messages of this queue cannot be moved to that target now."""

    code = ErrorCode.MOVE_REFUSED


class MoveNotFound(MillstreamError):
    """The move does not exist."""

    code = ErrorCode.MOVE_NOT_FOUND


class RecordNotFound(MillstreamError):
    """The stream has no record with this key, or it has expired."""

    code = ErrorCode.RECORD_NOT_FOUND


class StreamBusy(MillstreamError):
    """The stream is being resharded; only one reshard runs at a time."""

    code = ErrorCode.STREAM_BUSY


class OffsetExpired(MillstreamError):
    """The offset is older than the oldest record of the log."""

    code = ErrorCode.OFFSET_EXPIRED


class OffsetOutOfRange(MillstreamError):
    """The offset is past the end of the log."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE


class OffsetMismatch(MillstreamError):
    """The next offset of the shard is not the expected one."""

    code = ErrorCode.OFFSET_MISMATCH


class FenceMismatch(MillstreamError):
    """The shard is fenced by another writer's token, or the queue by a mirror.

    `token`: the present one, where the store reported it.
    """

    code = ErrorCode.FENCE_MISMATCH

    def __init__(self, detail: str | None = None, *, token: str = "") -> None:
        super().__init__(detail)
        self.token = token


class ShardClosed(MillstreamError):
    """The shard is closed; append to its children."""

    code = ErrorCode.SHARD_CLOSED


class ProducerFenced(MillstreamError):
    """A newer epoch of this producer has written to the shard."""

    code = ErrorCode.PRODUCER_FENCED


class SequenceOutOfOrder(MillstreamError):
    """The producer's sequence does not follow its last one."""

    code = ErrorCode.SEQUENCE_OUT_OF_ORDER


class DuplicateForgotten(MillstreamError):
    """The batch was already appended, too long ago for its offsets to be known."""

    code = ErrorCode.DUPLICATE_FORGOTTEN


class TooManyProducers(MillstreamError):
    """Too many idempotent writers, such as replays, send to this target at the same time."""

    code = ErrorCode.TOO_MANY_PRODUCERS


class GroupNotFound(MillstreamError):
    """The consumer group does not exist."""

    code = ErrorCode.GROUP_NOT_FOUND


class MemberUnknown(MillstreamError):
    """The member does not exist in the group, or was removed; join again."""

    code = ErrorCode.MEMBER_UNKNOWN


class StaleGeneration(MillstreamError):
    """The shard was reassigned or reset since this generation; nothing was committed."""

    code = ErrorCode.STALE_GENERATION


class GroupFull(MillstreamError):
    """The group has reached its limit of members or bookmarks."""

    code = ErrorCode.GROUP_FULL


class BookmarkNotFound(MillstreamError):
    """The bookmark does not exist in this group."""

    code = ErrorCode.BOOKMARK_NOT_FOUND


class ArchiveBehind(MillstreamError):
    """The shard has reached its limit of unarchived data; nothing happened."""

    code = ErrorCode.ARCHIVE_BEHIND


class ArchiveDamaged(MillstreamError):
    """An archive file is missing or corrupt."""

    code = ErrorCode.ARCHIVE_DAMAGED


class ArchiveOff(MillstreamError):
    """This deployment has no archive."""

    code = ErrorCode.ARCHIVE_OFF


class JobNotFound(MillstreamError):
    """The job does not exist."""

    code = ErrorCode.JOB_NOT_FOUND


class SocketNotFound(MillstreamError):
    """The WebSocket connection does not exist."""

    code = ErrorCode.SOCKET_NOT_FOUND


class JobRefused(MillstreamError):
    """The job's state does not allow this."""

    code = ErrorCode.JOB_REFUSED


class WebhookNotFound(MillstreamError):
    """The webhook does not exist."""

    code = ErrorCode.WEBHOOK_NOT_FOUND


class DeliveryNotFound(MillstreamError):
    """The delivery is not in the webhook's log."""

    code = ErrorCode.DELIVERY_NOT_FOUND


class PayloadGone(MillstreamError):
    """The payload is no longer in its queue or stream and was too large for the log."""

    code = ErrorCode.PAYLOAD_GONE


class WebhookBusy(MillstreamError):
    """Too many concurrent manual sends in this process."""

    code = ErrorCode.WEBHOOK_BUSY


class TopicNotFound(MillstreamError):
    """No topic has this name."""

    code = ErrorCode.TOPIC_NOT_FOUND


class TopicReadOnly(MillstreamError):
    """The source of the topic is a stream or a queue; append or send to that instead."""

    code = ErrorCode.TOPIC_READ_ONLY


class RouteNotFound(MillstreamError):
    """The topic has no route of this name."""

    code = ErrorCode.ROUTE_NOT_FOUND


class TooManyRoutes(MillstreamError):
    """The topic has the maximum number of routes, or reads its history for too many targets."""

    code = ErrorCode.ROUTES_LIMIT


class RouteCycle(MillstreamError):
    """The route would bring messages back to its own topic."""

    code = ErrorCode.ROUTE_CYCLE


class RouteOwned(MillstreamError):
    """The queue or webhook belongs to a route, with which it is created, changed and deleted."""

    code = ErrorCode.ROUTE_OWNED


class Unroutable(MillstreamError):
    """No route takes the message, and the topic refuses such messages."""

    code = ErrorCode.UNROUTABLE


class FanOutTooLarge(MillstreamError):
    """The size of the message times the number of routes that take it exceeds the limit."""

    code = ErrorCode.FAN_OUT_TOO_LARGE


class RequestNotFound(MillstreamError):
    """The request was not made in this namespace, or its replies have expired."""

    code = ErrorCode.REQUEST_NOT_FOUND


class ReplyTooLate(MillstreamError):
    """The request's deadline has passed."""

    code = ErrorCode.REPLY_TOO_LATE


class ReplyTaken(MillstreamError):
    """The request already has as many replies as it accepts."""

    code = ErrorCode.REPLY_TAKEN


class MirrorNotFound(MillstreamError):
    """The mirror does not exist."""

    code = ErrorCode.MIRROR_NOT_FOUND


class SourceNotFound(MillstreamError):
    """The source does not exist, or the URL's token is not valid."""

    code = ErrorCode.SOURCE_NOT_FOUND


class SourcePaused(MillstreamError):
    """The source is paused; send the event again later."""

    code = ErrorCode.SOURCE_PAUSED


class SignatureRejected(MillstreamError):
    """The request is not signed by the provider, or is too old."""

    code = ErrorCode.SIGNATURE_REJECTED


class OutboxFull(MillstreamError):
    """Too many events of this source wait for their target."""

    code = ErrorCode.OUTBOX_FULL


class NamespaceNotFound(MillstreamError):
    """The namespace does not exist."""

    code = ErrorCode.NAMESPACE_NOT_FOUND


class NamespaceInUse(MillstreamError):
    """The namespace is not empty, or is the default namespace."""

    code = ErrorCode.NAMESPACE_IN_USE


class QuotaExceeded(MillstreamError):
    """The call exceeds a quota now; nothing happened.

    Facts: `policy`, `limit`, and `retry_after_seconds`, whole. `statuses`: the caller's quota statuses, for the
    protocols that report them.
    """

    code = ErrorCode.QUOTA_EXCEEDED
    statuses: Sequence[Any] = ()

    def with_statuses(self, statuses: Sequence[Any]) -> "QuotaExceeded":
        """Return the error with the quotas' statuses attached."""
        self.statuses = statuses
        return self


class QuotaTooSmall(MillstreamError):
    """The call exceeds the burst size of a quota and can never succeed."""

    code = ErrorCode.QUOTA_TOO_SMALL


class QuotaReached(MillstreamError):
    """The namespace has reached a quota."""

    code = ErrorCode.QUOTA_REACHED


class BacklogFull(MillstreamError):
    """The hot store is nearly full; writes are rejected, reads and settlements continue."""

    code = ErrorCode.BACKLOG_FULL


class SecretsOff(MillstreamError):
    """The deployment has no secret_keys and cannot store secrets."""

    code = ErrorCode.SECRETS_OFF


class SecretUnreadable(MillstreamError):
    """A stored secret was encrypted with a key that is not in the deployment's secret_keys."""

    code = ErrorCode.SECRET_UNREADABLE


class StorageUnavailable(MillstreamError):
    """The store is unreachable or rejects writes; nothing happened."""

    code = ErrorCode.STORAGE_UNAVAILABLE


class StorageFull(MillstreamError):
    """The store is out of memory; nothing happened."""

    code = ErrorCode.STORAGE_FULL


class StorageBusy(MillstreamError):
    """Too many calls are waiting for the store; nothing happened."""

    code = ErrorCode.STORAGE_BUSY


class NotEnoughReplicas(StorageUnavailable):
    """Fewer stores than `min_insync_replicas` are in sync; nothing happened."""

    code = ErrorCode.NOT_ENOUGH_REPLICAS


class ReplicaSetRefused(MillstreamError):
    """The replica set cannot be changed in this way now; nothing happened."""

    code = ErrorCode.REPLICA_SET_REFUSED


class OutcomeUnknown(MillstreamError):
    """The store timed out; the call may have taken effect."""

    code = ErrorCode.STORAGE_TIMEOUT


def error_types() -> dict[ErrorCode, type[MillstreamError]]:
    """Return the most general class of each code."""
    classes: dict[ErrorCode, type[MillstreamError]] = {}
    left = MillstreamError.__subclasses__()
    while left:
        classes.update({kind.code: kind for kind in left if kind.code not in classes})
        left = [child for kind in left for child in kind.__subclasses__()]
    return classes
