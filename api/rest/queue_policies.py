"""Parts of the queue configuration schema."""

from typing import Annotated

from pydantic import Field

from api.rest.field_map import MappedConfig
from api.rest.schema_base import Seconds
from storage.domain import limits
from storage.domain.queues.backoff import Backoff, BackoffKind, Jitter
from storage.domain.queues.policies import GroupWeight
from storage.domain.queues.queue import DeadLetterTarget, RedriveAllow, RedrivePermission


class DeadLettersConfig(MappedConfig):
    """The dead-letter queue, or the topic that dead letters are published to.

    A message moves there at the receive after `receives_max` unsuccessful ones. Exactly one of `queue` and `topic` is given.
    """

    domain = DeadLetterTarget

    queue: str | None = None
    topic: Annotated[
        str | None,
        Field(
            description="Dead letters are published with the name of the queue as their subject, and headers that state the reason."
        ),
    ] = None
    receives_max: Annotated[int, Field(ge=1, le=limits.RECEIVES_MAX_MAX)]


class RedriveAllowConfig(MappedConfig):
    """Queues that may use this one as their dead-letter queue.

    `sources` applies to `by_queue`.
    """

    domain = RedriveAllow

    permission: Annotated[RedrivePermission, Field(strict=False)] = RedrivePermission.ALLOW_ALL
    sources: Annotated[list[str], Field(max_length=limits.REDRIVE_SOURCES_MAX)] = []


class BackoffConfig(MappedConfig):
    """Delay after a failure for which the consumer sets none; n is the number of failures.

    fixed: initial. linear: initial * n. exponential: initial * multiplier^(n-1). list: the nth of `delays_seconds`,
    or its last. The delay is capped at `max_seconds`, then the jitter is applied: full draws from 0 to the delay, equal
    from half the delay to the delay.
    """

    domain = Backoff

    kind: Annotated[BackoffKind, Field(strict=False)] = BackoffKind.EXPONENTIAL
    initial_seconds: Seconds = 1
    multiplier: float = 2
    max_seconds: Seconds = 900
    delays_seconds: list[Seconds] = []
    jitter: Annotated[Jitter, Field(strict=False)] = Jitter.FULL


class BackoffOut(BackoffConfig):
    """Back-off of a queue."""


class GroupWeightConfig(MappedConfig):
    """Number of messages of a group that a standard queue delivers per turn (other groups: 1).

    `match` is a group name, or a prefix followed by `*`; the first match in the list applies.
    """

    domain = GroupWeight

    match: Annotated[str, Field(min_length=1, max_length=limits.GROUP_CHARACTERS_MAX + 1)]
    weight: Annotated[int, Field(ge=1, le=limits.GROUP_WEIGHT_MAX)]
