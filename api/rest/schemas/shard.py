"""Shard schemas. Hash keys are decimal strings, since JSON numbers are exact up to 2^53."""

from typing import Annotated, Any, Self

from pydantic import BaseModel, Field

from api.rest.field_map import Mapped
from api.rest.schema_base import Config, Time
from storage.domain import limits
from storage.domain.streams.shard_load import LoadSplit
from storage.domain.streams.stream import ShardState

HashKey = Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,38})$")]
Token = Annotated[str, Field(max_length=limits.FENCE_CHARACTERS_MAX)]


class Split(Config):
    """A shard to split: keys from `at_hash_key` go to the second half; default: its middle."""

    shard: Annotated[int, Field(ge=0)]
    at_hash_key: HashKey | None = None

    def at(self) -> int:
        """Return the requested hash key."""
        return int(self.at_hash_key or 0)


class Reshard(Config):
    """A reshard: exactly one of the three."""

    shards: Annotated[
        int | None,
        Field(
            ge=1, le=limits.SHARDS_MAX, description="Number of shards with equal hash-key ranges."
        ),
    ] = None
    split: Split | None = None
    merge: Annotated[
        tuple[int, int] | None,
        Field(strict=False, description="Two shards with adjacent hash-key ranges."),
    ] = None


class FenceConfig(Config):
    """The fencing token that appends must carry; empty for none.

    `expected`: apply only if this is the current token.
    """

    token: Token
    expected: Token | None = None


class FenceOut(BaseModel):
    """The fencing state of a shard."""

    shard: int
    fenced: bool


class Truncate(Config):
    """The offset before which all records are deleted."""

    before: Annotated[int, Field(ge=0, le=limits.OFFSET_MAX)]


class TruncatedOut(BaseModel):
    """A shard's oldest readable offset."""

    shard: int
    start: int


class ShardOut(Mapped):
    """A shard: its hash-key range (decimal, inclusive), its lineage, and its extent."""

    index: int
    open: Annotated[
        bool,
        Field(description="Whether the shard accepts records; a closed shard can still be read."),
    ]
    parents: Annotated[list[int], Field(description="Parent shards.")]
    opened_at: Time
    closed_at: Time | None
    first_hash_key: str
    last_hash_key: str
    start: Annotated[int, Field(description="The oldest readable offset.")]
    next: Annotated[int, Field(description="The next offset to write.")]
    bytes: int
    fenced: Annotated[bool, Field(description="Whether appends require the shard's fencing token.")]

    @classmethod
    def from_domain(cls, value: ShardState, **others: Any) -> Self:
        shard = value.shard
        return cls.mapped(
            value,
            shard,
            open=shard.is_open,
            first_hash_key=str(shard.first_hash_key),
            last_hash_key=str(shard.last_hash_key),
            **others,
        )


class Shards(BaseModel):
    """The shards of a stream by number; parents come before their children.

    A stream that is deleted and created again has another `stream_id`.
    """

    stream_id: str
    items: list[ShardOut]


class KeyLoadOut(Mapped):
    """A partition key and its share of the sampled records, from 0 to 1."""

    key: str
    share: float


class LoadSplitOut(Mapped):
    """A split point, and the share of the sampled records that the larger child would take."""

    at_hash_key: Annotated[str, Field(description="For `split.at_hash_key` of a reshard.")]
    larger_share: float

    @classmethod
    def from_domain(cls, value: LoadSplit, **others: Any) -> Self:
        return super().from_domain(value, at_hash_key=str(value.at_hash_key), **others)


class ShardLoadOut(Mapped):
    """Load of an open shard over the last minute, from a sample of its records."""

    shard: int
    records_per_second: float
    bytes_per_second: float
    sampled: Annotated[
        int,
        Field(
            description="Records that were looked at; 0 for a shard that is not among the busiest."
        ),
    ]
    keyless_share: Annotated[float, Field(description="Share of the records without a key.")]
    keys: Annotated[list[KeyLoadOut], Field(description="The most frequent keys.")]
    split: Annotated[
        LoadSplitOut | None,
        Field(
            description="The split that divides the load most evenly; null if one key makes so much"
            " of it that no split helps."
        ),
    ]


class StreamLoad(BaseModel):
    """Loads of the open shards of a stream."""

    window_seconds: float
    items: list[ShardLoadOut]
