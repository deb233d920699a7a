"""Writing in two steps: put records aside, then commit them as a batch of a writer. For writers with many tasks."""

from typing import Annotated

from fastapi import APIRouter, Body, Depends, Path, Request
from pydantic import BaseModel, Field

from api.http.codecs import ARROW, media_type, unsupported
from api.http.routing import read_body
from api.native.dependencies import PrincipalDep, StorageDep, StreamPath, may, require_json
from api.rest.schema_base import Config
from storage.domain import limits
from storage.domain.access.permissions import Action

router = APIRouter(prefix="/v1/streams/{stream}", tags=["writes"])

PUT = Depends(may(Action.STREAM_PUT))

StagedId = Annotated[str, Path(description="As the answer told it.")]
_ARROW_BODY = {
    "requestBody": {
        "required": True,
        "content": {ARROW: {"schema": {"type": "string", "format": "binary"}}},
    }
}


class StagedOut(BaseModel):
    """What was put aside."""

    id: str


class StagedCommit(Config):
    """A batch of a writer: what it is made of, unless an earlier commit of it has said so."""

    writer_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,80}$")]
    batch_id: Annotated[int, Field(ge=0, le=limits.OFFSET_MAX)]
    staged: Annotated[list[str], Field(max_length=limits.STAGED_PARTS_MAX)]


class CommitOut(BaseModel):
    """How far a commit is: call again until it is `done`."""

    done: bool
    records: Annotated[int, Field(description="Appended so far.")]
    staged: Annotated[list[str], Field(description="What the batch is made of.")]


@router.post("/staged", dependencies=[PUT], status_code=201, openapi_extra=_ARROW_BODY)
async def stage_records(
    stream: StreamPath, storage: StorageDep, principal: PrincipalDep, request: Request
) -> StagedOut:
    """Put records aside, for a commit within a day: an Arrow stream with the column `data`, and perhaps `key`,
    `event_ts` and `headers`.

    Nobody reads them before they are committed.
    """
    headers = dict(request.scope["headers"])
    if media_type(headers) != ARROW:
        raise unsupported(media_type(headers), ARROW)
    encoded = await read_body(request.receive, headers)
    resource = f"stream/{stream.name}"
    spending = storage.quotas.spend(principal, resource, calls=0, size_bytes=len(encoded))
    if spending is not None:
        await spending
    return StagedOut(id=await storage.writing.stage(stream, encoded))


@router.delete("/staged/{staged}", dependencies=[PUT], status_code=204)
async def discard_staged(stream: StreamPath, storage: StorageDep, staged: StagedId) -> None:
    """Forget what was put aside, unless it was committed."""
    await storage.writing.discard(stream, staged)


@router.post("/commits", dependencies=[PUT, Depends(require_json)])
async def commit_staged(
    stream: StreamPath, storage: StorageDep, asked: Annotated[StagedCommit, Body()]
) -> CommitOut:
    """Append what was put aside, as one batch of a writer, each record once.

    The first commit of a writer's batch decides what it is made of. Whoever commits the batch again finishes that, and
    what this call names beside it is discarded.
    """
    write = await storage.writing.commit(stream, asked.writer_id, asked.batch_id, asked.staged)
    return CommitOut(done=write.done, records=write.records, staged=list(write.staged))
