"""Archive schemas."""

from typing import Annotated, Self

from pydantic import BaseModel, Field

from api.native.fields import rfc3339, to_seconds
from api.rest.field_map import Mapped
from api.rest.schema_base import ListPage, Time
from storage.archive.admin import ShardArchive, StreamArchive
from storage.domain.jobs import WaitReason


class ShardArchiveOut(BaseModel):
    """A shard in both tiers.

    Records from `archive_start_offset` to `archived_offset` are in the archive.
    """

    shard: int
    archive_start_offset: int | None
    archived_offset: Annotated[int | None, Field(description="The next offset to archive.")]
    archived_at: Time | None
    hot_start_offset: int | None
    next_offset: int | None
    waiting_records: Annotated[int, Field(description="Number of records not yet archived.")]
    waiting_bytes: int
    waiting_seconds: Annotated[float, Field(description="Age of the oldest of them.")]
    files: int
    records: Annotated[int, Field(description="Number of records in the files.")]
    file_bytes: int
    record_bytes: Annotated[int, Field(description="Size of the records as counted for retention.")]

    @classmethod
    def from_domain(cls, shard: ShardArchive) -> Self:
        state, hot = shard.state, shard.hot
        first = max(hot.start, state.archived if state else 0) if hot else 0
        return cls(
            shard=shard.shard.index,
            archive_start_offset=state.start if state else None,
            archived_offset=state.archived if state else None,
            archived_at=rfc3339(state.archived_at_ms) if state else None,
            hot_start_offset=hot.start if hot else None,
            next_offset=hot.next if hot else None,
            waiting_records=max(0, hot.next - first) if hot else 0,
            waiting_bytes=hot.bytes if hot else 0,
            waiting_seconds=to_seconds(max(0, hot.waited_ms)) if hot else 0,
            files=state.files if state else 0,
            records=state.records if state else 0,
            file_bytes=state.file_bytes if state else 0,
            record_bytes=state.log_bytes if state else 0,
        )


class ArchiveOut(BaseModel):
    """The archive of a stream.

    `archiving`: archiving is enabled for the stream, and the deployment has an archive.
    """

    stream: str
    archiving: bool
    shards: list[ShardArchiveOut]

    @classmethod
    def from_domain(cls, archive: StreamArchive) -> Self:
        return cls(
            stream=archive.stream.name.name,
            archiving=archive.on,
            shards=[ShardArchiveOut.from_domain(shard) for shard in archive.shards],
        )


class ArchivedFileOut(Mapped):
    """One Parquet file: records with offsets from `first_offset` to below `next_offset`."""

    renamed = {"id": "file_id", "record_bytes": "log_bytes"}

    id: str
    shard: int
    first_offset: int
    next_offset: int
    records: int
    file_bytes: int
    record_bytes: int
    first_arrival: Time
    last_arrival: Time
    path: Annotated[str, Field(description="Path relative to the archive root.")]


class ArchivedFilePage(ListPage[ArchivedFileOut]):
    """Files of a shard, by offset. `next_cursor` is null on the last page."""


class FlushOut(BaseModel):
    """The job that archives all records of the stream now."""

    job: str
    waiting_for: Annotated[
        WaitReason | None,
        Field(description="Why the queued job makes no progress; null if it does."),
    ]
