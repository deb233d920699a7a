"""What a queue is: its specification, its stored definition and its counts."""

from enum import StrEnum

import msgspec

from storage.domain import limits
from storage.domain.errors import FieldFault, MessageTooLarge, ValidationFailed
from storage.domain.messages import NewMessage, check_header_names
from storage.domain.names import LogId, QueueName


class QueueType(StrEnum):
    """standard: any order, no limit. fifo: in order within a group, one group member at a time."""

    STANDARD = "standard"
    FIFO = "fifo"


class QueueSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What its owner asked of a queue. Times in milliseconds."""

    type: QueueType = QueueType.STANDARD
    visibility_timeout_ms: int = limits.VISIBILITY_TIMEOUT_MS_DEFAULT
    delay_ms: int = 0
    retention_ms: int = limits.QUEUE_RETENTION_MS_DEFAULT
    dead_letter_retention_ms: int = limits.DEAD_LETTER_RETENTION_MS_DEFAULT
    message_bytes_max: int = limits.MESSAGE_BYTES_MAX
    attempts_max: int | None = limits.ATTEMPTS_MAX_DEFAULT
    tags: dict[str, str] = {}

    def check(self) -> None:
        """Raise ValidationFailed with every fault of the specification."""
        faults = [
            *_range(
                "/visibility_timeout_seconds",
                self.visibility_timeout_ms,
                0,
                limits.VISIBILITY_TIMEOUT_MS_MAX,
            ),
            *_range("/delay_seconds", self.delay_ms, 0, limits.DELAY_MS_MAX),
            *_range(
                "/retention_seconds",
                self.retention_ms,
                limits.QUEUE_RETENTION_MS_MIN,
                limits.QUEUE_RETENTION_MS_MAX,
            ),
            *_range(
                "/dead_letter_retention_seconds",
                self.dead_letter_retention_ms,
                limits.QUEUE_RETENTION_MS_MIN,
                limits.QUEUE_RETENTION_MS_MAX,
            ),
            *check_range("/message_bytes_max", self.message_bytes_max, 1, limits.MESSAGE_BYTES_MAX),
            *check_range("/attempts_max", self.attempts_max or 1, 1, limits.ATTEMPTS_MAX_MAX),
            *tag_faults(self.tags),
        ]
        if self.type is QueueType.FIFO and self.delay_ms:
            faults.append(
                FieldFault("/delay_seconds", "A fifo queue takes no delay", "not_supported")
            )
        if faults:
            raise ValidationFailed("The queue's configuration is not valid.", *faults)


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """A queue's stored definition; `version` counts its configurations and makes its ETag."""

    name: QueueName
    log_id: LogId
    spec: QueueSpec
    version: int
    created_at_ms: int
    changed_at_ms: int

    def check_message(self, message: NewMessage) -> None:
        """Raise ValidationFailed or MessageTooLarge unless this queue takes the message."""
        if not 1 <= message.size_bytes <= self.spec.message_bytes_max:
            raise MessageTooLarge(
                f"A message of this queue is 1 to {self.spec.message_bytes_max} bytes, headers included.",
                message_bytes_max=self.spec.message_bytes_max,
            )
        if message.headers:
            check_header_names(message.headers)
        if self.spec.type is QueueType.FIFO:
            _check_fifo_message(message)
        elif message.dedup_id:
            raise ValidationFailed.at(
                "/dedup_id", "A deduplication id needs a fifo queue", "not_supported"
            )
        if message.delay_ms is not None and not 0 <= message.delay_ms <= limits.DELAY_MS_MAX:
            raise ValidationFailed.at(
                "/delay_seconds", "A delay is 0 to 900 seconds", "out_of_range"
            )
        if not message.group and not message.dedup_id:
            return
        for pointer, word in (("/group", message.group), ("/dedup_id", message.dedup_id)):
            if len(word) > limits.GROUP_CHARACTERS_MAX:
                raise ValidationFailed.at(
                    pointer, f"At most {limits.GROUP_CHARACTERS_MAX} characters", "too_long"
                )


def _check_fifo_message(message: NewMessage) -> None:
    if not message.group:
        raise ValidationFailed.at("/group", "A message of a fifo queue needs a group", "required")
    if message.delay_ms:
        raise ValidationFailed.at("/delay_seconds", "A fifo queue takes no delay", "not_supported")


class QueueStats(msgspec.Struct, frozen=True, kw_only=True):
    """Exact counts as of now (Q10), and how old the oldest ready message is.

    sent = ready + delayed + in_flight + dead_lettered + acknowledged + expired + purged
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
    receives: int
    bytes_sent: int
    oldest_ready_at_ms: int | None


def check_range(pointer: str, value: int, low: int, high: int) -> list[FieldFault]:
    """A fault at `pointer` unless low <= value <= high; none otherwise."""
    if low <= value <= high:
        return []
    return [FieldFault(pointer, f"must be {low} to {high}", "out_of_range")]


def _range(pointer: str, value_ms: int, low_ms: int, high_ms: int) -> list[FieldFault]:
    if low_ms <= value_ms <= high_ms:
        return []
    low, high = low_ms // limits.SECOND_MS, high_ms // limits.SECOND_MS
    return [FieldFault(pointer, f"must be {low} to {high}", "out_of_range")]


def tag_faults(tags: dict[str, str]) -> list[FieldFault]:
    """The faults of a resource's tags."""
    faults = []
    if len(tags) > limits.TAGS_MAX:
        faults.append(FieldFault("/tags", f"at most {limits.TAGS_MAX} tags", "too_many"))
    for key, value in tags.items():
        if (
            not 0 < len(key) <= limits.TAG_KEY_CHARACTERS_MAX
            or len(value) > limits.TAG_VALUE_CHARACTERS_MAX
        ):
            faults.append(
                FieldFault(
                    f"/tags/{key}", "a key is 1 to 128 characters, a value up to 256", "too_long"
                )
            )
    return faults
