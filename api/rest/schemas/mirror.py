"""Mirror schemas: configuration, progress."""

from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field

from api.native.fields import rfc3339
from api.rest.definition_changes import PutOutcome
from api.rest.field_map import Mapped, MappedDefinition, MappedDefinitionConfig
from api.rest.schema_base import Config, ListPage, Seconds, Time, in_seconds
from consumers.mirrors.promotion import OriginOutcome
from storage.domain import limits
from storage.domain.definitions import HIDDEN_VALUE, OTHER_HIDDEN_VALUE
from storage.domain.mirrors.groups import MirroredGroupState
from storage.domain.mirrors.mirror import Mirror, MirrorSpec
from storage.domain.mirrors.progress import MirrorStatus, QueueProgress, ShardProgress

Pattern = Annotated[str, Field(min_length=1, max_length=80)]
Failure = Annotated[str, Field(description="Why the last attempt failed; empty if it did not.")]
LagRecords = Annotated[
    int,
    Field(
        description="Number of records and messages that are not here yet, when the origin last answered."
    ),
]
LagSeconds = Annotated[
    Seconds,
    Field(
        description="Maximum age of a record or message that is not here yet. It grows while the origin does not answer."
    ),
]


class MirrorFrom(Config):
    """The deployment to copy from."""

    url: Annotated[
        str,
        Field(
            max_length=limits.WEBHOOK_URL_CHARACTERS_MAX,
            description="Address of the other deployment, such as https://eu.example.com.",
        ),
    ]
    key: Annotated[
        str | None,
        Field(
            max_length=limits.MIRROR_KEY_CHARACTERS_MAX,
            description="API key of the other deployment, with `stream:list` and `stream:read`, with `group:list` for "
            "`groups`, and with `queue:list` and `queue:peek` for `queues`. It is stored encrypted and "
            "never returned; if omitted, it is unchanged.",
        ),
    ] = None


class MirrorConfig(MappedDefinitionConfig):
    """The complete configuration of a mirror."""

    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=True)

    origin: Annotated[MirrorFrom, Field(alias="from")]
    streams: Annotated[
        list[Pattern],
        Field(
            description="Names of streams to copy, with `*` for anything and `?` for one character."
        ),
    ] = []
    queues: Annotated[
        list[Pattern],
        Field(
            description="Names of queues to copy, likewise. The copies deliver nothing until the mirror is promoted."
        ),
    ] = []
    groups: Annotated[
        bool,
        Field(
            description="Create the consumer groups that read the streams here as well, and move their offsets with those of the "
            "other deployment, until they have members here."
        ),
    ] = True
    follow_definitions: Annotated[
        bool,
        Field(
            description="Apply later changes of the settings of copied streams and groups here as well. Otherwise they are copied "
            "once."
        ),
    ] = False

    @classmethod
    def from_domain(cls, value: MirrorSpec, **others: Any) -> Self:
        """Return the configuration of a specification, without its key."""
        return cls.mapped(value, origin=MirrorFrom(url=value.url, key=_marker(value)), **others)

    def to_domain(self) -> MirrorSpec:
        """Return the specification, which the engine validates."""
        return MirrorSpec(
            url=self.origin.url,
            key=self.origin.key,
            streams=tuple(self.streams),
            queues=tuple(self.queues),
            groups=self.groups,
            follow_definitions=self.follow_definitions,
        )

    def comparable(self) -> Self:
        if not self.origin.key:
            return self
        hidden = self.origin.model_copy(update={"key": HIDDEN_VALUE})
        return self.model_copy(update={"origin": hidden})


def _marker(spec: MirrorSpec) -> str | None:
    """Return what is shown of a key: whether there is one, and whether a put replaces it."""
    if not spec.key:
        return None
    return OTHER_HIDDEN_VALUE if spec.key == OTHER_HIDDEN_VALUE else HIDDEN_VALUE


class MirrorFromOut(Mapped):
    """The deployment to copy from."""

    url: str


class MirrorOut(MappedDefinition):
    """A mirror: its configuration and its version, which is the ETag."""

    model_config = ConfigDict(populate_by_name=True)

    name: str
    origin: Annotated[MirrorFromOut, Field(alias="from")]
    streams: list[str]
    queues: list[str]
    groups: bool
    follow_definitions: bool
    paused: bool
    promoted_at: Annotated[
        Time | None,
        Field(
            description="When it was promoted, since when it copies nothing; null if it was not."
        ),
    ]
    version: int
    created_at: Time
    changed_at: Time

    @classmethod
    def from_domain(cls, value: Mirror, **others: Any) -> Self:
        return super().from_domain(value, origin=MirrorFromOut(url=value.spec.url), **others)


class MirrorStored(PutOutcome, MirrorOut):
    """A mirror after a PUT, and what the PUT changed."""


class MirrorPage(ListPage[MirrorOut]):
    """Mirrors by name."""


