"""Streams on the wire: configuration and shards."""

from typing import Annotated, Any, Self

from pydantic import BaseModel, Field

from api.rest.fields import rfc3339, to_ms
from api.rest.schemas import Bytes, Config, Seconds, Tags, Time, in_seconds, merged
from storage.domain import limits
from storage.domain.streams import ShardState, Stream, StreamSpec


class StreamConfig(Config):
    """The whole desired state of a stream; what is not said takes its default."""

    shards: Annotated[
        int, Field(ge=1, le=limits.SHARDS_MAX, description="Cannot be changed later.")
    ] = 1
    retention_seconds: Seconds = in_seconds(limits.STREAM_RETENTION_MS_DEFAULT)
    retention_bytes: Annotated[
        Bytes | None, Field(description="Of each shard; null: no limit.")
    ] = None
    record_bytes_max: Bytes = limits.RECORD_BYTES_MAX
    tags: Tags = {}

    def to_domain(self) -> StreamSpec:
        """The specification, which the catalog checks."""
        return StreamSpec(
            shards=self.shards,
            retention_ms=to_ms(self.retention_seconds),
            retention_bytes=self.retention_bytes,
            record_bytes_max=self.record_bytes_max,
            tags=self.tags,
        )

    @classmethod
    def from_domain(cls, spec: StreamSpec) -> Self:
        """The configuration that makes `spec`."""
        return cls(**_stream_fields(spec))


def _stream_fields(spec: StreamSpec) -> dict[str, Any]:
    return {
        "shards": spec.shards,
        "retention_seconds": in_seconds(spec.retention_ms),
        "retention_bytes": spec.retention_bytes,
        "record_bytes_max": spec.record_bytes_max,
        "tags": spec.tags,
    }


class StreamPatch(Config):
    """What to change of a stream (a JSON Merge Patch): null takes a field back to its default."""

    retention_seconds: Seconds | None = None
    retention_bytes: Bytes | None = None
    record_bytes_max: Bytes | None = None
    tags: dict[str, str | None] | None = None

    def apply(self, spec: StreamSpec) -> StreamSpec:
        """The specification after the change."""
        before = StreamConfig.from_domain(spec).model_dump()
        after = merged(before, self.model_dump(exclude_unset=True))
        return StreamConfig(**after).to_domain()


class StreamOut(BaseModel):
    """A stream: its configuration, and its version, which is its ETag."""

    name: str
    shards: int
    retention_seconds: Seconds
    retention_bytes: int | None
    record_bytes_max: int
    tags: dict[str, str]
    version: int
    created_at: Time
    changed_at: Time

    @classmethod
    def from_domain(cls, stream: Stream) -> Self:
        return cls(
            name=stream.name.name,
            version=stream.version,
            created_at=rfc3339(stream.created_at_ms),
            changed_at=rfc3339(stream.changed_at_ms),
            **_stream_fields(stream.spec),
        )


class StreamPage(BaseModel):
    """Streams by name. `next_cursor` is null on the last page."""

    items: list[StreamOut]
    next_cursor: str | None


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
        )


def _moment(at_ms: int | None) -> str | None:
    return None if at_ms is None else rfc3339(at_ms)


class Shards(BaseModel):
    """A stream's shards, by index: parents come before their children."""

    items: list[ShardOut]
