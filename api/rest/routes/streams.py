"""Streams: configuration."""

from typing import Annotated

from fastapi import APIRouter, Body, Depends, Response

from api.native.audited_route import AuditedRoute
from api.native.cursors import decode_cursor, page_of
from api.native.dependencies import (
    Cursor,
    Limit,
    Prefix,
    PrincipalDep,
    StorageDep,
    StreamPath,
    may,
    require_json,
)
from api.native.examples import AT, CREATED, LATER, Example
from api.rest.conditional_requests import (
    IfMatch,
    IfNoneMatch,
    etag,
    expected_version,
    is_create_only,
    is_unchanged,
    note_outcome,
)
from api.rest.definition_changes import DryRun, comparing
from api.rest.schemas.stream import StreamConfig, StreamOut, StreamPage, StreamPatch, StreamStored
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.errors import PreconditionFailed, StreamNotFound
from storage.domain.streams.stream import Stream

router = APIRouter(prefix="/v1/streams", tags=["streams"], route_class=AuditedRoute)

MANAGE = Depends(may(Action.STREAM_MANAGE))
SEE = Depends(may(Action.STREAM_LIST))
JSON_ONLY = Depends(require_json)


@router.put(
    "/{stream}",
    dependencies=[MANAGE, JSON_ONLY],
    responses={201: {"model": StreamStored, "description": "Created"}},
)
async def put_stream(
    stream: StreamPath,
    storage: StorageDep,
    response: Response,
    config: Annotated[StreamConfig, Body(default_factory=StreamConfig)],
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
    dry_run: DryRun = False,
) -> StreamStored:
    """Create a stream, or replace its configuration.

    With `If-None-Match: *`, an existing stream is not changed: the response is 412,
    with the stream (`current`) and the requested fields that differ from it (`changes`).
    """
    create_only = is_create_only(if_none_match)
    if if_match == "*":
        await _require_stream(storage, stream)
    with comparing(
        config, lambda definition: StreamConfig.from_domain(definition.spec), StreamOut.from_domain
    ):
        put = await storage.catalog.put_stream(
            stream,
            config.to_domain(),
            if_match=expected_version(if_match),
            create_only=create_only,
            dry_run=dry_run,
        )
    note_outcome(response, put.definition.version, created=put.created and not dry_run)
    return StreamStored.of(put, dry_run=dry_run)


async def _require_stream(storage: StorageDep, stream: StreamPath) -> None:
    """Raise PreconditionFailed unless the stream exists."""
    try:
        await storage.catalog.fresh_stream(stream)
    except StreamNotFound:
        raise PreconditionFailed("If-Match: * requires an existing stream.") from None


def _stream_response(stream: Stream, response: Response) -> StreamOut:
    response.headers["etag"] = etag(stream.version)
    return StreamOut.from_domain(stream)


@router.get(
    "/{stream}",
    dependencies=[SEE],
    response_model=StreamOut,
    responses={304: {"description": "Not modified"}},
)
async def get_stream(
    stream: StreamPath, storage: StorageDep, response: Response, if_none_match: IfNoneMatch = None
) -> StreamOut | Response:
    """Show a stream's configuration."""
    stored = await storage.catalog.fresh_stream(stream)
    if is_unchanged(if_none_match, stored.version):
        return Response(status_code=304, headers={"etag": etag(stored.version)})
    return _stream_response(stored, response)


@router.patch("/{stream}", dependencies=[MANAGE, JSON_ONLY])
async def change_stream(
    stream: StreamPath,
    storage: StorageDep,
    response: Response,
    patch: StreamPatch,
    if_match: IfMatch = None,
) -> StreamOut:
    """Change fields of a stream's configuration."""
    stored = await storage.catalog.change_stream(
        stream, patch.apply, if_match=expected_version(if_match)
    )
    return _stream_response(stored, response)


@router.delete("/{stream}", dependencies=[MANAGE], status_code=204)
async def delete_stream(stream: StreamPath, storage: StorageDep, if_match: IfMatch = None) -> None:
    """Delete a stream and its records."""
    await storage.catalog.delete_stream(stream, if_match=expected_version(if_match))


@router.get("", dependencies=[SEE])
async def list_streams(
    storage: StorageDep,
    principal: PrincipalDep,
    prefix: Prefix = "",
    limit: Limit = limits.PAGE_ITEMS_DEFAULT,
    cursor: Cursor = "",
) -> StreamPage:
    """List streams by name."""
    about = ("streams", principal.namespace, prefix)
    after = decode_cursor(cursor, about, str) if cursor else ""
    streams = await storage.catalog.list_streams(
        principal.namespace, prefix=prefix, after=after, limit=limit + 1
    )
    page = page_of(
        streams,
        limit,
        about,
        lambda stream: stream.name.name,
        lambda stream: principal.policy.allows(Action.STREAM_LIST, stream.name.name),
    )
    return StreamPage(
        items=[StreamOut.from_domain(stream) for stream in page.items], next_cursor=page.next_cursor
    )


# Examples of the OpenAPI document

_STREAM = {
    "name": "clicks",
    "shards": 2,
    "open_shards": 2,
    "mode": "provisioned",
    "retention_seconds": 604800,
    "retention_bytes": None,
    "retention_records": None,
    "drop_when_read": False,
    "record_bytes_max": 1048576,
    "event_times": "client_prefer",
    "event_time_skew_seconds_max": None,
    "key_index": False,
    "archive": True,
    "archive_lag_seconds": 300,
    "hot_retention_seconds": 86400,
    "hot_bytes_max": 1073741824,
    "tags": {},
    "version": 1,
    "created_at": AT,
    "changed_at": AT,
}

EXAMPLES = {
    "put_stream": Example("/v1/streams/clicks", {"shards": 2}, 201, {**_STREAM, **CREATED}),
    "get_stream": Example("/v1/streams/clicks", answer=_STREAM),
    "change_stream": Example(
        "/v1/streams/clicks",
        {"retention_seconds": 86400},
        200,
        {**_STREAM, "retention_seconds": 86400, "version": 2, "changed_at": LATER},
    ),
    "list_streams": Example(
        "/v1/streams?prefix=cl", answer={"items": [_STREAM], "next_cursor": None}
    ),
    "delete_stream": Example("/v1/streams/clicks", status=204),
}
