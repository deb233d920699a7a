"""Parts of a queue's configuration on the wire."""

from typing import Annotated, Self

from pydantic import Field

from api.native.fields import to_ms
from api.rest.schema_base import Config, Seconds, in_seconds
from storage.domain import limits
from storage.domain.queues.backoff import Backoff, BackoffKind, Jitter
from storage.domain.queues.queue import RedrivePermission


class DeadLettersConfig(Config):
    """Another queue that takes what was received `receives_max` times in vain, at the next receive."""

    queue: str
    receives_max: Annotated[int, Field(ge=1, le=limits.RECEIVES_MAX_MAX)]


class RedriveAllowConfig(Config):
    """Which queues may send their dead letters here; `sources` counts for `by_queue`."""

    permission: Annotated[RedrivePermission, Field(strict=False)] = RedrivePermission.ALLOW_ALL
    sources: Annotated[list[str], Field(max_length=limits.REDRIVE_SOURCES_MAX)] = []


class BackoffConfig(Config):
    """How long a message waits after a failure whose consumer does not say; n counts its failures.

    fixed: initial. linear: initial * n. exponential: initial * multiplier^(n-1). list: the nth of `delays_seconds`,
    or its last. Never more than `max_seconds`; then the jitter: full is anything from 0 to the delay, equal
    half of it and anything up to the other half.
    """

    kind: Annotated[BackoffKind, Field(strict=False)] = BackoffKind.EXPONENTIAL
    initial_seconds: Seconds = 1
    multiplier: float = 2
    max_seconds: Seconds = 900
    delays_seconds: list[Seconds] = []
    jitter: Annotated[Jitter, Field(strict=False)] = Jitter.FULL

    def to_domain(self) -> Backoff:
        """The policy, which the catalog checks."""
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
        """The configuration that makes `policy`."""
        return cls(
            kind=policy.kind,
            initial_seconds=in_seconds(policy.initial_ms),
            multiplier=policy.multiplier,
            max_seconds=in_seconds(policy.max_ms),
            delays_seconds=[in_seconds(delay) for delay in policy.delays_ms],
            jitter=policy.jitter,
        )


class BackoffOut(BackoffConfig):
    """A queue's back-off."""


class GroupWeightConfig(Config):
    """How many messages of a group a standard queue delivers in its turn, where every other group has 1.

    `match` is a group's name, or the start of one and `*`; the first in the list that fits counts.
    """

    match: Annotated[str, Field(min_length=1, max_length=limits.GROUP_CHARACTERS_MAX + 1)]
    weight: Annotated[int, Field(ge=1, le=limits.GROUP_WEIGHT_MAX)]
