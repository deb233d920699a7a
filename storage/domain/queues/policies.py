"""What an owner may ask of a queue beyond SQS: caps, poison messages of ordered groups, weights of groups."""

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from storage.domain import limits
from storage.domain.errors import FieldFault


class Overflow(StrEnum):
    """What happens to a send that would be too much for its queue.

    reject: it is refused. drop_oldest: the oldest messages that are not in flight go. dead_letter: they go among the
    queue's dead letters.
    """

    REJECT = "reject"
    DROP_OLDEST = "drop_oldest"
    DEAD_LETTER = "dead_letter"


class PoisonPolicy(StrEnum):
    """What becomes of a fifo queue's group when one of its messages has failed `attempts_max` times.

    skip: the message is dead-lettered, and the group goes on. block: the message is tried on and on, and its group
    waits for it. park_group: it waits with its whole group, also with what comes, until the group is resumed.
    """

    SKIP = "skip"
    BLOCK = "block"
    PARK_GROUP = "park_group"


class GroupWeight(msgspec.Struct, frozen=True):
    """How many messages of a group a standard queue delivers in its turn.

    `match` is a group's name, or the start of one and `*`. The first that fits counts; without one it is 1.
    """

    match: str
    weight: int


class ParkedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A group of which nothing is delivered. `poison_offset`: the message that is to blame, None when the group was
    parked by hand; `first_offset`: the first message that waits."""

    group: str
    parked_at_ms: int
    poison_offset: int | None
    reason: str
    messages: int
    first_offset: int | None


def weight_faults(weights: Sequence[GroupWeight], *, fifo: bool) -> list[FieldFault]:
    """The faults of a queue's weights."""
    pointer = "/group_weights"
    if weights and fifo:
        detail = "A fifo queue delivers its groups in order, and has no weights"
        return [FieldFault(pointer, detail, "not_supported")]
    faults = []
    if len(weights) > limits.GROUP_WEIGHTS_MAX:
        faults.append(FieldFault(pointer, f"at most {limits.GROUP_WEIGHTS_MAX}", "too_many"))
    for nth, one in enumerate(weights):
        if not 1 <= len(one.match) <= limits.GROUP_CHARACTERS_MAX + 1:
            detail = f"1 to {limits.GROUP_CHARACTERS_MAX} characters, and '*'"
            faults.append(FieldFault(f"{pointer}/{nth}/match", detail, "out_of_range"))
        if not 1 <= one.weight <= limits.GROUP_WEIGHT_MAX:
            detail = f"must be 1 to {limits.GROUP_WEIGHT_MAX}"
            faults.append(FieldFault(f"{pointer}/{nth}/weight", detail, "out_of_range"))
    return faults


def poison_faults(
    policy: PoisonPolicy, *, fifo: bool, has_dead_letter_queue: bool
) -> list[FieldFault]:
    """The faults of a queue's poison policy with the rest of its configuration."""
    if policy is PoisonPolicy.SKIP:
        return []
    if not fifo:
        detail = "Only a fifo queue's groups wait for their messages"
        return [FieldFault("/on_poison", detail, "not_supported")]
    if has_dead_letter_queue:
        detail = "A queue with a dead-letter queue moves there what fails: on_poison is 'skip'"
        return [FieldFault("/on_poison", detail, "exclusive")]
    return []
