"""Queue: its specification, stored definition and counts."""

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from storage.domain import limits
from storage.domain.definitions import check_range, check_seconds, tag_faults
from storage.domain.errors import FieldFault, MessageTooLarge, ValidationFailed
from storage.domain.names import LogId, QueueName, TopicName, check_name
from storage.domain.queues.backoff import Backoff
from storage.domain.queues.message import NewMessage, check_header_names, offset_of
from storage.domain.queues.policies import (
    GroupWeight,
    Overflow,
    PoisonPolicy,
    poison_faults,
    weight_faults,
)


class QueueType(StrEnum):
    """Delivery order of a queue.

    standard: any order, no limit. fifo: in order within a group, one message of a group at a time.
    """

    STANDARD = "standard"
    FIFO = "fifo"


class DedupScope(StrEnum):
    """Scope in which a deduplication id is unique for its window: the queue, or each group."""

    QUEUE = "queue"
    GROUP = "group"


class DeadLetterTarget(msgspec.Struct, frozen=True):
    """Another queue, or a topic, for messages received `receives_max` times in vain.

    A message moves at the receive that would exceed the maximum (SQS RedrivePolicy); its receive count
    continues in a queue. Exactly one of `queue` and `topic` is given.
    """

    queue: str | None
    receives_max: int
    topic: str | None = None

    def resolve(self, namespace: str) -> "QueueName | TopicName":
        """Return the name of the queue or topic of a specification that was checked."""
        if self.topic is not None:
            return TopicName(self.topic, namespace)
        return QueueName(self.queue or "", namespace)


class RedrivePermission(StrEnum):
    """Rule for which queues may name a queue as dead-letter target (SQS RedriveAllowPolicy)."""

    ALLOW_ALL = "allow_all"
    DENY_ALL = "deny_all"
    BY_QUEUE = "by_queue"


class RedriveAllow(msgspec.Struct, frozen=True):
    """Permission to send dead letters here.

    `sources`, names of queues, applies to `by_queue` only.
    """

    permission: RedrivePermission = RedrivePermission.ALLOW_ALL
    sources: tuple[str, ...] = ()

    def allows(self, source: str) -> bool:
        """Return whether the queue `source` may name the queue that has this rule."""
        if self.permission is RedrivePermission.BY_QUEUE:
            return source in self.sources
        return self.permission is RedrivePermission.ALLOW_ALL


class QueueSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Configuration of a queue as requested by its owner. Times in milliseconds.

    `receive_wait_ms` is the wait of a receive that does not specify one. `attempts_max` counts failures
    and expired leases, and moves the message to the queue's own dead letters; `dead_letters` counts
    receives. `partitions`: logs that share the queue's messages (`storage.domain.queues.partitions`); 0 in a request: as many as it
    has, 1 for a new queue. Without a `backoff` a failed message is ready immediately. A `paused` queue accepts messages
    and delivers none. `messages_max` and `bytes_max` cap the messages that are ready, delayed, in flight
    or parked; messages that come from another queue are accepted regardless. With a `stream_view`
    messages sent from then on can be read as a stream of the queue's name for the duration of its
    retention, whatever becomes of the messages; with `archive` the view is archived as streams are. With
    `history` each change of a message's state is kept for a while. A queue without sends, receives and waiting receivers for
    `expires_after_idle_ms` is deleted with its messages. `annotations` are kept for an API
    endpoint and have no meaning here.
    """

    type: QueueType = QueueType.STANDARD
    partitions: int = 1
    visibility_timeout_ms: int = limits.VISIBILITY_TIMEOUT_MS_DEFAULT
    delay_ms: int = 0
    ttl_ms: int = 0
    retention_ms: int = limits.QUEUE_RETENTION_MS_DEFAULT
    dead_letter_retention_ms: int = limits.DEAD_LETTER_RETENTION_MS_DEFAULT
    message_bytes_max: int = limits.MESSAGE_BYTES_MAX
    attempts_max: int | None = limits.ATTEMPTS_MAX_DEFAULT
    receive_wait_ms: int = 0
    in_flight_max: int = limits.IN_FLIGHT_MAX_DEFAULT
    deduplicate_by_content: bool = False
    dedup_scope: DedupScope = DedupScope.QUEUE
    dead_letters: DeadLetterTarget | None = None
    redrive_allow: RedriveAllow = RedriveAllow()
    backoff: Backoff | None = None
    paused: bool = False
    messages_max: int | None = None
    bytes_max: int | None = None
    overflow: Overflow = Overflow.REJECT
    on_poison: PoisonPolicy = PoisonPolicy.SKIP
    group_weights: tuple[GroupWeight, ...] = ()
    stream_view: bool = False
    archive: bool = False
    history: bool = False
    expires_after_idle_ms: int | None = None
    annotations: dict[str, str] = {}
    tags: dict[str, str] = {}

    def check(self) -> None:
        """Raise ValidationFailed with every fault of the specification."""
        faults = [
            *check_seconds(
                "/visibility_timeout_seconds",
                self.visibility_timeout_ms,
                0,
                limits.VISIBILITY_TIMEOUT_MS_MAX,
            ),
            *check_seconds("/delay_seconds", self.delay_ms, 0, limits.DELAY_MS_MAX),
            *check_seconds("/ttl_seconds", self.ttl_ms, 0, limits.TTL_MS_MAX),
            *check_seconds(
                "/retention_seconds",
                self.retention_ms,
                limits.QUEUE_RETENTION_MS_MIN,
                limits.QUEUE_RETENTION_MS_MAX,
            ),
            *check_seconds(
                "/dead_letter_retention_seconds",
                self.dead_letter_retention_ms,
                limits.QUEUE_RETENTION_MS_MIN,
                limits.QUEUE_RETENTION_MS_MAX,
            ),
            *check_range("/message_bytes_max", self.message_bytes_max, 1, limits.MESSAGE_BYTES_MAX),
            *check_range("/attempts_max", self.attempts_max or 1, 1, limits.ATTEMPTS_MAX_MAX),
            *check_seconds("/receive_wait_seconds", self.receive_wait_ms, 0, limits.WAIT_MS_MAX),
            *check_range("/partitions", self.partitions or 1, 1, limits.QUEUE_PARTITIONS_MAX),
            *check_range("/in_flight_max", self.in_flight_max, 1, limits.IN_FLIGHT_MAX_MAX),
            *_target_faults(self.dead_letters),
            *(self.backoff.faults() if self.backoff else ()),
            *check_range("/messages_max", self.messages_max or 1, 1, limits.QUEUE_MESSAGES_MAX),
            *check_range("/bytes_max", self.bytes_max or 1, 1, limits.QUEUE_BYTES_MAX),
            *weight_faults(self.group_weights, fifo=self.type is QueueType.FIFO),
            *poison_faults(
                self.on_poison,
                fifo=self.type is QueueType.FIFO,
                has_dead_letter_queue=self.dead_letters is not None,
            ),
            *tag_faults(self.tags),
        ]
        if self.archive and not self.stream_view:
            faults.append(
                FieldFault("/archive", "Archiving requires a stream view", "not_supported")
            )
        faults += _expiry_faults(self)
        if (
            self.partitions > 1
            and self.type is QueueType.FIFO
            and self.dedup_scope is not DedupScope.GROUP
        ):
            detail = "A FIFO queue with partitions requires the deduplication scope 'group'"
            faults.append(FieldFault("/dedup_scope", detail, "required"))
        if self.type is QueueType.STANDARD and (
            self.deduplicate_by_content or self.dedup_scope is not DedupScope.QUEUE
        ):
            faults.append(
                FieldFault("/dedup_scope", "Deduplication requires a FIFO queue", "not_supported")
            )
        if faults:
            raise ValidationFailed("The queue's configuration is invalid.", *faults)


def _expiry_faults(spec: QueueSpec) -> list[FieldFault]:
    pointer, idle_ms = "/expires_after_idle_seconds", spec.expires_after_idle_ms
    if idle_ms is None:
        return []
    if spec.partitions > 1:
        return [FieldFault(pointer, "A queue with partitions does not expire", "not_supported")]
    return check_seconds(pointer, idle_ms, limits.QUEUE_IDLE_MS_MIN, limits.QUEUE_IDLE_MS_MAX)


class PartitionSet(msgspec.Struct, frozen=True, array_like=True):
    """Number of partitions that take messages since a time; each change makes a generation."""

    generation: int
    count: int
    since_ms: int


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """A queue's stored definition; `version` counts its configurations and makes its ETag.

    `partitions`: those of a queue that has or had several, each as a queue of its own with its share of the caps; none for a
    queue that is one log. The first `spec.partitions` take messages, the others are closed: they keep what they have. `log_id`
    is the log of partition 0, and `partition` the number of one that is a partition. `partition_sets`: the present number and
    former ones, none if it was never changed.
    """

    name: QueueName
    log_id: LogId
    spec: QueueSpec
    version: int
    created_at_ms: int
    changed_at_ms: int
    partitions: tuple["Queue", ...] = ()
    partition: int = 0
    partition_sets: tuple[PartitionSet, ...] = ()

    @property
    def logs(self) -> tuple["Queue", ...]:
        """The queue's partitions, or the queue itself if it is one log."""
        return self.partitions or (self,)

    @property
    def open_partitions(self) -> tuple["Queue", ...]:
        """The partitions that take messages."""
        return self.partitions[: self.spec.partitions]

    @property
    def generation(self) -> int:
        """Number of changes of the number of partitions."""
        return self.partition_sets[-1].generation if self.partition_sets else 0

    @property
    def first_offset(self) -> int:
        """The queue's offset of the first offset of this partition's log."""
        return self.partition * limits.PARTITION_OFFSETS

    def locate(self, offset: int) -> tuple["Queue", int] | None:
        """Return the partition that has an offset of the queue, and the offset in its log."""
        if not self.partitions:
            return self, offset
        number, own = divmod(offset, limits.PARTITION_OFFSETS)
        return (self.partitions[number], own) if number < len(self.partitions) else None

    def own_offset(self, offset: int | None) -> int | None:
        """Return the offset in this log of an offset of the queue, None if it is in another one."""
        own = -1 if offset is None else offset - self.first_offset
        return own if 0 <= own < limits.PARTITION_OFFSETS else None

    def offset_in(self, reference: str) -> int | None:
        """Resolve a reference to an offset of the queue: an offset, or the id of a message.

        A message that came from another queue keeps its id, and is found by its offset only. Anything else resolves to None.
        """
        if _is_offset(reference):
            offset = int(reference)
            return None if self.locate(offset) is None else offset
        for log in self.logs:
            own = offset_of(log.log_id, reference)
            if own is not None:
                return log.first_offset + own
        return None

    def check_size(self, size_bytes: int) -> None:
        """Raise ValidationFailed or MessageTooLarge unless the queue accepts that size.

        The size includes headers.
        """
        if size_bytes < 1:
            raise ValidationFailed.at("/body", "A message must have at least one byte", "too_short")
        if size_bytes > self.spec.message_bytes_max:
            raise MessageTooLarge(
                f"A message of this queue can have at most {self.spec.message_bytes_max} bytes, including headers.",
                message_bytes_max=self.spec.message_bytes_max,
            )

    def check_message(self, message: NewMessage) -> None:
        """Raise ValidationFailed or MessageTooLarge unless the queue accepts the message."""
        size_bytes = message.size_bytes
        is_fitting = 0 < size_bytes <= self.spec.message_bytes_max
        if not is_fitting and (size_bytes or not message.is_copy):
            self.check_size(size_bytes)
        if message.headers:
            check_header_names(message.headers)
        if self.spec.type is QueueType.FIFO:
            _check_fifo_message(message)
        elif message.dedup_id:
            raise ValidationFailed.at(
                "/dedup_id", "A deduplication id requires a FIFO queue", "not_supported"
            )
        if message.delay_ms is not None and not 0 <= message.delay_ms <= limits.DELAY_MS_MAX:
            raise ValidationFailed.at(
                "/delay_seconds", "The delay must be 0 to 10 years", "out_of_range"
            )
        if not 0 <= message.ttl_ms <= limits.TTL_MS_MAX:
            raise ValidationFailed.at("/ttl_seconds", "0 to 10 years", "out_of_range")
        if message.priority:
            _check_priority(message)
        if not message.group and not message.dedup_id:
            return
        for pointer, word in (("/group", message.group), ("/dedup_id", message.dedup_id)):
            if len(word) > limits.GROUP_CHARACTERS_MAX:
                raise ValidationFailed.at(
                    pointer, f"At most {limits.GROUP_CHARACTERS_MAX} characters", "too_long"
                )


