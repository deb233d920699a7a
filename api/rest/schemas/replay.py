"""Replay schemas."""

from datetime import datetime
from typing import Annotated, Any, ClassVar, Self

import msgspec
from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from api.http.query import MATCH
from api.native.fields import moment_ms, rfc3339
from api.native.former_names import former_name
from api.native.records import RecordOut
from api.rest.field_map import Mapped, MappedConfig
from api.rest.schema_base import Config, ListPage, Moment, Time
from storage.domain import limits
from storage.domain.jobs import JobState, RequestedState, WaitReason
from storage.domain.names import STREAM_PATTERN
from storage.domain.replays.pacing import Pacing
from storage.domain.replays.replay import (
    Bound,
    Order,
    PartProgress,
    ReplayRequest,
    ShardMode,
    Target,
    progress_of,
)
from storage.domain.streams.record_filter import Condition, Filter, Sample, SampleBy
from storage.replays.engine import Replay
from storage.replays.planner import Plan

_NAME = Field(pattern=r"^[A-Za-z0-9_.-]{1,80}$")
Name = Annotated[str, _NAME]
ShardNumber = Annotated[str, Field(pattern=r"^[0-9]{1,9}$")]
Offset = Annotated[int, Field(ge=0, le=limits.OFFSET_MAX)]


class BookmarkName(Config):
    """A bookmark of a consumer group that reads the source."""

    group: Name
    name: Name

    @classmethod
    def from_domain(cls, named: tuple[str, str]) -> Self:
        return cls(group=named[0], name=named[1])


class BoundConfig(Config):
    """A bound of the replayed range: exactly one of the three."""

    offsets: Annotated[
        dict[ShardNumber, Offset] | None,
        Field(description="Offsets by shard; shards that are not listed are not bounded."),
    ] = None
    time: Annotated[
        Moment | None,
        Field(description="Start with the first record that arrived at or after this time."),
    ] = None
    bookmark: BookmarkName | None = None

    def to_domain(self) -> Bound:
        """Return the bound."""
        marked = self.bookmark
        return Bound(
            offsets=_pairs(self.offsets),
            time_ms=None if self.time is None else moment_ms(self.time),
            bookmark=None if marked is None else (marked.group, marked.name),
        )

    @classmethod
    def from_domain(cls, bound: Bound) -> Self:
        """Return the bound as requested."""
        time_ms = bound.time_ms
        pairs = bound.offsets
        return cls(
            offsets=None if pairs is None else {str(shard): offset for shard, offset in pairs},
            time=None if time_ms is None else datetime.fromisoformat(rfc3339(time_ms)),
            bookmark=None if bound.bookmark is None else BookmarkName.from_domain(bound.bookmark),
        )


def _pairs(offsets: dict[str, int] | None) -> tuple[tuple[int, int], ...] | None:
    if offsets is None:
        return None
    return tuple(sorted((int(shard), offset) for shard, offset in offsets.items()))


class ConditionConfig(Config):
    """A condition on a member of a JSON body: exactly one of `equal_to` and `exists`."""

    path: Annotated[str, Field(description="A JSON Pointer, such as /user/id.", max_length=1_024)]
    equal_to: Annotated[
        Any, Field(description="Any JSON value. `equals`, its former name, is accepted too.")
    ] = None
    exists: bool | None = None

    @model_validator(mode="before")
    @classmethod
    def _take_former_name(cls, config: Any) -> Any:
        """Accept `equals`, which is not in the document: in Java, no property can have that name."""
        if not isinstance(config, dict) or "equals" not in config:
            return config
        value = config["equals"]
        if config.get("equal_to", value) != value:
            raise ValueError("equal_to and its former name equals differ; specify one")
        return {name: of for name, of in config.items() if name != "equals"} | {"equal_to": value}

    def to_domain(self) -> Condition:
        """Return the condition."""
        given = self.model_fields_set
        return Condition(
            path=self.path,
            equals=self.equal_to if "equal_to" in given else msgspec.UNSET,
            exists=msgspec.UNSET if self.exists is None else self.exists,
        )


