"""Errors of Millstream: categories, codes, and one exception class for each code.

The first line of a class's docstring is the sentence its caller reads unless a detail is given.
`ErrorCode` is the stable code for programs. Its category determines whether a retry makes sense and how each protocol
answers; a protocol lists only the codes that it answers in another way.
"""

from storage.domain.errors.access import (
    Forbidden,
    KeyNotFound,
    KeyRefused,
    SecretsOff,
    SecretUnreadable,
    Unauthenticated,
)
from storage.domain.errors.calls import (
    AlreadyExists,
    BatchTooLarge,
    IdempotencyKeyReused,
    InvalidCursor,
    PreconditionFailed,
    SocketNotFound,
)
from storage.domain.errors.codes import ErrorCategory, ErrorCode
from storage.domain.errors.error import FieldFault, MillstreamError, ValidationFailed, error_types
from storage.domain.errors.groups import (
    BookmarkNotFound,
    GroupFull,
    GroupNotFound,
    MemberUnknown,
    StaleGeneration,
)
from storage.domain.errors.integrations import (
    DeliveryNotFound,
    MirrorNotFound,
    OutboxFull,
    PayloadGone,
    SignatureRejected,
    SourceNotFound,
    SourcePaused,
    WebhookBusy,
    WebhookNotFound,
)
from storage.domain.errors.jobs import (
    ArchiveBehind,
    ArchiveDamaged,
    ArchiveOff,
    JobNotFound,
    JobRefused,
    QueryFailed,
    ViewBehind,
    ViewHistoryExpired,
    ViewNotFound,
    ViewPlanPending,
    ViewRevisionNotFound,
    ViewSourcesPending,
    ViewSourcesUntracked,
)
from storage.domain.errors.queues import (
    GroupNotParked,
    InFlightLimitReached,
    MessageInFlight,
    MessageNotFound,
    MessageTooLarge,
    MoveNotFound,
    MoveRefused,
    PurgeInProgress,
    QueueFull,
    QueueNotFound,
    ReceiptHandleExpired,
    ReceiptHandleInvalid,
)
from storage.domain.errors.quotas import (
    NamespaceInUse,
    NamespaceNotFound,
    QuotaExceeded,
    QuotaReached,
    QuotaTooSmall,
)
from storage.domain.errors.stores import (
    BacklogFull,
    NotEnoughReplicas,
    OutcomeUnknown,
    ReplicaSetRefused,
    StorageBusy,
    StorageFull,
    StorageUnavailable,
)
from storage.domain.errors.streams import (
    DuplicateForgotten,
    FenceMismatch,
    OffsetExpired,
    OffsetMismatch,
    OffsetOutOfRange,
    ProducerFenced,
    RecordNotFound,
    SequenceOutOfOrder,
    ShardClosed,
    ShardNotFound,
    StreamBusy,
    StreamNotFound,
    StreamReadOnly,
    StreamRecreated,
    TooManyProducers,
)
from storage.domain.errors.topics import (
    FanOutTooLarge,
    MatchInvalid,
    ReplyTaken,
    ReplyTooLate,
    RequestNotFound,
    RouteCycle,
    RouteNotFound,
    RouteOwned,
    TooManyRoutes,
    TopicNotFound,
    TopicReadOnly,
    Unroutable,
)
