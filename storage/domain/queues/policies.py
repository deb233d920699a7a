"""Queue policies beyond SQS: caps, poison messages of ordered groups, group weights."""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec

from storage.domain import limits
from storage.domain.errors import FieldFault


class Overflow(StrEnum):
    """Handling of a send that would exceed the queue's cap.

    reject: the send is refused. drop_oldest: the oldest messages that are not in flight are dropped.
    dead_letter: they become dead letters of the queue.
    """

    REJECT = "reject"
    DROP_OLDEST = "drop_oldest"
    DEAD_LETTER = "dead_letter"


class QueueCaps(NamedTuple):
    """Caps of a queue that rejects what exceeds them; None: no cap."""

    messages_max: int | None
    bytes_max: int | None

    def is_reached(self, messages: int, size: int) -> bool:
        """Return whether one more message of average size is rejected."""
        if self.messages_max is not None and messages >= self.messages_max:
            return True
        return self.bytes_max is not None and size + size / max(1, messages) > self.bytes_max


class PoisonPolicy(StrEnum):
    """Handling of a FIFO group when one of its messages has failed `attempts_max` times.

    skip: the message is dead-lettered, and the group continues. block: the message is retried
    indefinitely, and its group waits for it. park_group: it waits with its whole group, including new
    messages, until the group is resumed.
    """

    SKIP = "skip"
    BLOCK = "block"
    PARK_GROUP = "park_group"


class GroupWeight(msgspec.Struct, frozen=True):
    """Number of messages of a group that a standard queue delivers per turn.

    `match` is a group's name, or a prefix followed by `*`. The first match counts; without one the weight
    is 1.
    """

    match: str
    weight: int


class ParkedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A group whose delivery is suspended.

    `poison_offset`: the poison message, None when the group was parked manually; `first_offset`: the
    first waiting message.
    """

    group: str
    parked_at_ms: int
    poison_offset: int | None
    reason: str
    messages: int
    first_offset: int | None


def weight_faults(weights: Sequence[GroupWeight], *, fifo: bool) -> list[FieldFault]:
    """Return the validation faults of a queue's group weights."""
    pointer = "/group_weights"
    if weights and fifo:
        detail = "Group weights are not supported for FIFO queues"
        return [FieldFault(pointer, detail, "not_supported")]
    faults = []
    if len(weights) > limits.GROUP_WEIGHTS_MAX:
        faults.append(FieldFault(pointer, f"at most {limits.GROUP_WEIGHTS_MAX}", "too_many"))
    for nth, group_weight in enumerate(weights):
        if not 1 <= len(group_weight.match) <= limits.GROUP_CHARACTERS_MAX + 1:
            detail = f"1 to {limits.GROUP_CHARACTERS_MAX} characters, and '*'"
            faults.append(FieldFault(f"{pointer}/{nth}/match", detail, "out_of_range"))
        if not 1 <= group_weight.weight <= limits.GROUP_WEIGHT_MAX:
            detail = f"must be 1 to {limits.GROUP_WEIGHT_MAX}"
            faults.append(FieldFault(f"{pointer}/{nth}/weight", detail, "out_of_range"))
    return faults


def poison_faults(
    policy: PoisonPolicy, *, fifo: bool, has_dead_letter_queue: bool
) -> list[FieldFault]:
    """Return the faults of a queue's poison policy given the rest of its configuration."""
    if policy is PoisonPolicy.SKIP:
        return []
    if not fifo:
        detail = "Only FIFO queues support parking"
        return [FieldFault("/on_poison", detail, "not_supported")]
    if has_dead_letter_queue:
        detail = "With a dead-letter queue, on_poison must be 'skip'"
        return [FieldFault("/on_poison", detail, "exclusive")]
    return []