class PromotionIn(Config):
    """Treatment of the other deployment, and of records that are not here yet."""

    fence: Annotated[
        bool,
        Field(
            description="Make the streams and queues read-only in the other deployment first, if it can be reached: its writers get "
            "`fence_mismatch`, and its queues deliver nothing. Needs `stream:manage` and `queue:manage` there."
        ),
    ] = True
    wait_seconds: Annotated[
        float,
        Field(
            ge=0,
            le=limits.WAIT_MS_MAX / limits.SECOND_MS,
            description="Maximum time to copy the last records in, once the other deployment is read-only.",
        ),
    ] = limits.WAIT_MS_MAX / limits.SECOND_MS
    force: Annotated[
        bool, Field(description="Promote the mirror although records are missing.")
    ] = False


class MirrorPromotion(MirrorOut):
    """A mirror after a promotion.

    `promoted_at` is null if the last records could not be copied in time: call again.
    """

    outcome: Annotated[
        OriginOutcome,
        Field(
            serialization_alias="origin",
            description="`fenced`: the streams and queues are read-only in the other deployment, and nothing is missing here, unless the promotion "
            "was forced. `unreachable`: it was not reached, or not for all of them. `refused`: the mirror's key may not do it. "
            "`ignored`: not asked for. Unless `fenced`, stop its writers yourself.",
        ),
    ]


class MirrorShardOut(Mapped):
    """Progress on one shard of the other deployment's stream."""

    stream: str
    shard: Annotated[int, Field(description="Number of the shard in the other deployment.")]
    next_offset: Annotated[int, Field(description="Offset there of the next record to copy.")]
    tip: Annotated[int, Field(description="Next offset to be written there.")]
    lag_records: LagRecords
    lag_seconds: LagSeconds
    copied: Annotated[int, Field(description="Number of records that were copied.")]
    skipped: Annotated[int, Field(description="Number of records that came from here.")]
    ended: Annotated[bool, Field(description="Whether it is closed, and completely copied.")]
    checked_at: Annotated[Time | None, Field(description="When the origin last answered.")]
    failure: Failure

    @classmethod
    def of(cls, shard: ShardProgress, now_ms: int) -> Self:
        """Return the progress as of now."""
        checked = rfc3339(shard.checked_at_ms) if shard.checked_at_ms else None
        lag = in_seconds(shard.lag_ms(now_ms))
        return cls.mapped(shard, lag_seconds=lag, checked_at=checked)


class MirrorQueueOut(Mapped):
    """Progress on a queue of the other deployment."""

    queue: str
    next_offset: Annotated[int, Field(description="Offset there of the next message to copy.")]
    tip: Annotated[int, Field(description="Next offset to be sent there.")]
    lag_messages: Annotated[
        int,
        Field(description="Maximum number of messages that are not here yet, as of `checked_at`."),
    ]
    lag_seconds: LagSeconds
    copied: Annotated[int, Field(description="Number of messages that were copied.")]
    checked_at: Annotated[Time | None, Field(description="When the origin last answered.")]
    failure: Failure

    @classmethod
    def of(cls, queue: QueueProgress, now_ms: int) -> Self:
        """Return the progress as of now."""
        checked = rfc3339(queue.checked_at_ms) if queue.checked_at_ms else None
        lag = in_seconds(queue.lag_ms(now_ms))
        return cls.mapped(queue, lag_seconds=lag, checked_at=checked)


class MirrorGroupOut(Mapped):
    """A consumer group of the other deployment, and its copy here."""

    renamed = {"group": "group_name"}

    group: str
    stream: str
    state: Annotated[
        MirroredGroupState,
        Field(
            description="`created`: it is here, and nothing was committed yet. `followed`: its offsets move with those of the other "
            "deployment. `in_use`: it has, or had, members or commits here, and is not moved. `foreign`: the mirror did not create "
            "it, and leaves it alone."
        ),
    ]
    moved_at: Annotated[Time | None, Field(description="When its offsets last moved.")]
    failure: Failure


class MirrorStats(Mapped):
    """Progress of a mirror. What is lost with the other deployment is what lags behind."""

    lag_records: LagRecords
    lag_seconds: LagSeconds
    failures: Annotated[list[str], Field(description="Why last attempts failed, each reason once.")]
    shards: list[MirrorShardOut]
    queues: list[MirrorQueueOut]
    groups: list[MirrorGroupOut]

    @classmethod
    def of(cls, status: MirrorStatus, now_ms: int) -> Self:
        """Return the progress as of now."""
        return cls(
            lag_records=status.lag_records,
            lag_seconds=in_seconds(status.lag_ms(now_ms)),
            failures=list(status.failures),
            shards=[MirrorShardOut.of(shard, now_ms) for shard in status.shards],
            queues=[MirrorQueueOut.of(queue, now_ms) for queue in status.queues],
            groups=[MirrorGroupOut.from_domain(group) for group in status.groups],
        )
