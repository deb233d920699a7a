"""Parts of the queue configuration schema."""

from typing import Annotated, Self

from pydantic import Field

from api.native.fields import to_ms
from api.rest.schema_base import Config, Seconds, in_seconds
from storage.domain import limits
from storage.domain.queues.backoff import Backoff, BackoffKind, Jitter
from storage.domain.queues.queue import RedrivePermission


class DeadLettersConfig(Config):
    """The dead-letter queue.

    A message moves to it at the receive after `receives_max` unsuccessful ones.
    """

    queue: str
    receives_max: Annotated[int, Field(ge=1, le=limits.RECEIVES_MAX_MAX)]


class RedriveAllowConfig(Config):
    """Queues that may use this one as their dead-letter queue.

    `sources` applies to `by_queue`.
    """

    permission: Annotated[RedrivePermission, Field(strict=False)] = RedrivePermission.ALLOW_ALL
    sources: Annotated[list[str], Field(max_length=limits.REDRIVE_SOURCES_MAX)] = []


class BackoffConfig(Config):
    """Delay after a failure for which the consumer sets none; n is the number of failures.

    fixed: initial. linear: initial * n. exponential: initial * multiplier^(n-1). list: the nth of `delays_seconds`,
    or its last. The delay is capped at `max_seconds`, then the jitter is applied: full draws from 0 to the delay, equal
    from half the delay to the delay.
    """

    kind: Annotated[BackoffKind, Field(strict=False)] = BackoffKind.EXPONENTIAL
    initial_seconds: Seconds = 1
    multiplier: float = 2
    max_seconds: Seconds = 900
    delays_seconds: list[Seconds] = []
    jitter: Annotated[Jitter, Field(strict=False)] = Jitter.FULL

    def to_domain(self) -> Backoff:
        """Return the policy, which the catalog validates."""
        return Backoff(
            kind=self.kind,
            initial_ms=to_ms(self.initial_seconds),
            multiplier=self.multiplier,
            max_ms=to_ms(self.max_seconds),
            delays_ms=tuple(map(to_ms, self.delays_seconds)),
            jitter=self.jitter,
        )

    @classmethod
    def from_domain(cls, policy: Backoff) -> Self:
        """Return the configuration of `policy`."""
        return cls(
            kind=policy.kind,
            initial_seconds=in_seconds(policy.initial_ms),
            multiplier=policy.multiplier,
            max_seconds=in_seconds(policy.max_ms),
            delays_seconds=[in_seconds(delay) for delay in policy.delays_ms],
            jitter=policy.jitter,
        )


class BackoffOut(BackoffConfig):
    """Back-off of a queue."""


class GroupWeightConfig(Config):
    """Number of messages of a group that a standard queue delivers per turn (other groups: 1).

    `match` is a group name, or a prefix followed by `*`; the first match in the list applies.
    """

    match: Annotated[str, Field(min_length=1, max_length=limits.GROUP_CHARACTERS_MAX + 1)]
    weight: Annotated[int, Field(ge=1, le=limits.GROUP_WEIGHT_MAX)]