class SampleConfig(Config):
    """A sample that is drawn the same way each time."""

    fraction: Annotated[float, Field(gt=0, lt=1)]
    by: Annotated[SampleBy, Field(strict=False)] = SampleBy.OFFSET


class FilterConfig(Config):
    """Records to replay: those that match all conditions."""

    keys: Annotated[
        list[str] | None,
        Field(
            min_length=1,
            max_length=limits.FILTER_TERMS_MAX,
            description="Records with one of these keys. Default: all keys.",
        ),
    ] = None
    headers: dict[str, str] = {}
    body: list[ConditionConfig] = []
    sample: SampleConfig | None = None
    match: Annotated[Any, Field(description=MATCH)] = None

    def to_domain(self) -> Filter:
        """Return the filter."""
        lot = self.sample
        return Filter(
            keys=tuple(self.keys or ()),
            headers=self.headers,
            body=tuple(condition.to_domain() for condition in self.body),
            sample=None if lot is None else Sample(lot.fraction, lot.by),
            match=msgspec.UNSET if self.match is None else self.match,
        )


class TargetConfig(MappedConfig):
    """Target of the records: exactly one of the two."""

    domain = Target

    stream: Name | None = None
    queue: Name | None = None
    shard_mode: Annotated[
        ShardMode,
        Field(
            strict=False,
            description="rehash: distribute by key. keep: records of a source shard stay together.",
        ),
    ] = ShardMode.REHASH


class PacingConfig(MappedConfig):
    """Speed of the whole replay."""

    domain = Pacing

    records_per_second: Annotated[float, Field(gt=0)] | None = None
    bytes_per_second: Annotated[float, Field(gt=0)] | None = None
    speed: Annotated[
        float | None, Field(gt=0, description="Multiple of the original arrival rate.")
    ] = None
    lag_records_max: Annotated[
        int | None,
        Field(ge=0, description="Wait while the backlog of the target's consumers exceeds this."),
    ] = None


def _listed(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


class ReplayConfig(Config):
    """A replay to start."""

    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=True)

    id: Annotated[
        Name | None, Field(description="Client-chosen id, which makes the request idempotent.")
    ] = None
    stream: Annotated[str, Field(pattern=STREAM_PATTERN)]
    target: TargetConfig
    shards: Annotated[tuple[int, ...] | None, BeforeValidator(_listed)] = None
    start: Annotated[BoundConfig | None, Field(alias="from")] = None
    end: Annotated[
        BoundConfig | None,
        Field(alias="to", description="Default: the end of the source when the replay starts."),
    ] = None
    filter: FilterConfig = FilterConfig()
    order: Annotated[Order, Field(strict=False)] = Order.SHARD
    pacing: PacingConfig = PacingConfig()
    max_records: Annotated[int | None, Field(ge=1)] = None
    allow_same_stream: bool = False
    dry_run: Annotated[
        bool, Field(description="Return what the replay would do without sending anything.")
    ] = False
    exact: Annotated[
        bool, Field(description="In a dry run: count records exactly instead of estimating.")
    ] = False

    def to_domain(self) -> ReplayRequest:
        """Return the request."""
        return ReplayRequest(
            stream=self.stream,
            target=self.target.to_domain(),
            shards=self.shards,
            start=None if self.start is None else self.start.to_domain(),
            end=None if self.end is None else self.end.to_domain(),
            filter=self.filter.to_domain(),
            order=self.order,
            pacing=self.pacing.to_domain(),
            max_records=self.max_records,
            allow_same_stream=self.allow_same_stream,
        )


class EstimateOut(Mapped):
    """A number, and whether it is exact or estimated from samples."""

    count: int
    exact: bool


class ReachOut(Mapped):
    """Offsets of a shard, from `first` to before `end`."""

    shard: int
    first: int
    end: int


