"""Archive routes: archive state of a stream, its files, and flushes."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from api.native.audited_route import AuditedRoute
from api.native.cursors import decode_cursor, page_of
from api.native.dependencies import Cursor, Limit, StorageDep, StreamPath, may
from api.native.examples import AT, LATER, Example, Repeat
from api.rest.schemas.archive import ArchivedFileOut, ArchivedFilePage, ArchiveOut, FlushOut
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.operations.job_waits import wait_reasons

router = APIRouter(prefix="/v1/archives", tags=["archives"], route_class=AuditedRoute)

MANAGE = Depends(may(Action.STREAM_MANAGE))
SEE = Depends(may(Action.STREAM_LIST))


@router.get("/{stream}", dependencies=[SEE])
async def get_archive(stream: StreamPath, storage: StorageDep) -> ArchiveOut:
    """Show the archive state of a stream, by shard."""
    return ArchiveOut.from_domain(await storage.archive_admin.show(stream))


@router.get("/{stream}/files", dependencies=[SEE])
async def list_archived_files(
    stream: StreamPath,
    storage: StorageDep,
    shard: Annotated[int, Query(ge=0)] = 0,
    limit: Limit = limits.PAGE_ITEMS_DEFAULT,
    cursor: Cursor = "",
) -> ArchivedFilePage:
    """List the Parquet files of a shard, by offset."""
    current = await storage.catalog.stream(stream)
    about = ("archived files", current.stream_id, str(shard))
    after = decode_cursor(cursor, about, int) if cursor else -1
    files = await storage.archive_admin.files(current, shard, after=after, limit=limit + 1)
    page = page_of(files, limit, about, lambda file: file.first_offset)
    items = [ArchivedFileOut.from_domain(file) for file in page.items]
    return ArchivedFilePage(items=items, next_cursor=page.next_cursor)


@router.post("/{stream}/flushes", dependencies=[MANAGE], status_code=202)
async def flush_archive(stream: StreamPath, storage: StorageDep, response: Response) -> FlushOut:
    """Archive all records of a stream now, regardless of their age.

    The job is done when all of them are archived; until then it restarts after each failure.
    """
    job = await storage.archive_admin.flush(stream)
    response.headers["location"] = f"/v1/jobs/{job.job_id}"
    waits = await wait_reasons(storage.presence, job)
    return FlushOut(job=job.job_id, waiting_for=waits.get(job.job_id))


# Examples of the OpenAPI document

_ARCHIVED_FILE = {
    "id": "5b4c3d2e1f00f1e2d3c4b5a69788796a",
    "shard": 0,
    "first_offset": 0,
    "next_offset": 40000,
    "records": 40000,
    "file_bytes": 7000000,
    "record_bytes": 10240000,
    "first_arrival": AT,
    "last_arrival": LATER,
    "path": "default/9c3e/v1/dt=2026-01-31/hr=12/shard=000000000000/"
    "00000000000000000000-00000000000000040000-a1b2c3d4.parquet",
}

EXAMPLES = {
    "get_archive": Example(
        "/v1/archives/clicks",
        answer={
            "stream": "clicks",
            "archiving": True,
            "shards": [
                {
                    "shard": 0,
                    "archive_start_offset": 0,
                    "archived_offset": 120000,
                    "archived_at": LATER,
                    "hot_start_offset": 60000,
                    "next_offset": 120500,
                    "waiting_records": 500,
                    "waiting_bytes": 128000,
                    "waiting_seconds": 41.5,
                    "files": 3,
                    "records": 120000,
                    "file_bytes": 21000000,
                    "record_bytes": 30720000,
                }
            ],
        },
    ),
    "list_archived_files": Example(
        "/v1/archives/clicks/files?shard=0",
        answer={"items": [_ARCHIVED_FILE], "next_cursor": None},
    ),
    "flush_archive": Example(
        "/v1/archives/clicks/flushes",
        status=202,
        answer={"job": "0f1e2d3c4b5a69788796a5b4c3d2e1f0", "waiting_for": "worker"},
        repeat=Repeat.SAFE,
    ),
}
