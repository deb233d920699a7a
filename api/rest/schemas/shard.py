"""Shards on the wire, and what is asked of them. Hash keys are decimal strings: JSON's numbers end at 2^53."""

from typing import Annotated, Self

from pydantic import BaseModel, Field

from api.native.fields import rfc3339
from api.rest.schema_base import Config, Time
from storage.domain import limits
from storage.domain.streams.stream import ShardState

HashKey = Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,38})$")]
Token = Annotated[str, Field(max_length=limits.FENCE_CHARACTERS_MAX)]


class Split(Config):
    """A shard to split: keys from `at_hash_key` on go to the second half; its middle when not said."""

    shard: Annotated[int, Field(ge=0)]
    at_hash_key: HashKey | None = None

    def at(self) -> int:
        """The hash key that was said."""
        return int(self.at_hash_key or 0)


class Reshard(Config):
    """What to do to the shards: exactly one of the three."""

    shards: Annotated[
        int | None, Field(ge=1, le=limits.SHARDS_MAX, description="So many equal shards.")
    ] = None
    split: Split | None = None
    merge: Annotated[
        tuple[int, int] | None, Field(strict=False, description="Two neighbours on the ring.")
    ] = None


class FenceConfig(Config):
    """The token that appends must carry; empty for none. `expected`: only if this is the token now."""

    token: Token
    expected: Token | None = None


class FenceOut(BaseModel):
    """Whether a shard is one writer's."""

    shard: int
    fenced: bool


class Truncate(Config):
    """The offset before which all goes."""

    before: Annotated[int, Field(ge=0, le=limits.OFFSET_MAX)]


class TruncatedOut(BaseModel):
    """A shard's oldest readable offset."""

    shard: int
    start: int


class ShardOut(BaseModel):
    """A shard: the hash keys it takes (decimal, inclusive), its lineage, and the extent of its log."""

    index: int
    open: Annotated[bool, Field(description="It takes records; a closed one can be read.")]
    parents: Annotated[list[int], Field(description="The shards it was split or merged from.")]
    opened_at: Time
    closed_at: Time | None
    first_hash_key: str
    last_hash_key: str
    start: Annotated[int, Field(description="The oldest readable offset.")]
    next: Annotated[int, Field(description="The next offset to be written.")]
    bytes: int
    fenced: Annotated[bool, Field(description="Only a writer with its token may append.")]

    @classmethod
    def from_domain(cls, state: ShardState) -> Self:
        return cls(
            index=state.shard.index,
            open=state.shard.is_open,
            parents=list(state.shard.parents),
            opened_at=rfc3339(state.shard.opened_at_ms),
            closed_at=_moment(state.shard.closed_at_ms),
            first_hash_key=str(state.shard.first_hash_key),
            last_hash_key=str(state.shard.last_hash_key),
            start=state.start,
            next=state.next,
            bytes=state.bytes,
            fenced=state.fenced,
        )


def _moment(at_ms: int | None) -> str | None:
    return None if at_ms is None else rfc3339(at_ms)


class Shards(BaseModel):
    """A stream's shards, by index: parents come before their children."""

    items: list[ShardOut]
