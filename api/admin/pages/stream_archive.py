"""Archive of a stream: the progress of each shard, its files, and archiving the rest now."""

from typing import Annotated, NamedTuple

from fastapi import APIRouter, Depends, Query, Response

from api.admin.error_pages import PageRoute
from api.admin.lists import PAGE_ROWS, first_page
from api.admin.pages._shared import stream_page
from api.admin.rendering import Context
from api.native.dependencies import StreamPath, may
from storage.archive.admin import ShardArchive, StreamArchive
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.access.permissions import Action, Principal
from storage.domain.jobs import Job, JobKind

router = APIRouter(include_in_schema=False, route_class=PageRoute, prefix="/ui/streams/{stream}")

SEE = Depends(may(Action.STREAM_LIST))
_JOBS_MAX = 5


class ShardArchiveRow(NamedTuple):
    """A shard in both tiers. `waiting`: records that are in the hot store alone."""

    shard: int
    start: int | None
    archived: int | None
    next: int | None
    waiting: int
    waiting_bytes: int
    waited_ms: int
    files: int
    records: int
    file_bytes: int

    @classmethod
    def of(cls, archive: ShardArchive) -> "ShardArchiveRow":
        """Return the row of a shard."""
        state, hot = archive.state, archive.hot
        first = max(hot.start, state.archived if state else 0) if hot else 0
        return cls(
            archive.shard.index,
            state.start if state else None,
            state.archived if state else None,
            hot.next if hot else None,
            max(0, hot.next - first) if hot else 0,
            hot.bytes if hot else 0,
            max(0, hot.waited_ms) if hot else 0,
            state.files if state else 0,
            state.records if state else 0,
            state.file_bytes if state else 0,
        )


@router.get("/archive", dependencies=[SEE])
async def show_archive(
    context: Context,
    stream: StreamPath,
    shard: Annotated[int, Query(ge=0)] = 0,
    after: Annotated[int, Query(ge=-1, le=limits.OFFSET_MAX)] = -1,
) -> Response:
    """Both tiers, shard by shard, and the files of one shard."""
    storage = context.storage
    stored = await storage.catalog.fresh_stream(stream)
    archive = await storage.archive_admin.show(stream)
    chosen = shard if any(one.index == shard for one in stored.shards) else stored.shards[0].index
    files, next_offset = first_page(
        await storage.archive_admin.files(stored, chosen, after=after, limit=PAGE_ROWS + 1),
        lambda file: file.first_offset,
    )
    return stream_page(
        context,
        "archive",
        stored,
        live=True,
        on=archive.on,
        possible=storage.archive_admin.on,
        rows=[ShardArchiveRow.of(shard) for shard in archive.shards],
        shard=chosen,
        files=files,
        more=next_offset,
        after=after,
        jobs=await _jobs(storage, context.principal, archive),
    )


async def _jobs(storage: Storage, principal: Principal, archive: StreamArchive) -> list[Job]:
    """Return the last archive jobs of this stream alone, for callers who may see jobs."""
    if not principal.policy.allows(Action.JOB_LIST, "*"):
        return []
    jobs = await storage.jobs.list(
        namespace=principal.namespace, kind=JobKind.ARCHIVE, limit=limits.PAGE_ITEMS_DEFAULT
    )
    subject = f"stream {archive.stream.stream_id}"
    return [job for job in jobs if job.subject == subject][:_JOBS_MAX]