class PlanOut(Mapped):
    """Preview of a replay."""

    records: EstimateOut
    bytes: EstimateOut
    expired: Annotated[
        int, Field(description="Number of records of the range that have already expired.")
    ]
    seconds: Annotated[float, Field(description="Minimum duration.")]
    shards: list[ReachOut]
    sample: Annotated[
        list[dict[str, Any]], Field(description="Up to 20 records that would be sent.")
    ]

    @classmethod
    def from_domain(cls, value: Plan, **others: Any) -> Self:
        return super().from_domain(
            value,
            seconds=round(value.seconds, 3),
            shards=[ReachOut.from_domain(reach) for reach in value.reaches],
            sample=[
                msgspec.json.decode(
                    msgspec.json.encode(RecordOut.from_domain(one.log_record, False, one.shard))
                )
                for one in value.sample
            ],
            **others,
        )


class CountsOut(Mapped):
    """Progress of a replay: records `read`, `selected`, newly sent, and duplicates.

    Duplicates had been sent by an earlier attempt.
    """

    read: int
    selected: int
    sent: int
    duplicates: int
    bytes: int
    expired: Annotated[
        int, Field(description="Number of records that expired before they were read.")
    ]


class ReplayShardOut(CountsOut):
    """Progress of a part: offsets of a shard from `first` to before `end`.

    `position` is the next offset.
    """

    shard: int
    first: int
    end: int
    position: int
    done: bool

    @classmethod
    def from_domain(cls, value: PartProgress, **others: Any) -> Self:
        return cls.mapped(value, value.reach, **others)


class ReplayOut(Mapped):
    """A replay."""

    id: str
    stream: str
    target: TargetConfig
    order: Order
    state: JobState
    requested_state: Annotated[RequestedState, Field(description="Pending action.")]
    wish: ClassVar[Any] = former_name("requested_state", RequestedState)
    waiting_for: Annotated[
        WaitReason | None,
        Field(description="Why the queued replay makes no progress; null if it does."),
    ]
    attempt: int
    failure: Annotated[
        str, Field(description="Error of the last failed attempt; empty if none failed.")
    ]
    created_at: Time
    started_at: Time | None
    ended_at: Time | None

    @classmethod
    def of(cls, replay: Replay, waiting_for: WaitReason | None, **others: Any) -> Self:
        """Return the replay with its state."""
        job, request = replay.job, replay.spec.request
        replay_id = replay.spec.replay_id
        return cls.mapped(request, job, id=replay_id, waiting_for=waiting_for, **others)


class ReplayProgressOut(CountsOut):
    """Progress of the whole replay; `records` is the number of offsets in its range."""

    records: int
    parts: int
    parts_done: int


class ReplayDetail(ReplayOut):
    """A replay, its request and its progress. A replay without shards has not started."""

    request: dict[str, Any]
    progress: ReplayProgressOut
    shards: list[ReplayShardOut]

    @classmethod
    def of(cls, replay: Replay, waiting_for: WaitReason | None, **others: Any) -> Self:
        """Return the replay with its state, request and progress."""
        return super().of(
            replay,
            waiting_for,
            request=_request(replay.spec.request),
            progress=ReplayProgressOut(**progress_of(replay.parts)),
            shards=[ReplayShardOut.from_domain(part) for part in replay.parts],
            **others,
        )


class ReplayPage(ListPage[ReplayOut]):
    """Replays, newest first."""


def _request(request: ReplayRequest) -> dict[str, Any]:
    """Return the request in the form in which it is made."""
    fields: dict[str, Any] = msgspec.to_builtins(request)
    for name, word, bound in (("start", "from", request.start), ("end", "to", request.end)):
        del fields[name]
        fields[word] = (
            None
            if bound is None
            else BoundConfig.from_domain(bound).model_dump(mode="json", exclude_none=True)
        )
    if not request.filter.keys:
        del fields["filter"]["keys"]
    for condition in fields["filter"]["body"]:
        if "equals" in condition:
            condition["equal_to"] = condition["equals"]
    return fields