def _is_offset(reference: str) -> bool:
    is_number = reference.isascii() and reference.isdigit()
    return is_number and len(reference) <= len(str(limits.OFFSET_MAX))


def _check_priority(message: NewMessage) -> None:
    if not 0 <= message.priority <= limits.PRIORITY_MAX:
        raise ValidationFailed.at(
            "/priority", f"The priority must be 0 to {limits.PRIORITY_MAX}", "out_of_range"
        )
    if message.group:
        raise ValidationFailed.at(
            "/priority", "A message with a group cannot have a priority", "not_supported"
        )


def _check_fifo_message(message: NewMessage) -> None:
    if not message.group:
        raise ValidationFailed.at(
            "/group", "A message of a FIFO queue requires a group", "required"
        )
    if message.delay_ms:
        raise ValidationFailed.at(
            "/delay_seconds", "FIFO queues do not support a delay per message", "not_supported"
        )


class QueueStats(msgspec.Struct, frozen=True, kw_only=True):
    """Exact current counts (Q10), and the arrival of the oldest ready message.

    sent + moved_in = ready + delayed + in_flight + parked + dead_lettered + moving
                      + acknowledged + expired + purged + dropped + moved_out

    `bytes_held` are those of ready, delayed, in flight and parked messages as the log keeps them. A `fenced` queue takes and
    delivers nothing: it is a copy, or was moved.
    """

    ready: int
    delayed: int
    in_flight: int
    dead_lettered: int
    sent: int
    deduplicated: int
    acknowledged: int
    expired: int
    purged: int
    receive_count: int
    bytes_sent: int
    moving: int
    moved_in: int
    moved_out: int
    parked: int
    dropped: int
    bytes_held: int
    oldest_ready_at_ms: int | None
    fenced: bool = False


def total(partitions: Sequence[QueueStats]) -> QueueStats:
    """Return the counts of a queue from those of its partitions."""
    if len(partitions) == 1:
        return partitions[0]
    columns = {
        field: [getattr(counts, field) for counts in partitions]
        for field in QueueStats.__struct_fields__
    }
    oldest = [ms for ms in columns.pop("oldest_ready_at_ms") if ms is not None]
    fenced = any(columns.pop("fenced"))
    sums = {field: sum(counts) for field, counts in columns.items()}
    return QueueStats(**sums, oldest_ready_at_ms=min(oldest, default=None), fenced=fenced)


def _target_faults(target: DeadLetterTarget | None) -> list[FieldFault]:
    if target is None:
        return []
    if (target.queue is None) is (target.topic is None):
        detail = "Specify exactly one of queue and topic"
        return [FieldFault("/dead_letters", detail, "exclusive")]
    kind = "queue" if target.topic is None else "topic"
    try:
        check_name(target.topic or target.queue or "")
    except ValidationFailed as error:
        return [FieldFault(f"/dead_letters/{kind}", str(error), "invalid_name")]
    return check_range(
        "/dead_letters/receives_max", target.receives_max, 1, limits.RECEIVES_MAX_MAX
    )
