"""Two-phase writes for distributed writers: stage records, then commit them as one batch."""

from typing import Annotated

from fastapi import APIRouter, Body, Depends, Path, Request
from pydantic import BaseModel, Field

from api.http.body import read_body
from api.http.codecs import ARROW, BYTES, media_type, unsupported
from api.native.dependencies import PrincipalDep, StorageDep, StreamPath, may, require_json
from api.native.examples import Example, Repeat
from api.native.native_route import NativeRoute
from api.rest.schema_base import Config
from storage.domain import limits
from storage.domain.access.permissions import Action

router = APIRouter(prefix="/v1/streams/{stream}", tags=["writes"], route_class=NativeRoute)

PUT = Depends(may(Action.STREAM_PUT))

StagedId = Annotated[str, Path(description="As returned when it was staged.")]
_ARROW_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            BYTES: {"schema": {"type": "string", "format": "binary"}}
        },  # generators know it
    }
}


class StagedOut(BaseModel):
    """A staged entry."""

    id: str


class StagedCommit(Config):
    """A batch of a writer and its staged entries, unless an earlier commit listed them."""

    writer_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,80}$")]
    batch_id: Annotated[int, Field(ge=0, le=limits.OFFSET_MAX)]
    staged: Annotated[list[str], Field(max_length=limits.STAGED_PARTS_MAX)]


class CommitOut(BaseModel):
    """Progress of a commit: repeat the call until it is `done`."""

    done: bool
    records: Annotated[int, Field(description="Number of records appended so far.")]
    staged: Annotated[list[str], Field(description="Staged entries of the batch.")]


@router.post("/staged", dependencies=[PUT], status_code=201, openapi_extra=_ARROW_BODY)
async def stage_records(
    stream: StreamPath, storage: StorageDep, principal: PrincipalDep, request: Request
) -> StagedOut:
    """Stage records for a commit within one day.

    The body is an Arrow stream with the column `data` and optionally `key`, `event_ts` and `headers`. Its content type can
    also be `application/vnd.apache.arrow.stream`. Staged records are not readable until they are committed.
    """
    headers = dict(request.scope["headers"])
    if media_type(headers) not in (ARROW, BYTES):
        raise unsupported(media_type(headers), ARROW)
    encoded = await read_body(request.receive, headers)
    resource = f"stream/{stream.name}"
    spending = storage.quotas.acquire(principal, resource, calls=0, size_bytes=len(encoded))
    if spending is not None:
        await spending
    return StagedOut(id=await storage.staged_writes.stage(stream, encoded))


@router.delete("/staged/{staged}", dependencies=[PUT], status_code=204)
async def discard_staged(stream: StreamPath, storage: StorageDep, staged: StagedId) -> None:
    """Discard a staged entry, unless it was committed."""
    await storage.staged_writes.discard(stream, staged)


@router.post("/commits", dependencies=[PUT, Depends(require_json)])
async def commit_staged(
    stream: StreamPath, storage: StorageDep, commit: Annotated[StagedCommit, Body()]
) -> CommitOut:
    """Append staged records as one batch of a writer, each record once.

    The first commit of a batch determines its entries. A repeated commit of the batch completes it, and other entries
    that the repeated call lists are discarded.
    """
    write = await storage.staged_writes.commit(
        stream, commit.writer_id, commit.batch_id, commit.staged
    )
    return CommitOut(done=write.done, records=write.records, staged=list(write.staged))


# Examples of the OpenAPI document

STAGED_ID = "9a8b7c6d5e4f30211203f4e5d6c7b8a9"

EXAMPLES = {
    "stage_records": Example(
        "/v1/streams/clicks/staged",
        status=201,
        answer={"id": STAGED_ID},
        repeat=Repeat.SAFE,  # what is not committed is forgotten
    ),
    "discard_staged": Example(f"/v1/streams/clicks/staged/{STAGED_ID}", status=204),
    "commit_staged": Example(
        "/v1/streams/clicks/commits",
        {"writer_id": "hourly-load", "batch_id": 7, "staged": []},
        answer={"done": True, "records": 0, "staged": []},
        repeat=Repeat.SAFE,
    ),
}
