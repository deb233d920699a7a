"""Shards of a stream: splits, merges, fencing, truncation, and the key index."""

from typing import Annotated

import msgspec
from fastapi import APIRouter, Depends, Path, Response

from api.http.codecs import JSON
from api.native.audited_route import AuditedRoute
from api.native.dependencies import ShardPath, StorageDep, StreamPath, may, require_json
from api.native.examples import AT, LATER, RECORD, STREAM_ID, Example, Repeat
from api.native.records import RecordOut
from api.rest.schemas.shard import (
    FenceConfig,
    FenceOut,
    Reshard,
    ShardLoadOut,
    ShardOut,
    Shards,
    StreamLoad,
    Truncate,
    TruncatedOut,
)
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.errors import OutcomeUnknown, StorageBusy, StorageUnavailable, ValidationFailed
from storage.domain.names import StreamName

router = APIRouter(prefix="/v1/streams/{stream}", tags=["streams"], route_class=AuditedRoute)

MANAGE = Depends(may(Action.STREAM_MANAGE))
SEE = Depends(may(Action.STREAM_LIST))
READ = Depends(may(Action.STREAM_READ))
JSON_ONLY = Depends(require_json)
KeyPath = Annotated[str, Path(description="The partition key.")]
_RECORD = f"#/components/schemas/{RecordOut.__name__}"


@router.get("/shards", dependencies=[SEE])
async def list_shards(stream: StreamPath, storage: StorageDep) -> Shards:
    """List the shards of a stream, open and closed, with the extent of their logs."""
    return await _shards(storage, stream)


@router.get("/load", dependencies=[READ])
async def get_stream_load(stream: StreamPath, storage: StorageDep) -> StreamLoad:
    """Return the load of each open shard over the last minute.

    It has the shard's hottest keys, and where to split it.
    """
    loads = await storage.shard_loads.of_stream(stream)
    return StreamLoad(
        window_seconds=limits.SHARD_LOAD_WINDOW_MS / limits.SECOND_MS,
        items=[ShardLoadOut.from_domain(load) for load in loads],
    )


@router.post("/reshard", dependencies=[MANAGE, JSON_ONLY])
async def reshard_stream(stream: StreamPath, storage: StorageDep, change: Reshard) -> Shards:
    """Split a shard, merge two adjacent shards, or reshard to a number of equal shards.

    Reads and writes continue, and records with the same key stay in order. Returns the stream's shards after the reshard.
    Only one reshard of a stream runs at a time.
    """
    streams = storage.streams
    match change:
        case Reshard(shards=int(count), split=None, merge=None):
            await streams.resharder.set_shard_count(stream, count)
        case Reshard(shards=None, split=None, merge=(first, second)):
            await streams.resharder.merge(stream, first, second)
        case Reshard(shards=None, split=split, merge=None) if split is not None:
            hash_key = (
                split.at() if split.at_hash_key else await _middle(storage, stream, split.shard)
            )
            await streams.resharder.split(stream, split.shard, hash_key)
        case _:
            raise ValidationFailed.at(
                "/shards", "Specify exactly one of shards, split and merge", "exclusive"
            )
    try:
        return await _shards(storage, stream)
    except (StorageUnavailable, StorageBusy):  # the reshard is done, and its result cannot be read
        raise OutcomeUnknown from None


async def _shards(storage: Storage, stream: StreamName) -> Shards:
    states = await storage.record_reader.shards(stream)
    items = [ShardOut.from_domain(state) for state in states]
    return Shards(stream_id=states[0].stream_id, items=items)


async def _middle(storage: Storage, stream: StreamName, shard: int) -> int:
    parent = (await storage.catalog.fresh_stream(stream)).shard(shard)
    return (parent.first_hash_key + parent.last_hash_key + 1) // 2


@router.get(
    "/keys/{key:path}",
    dependencies=[READ],
    response_class=Response,
    responses={200: {"content": {JSON: {"schema": {"$ref": _RECORD}}}}},
)
async def get_latest_record(stream: StreamPath, key: KeyPath, storage: StorageDep) -> Response:
    """Return the latest record of a key, if the stream has a `key_index`.

    The index covers records routed by their key since it was enabled.
    """
    shard, record = await storage.record_reader.latest_of_key(stream, key)
    latest = RecordOut.from_domain(record, False, shard)
    return Response(msgspec.json.encode(latest), media_type=JSON)


@router.put("/shards/{shard}/fence", dependencies=[MANAGE, JSON_ONLY])
async def put_fence(
    stream: StreamPath, shard: ShardPath, storage: StorageDep, fence: FenceConfig
) -> FenceOut:
    """Set the fencing token of a shard. Appends must then carry this token.

    With `expected`, only if that is the current token. An empty token removes the fence.
    """
    await storage.streams.set_fence(stream, shard, fence.token, fence.expected)
    return FenceOut(shard=shard, fenced=fence.token != "")


@router.post("/shards/{shard}/truncate", dependencies=[MANAGE, JSON_ONLY])
async def truncate_shard(
    stream: StreamPath, shard: ShardPath, storage: StorageDep, cut: Truncate
) -> TruncatedOut:
    """Permanently delete the records of a shard before an offset."""
    start = await storage.streams.truncate(stream, shard, cut.before)
    return TruncatedOut(shard=shard, start=start)


# Examples of the OpenAPI document

_SHARD = {
    "index": 0,
    "open": True,
    "parents": [],
    "opened_at": AT,
    "closed_at": None,
    "first_hash_key": "0",
    "last_hash_key": "170141183460469231731687303715884105727",
    "start": 0,
    "next": 2,
    "bytes": 64,
    "fenced": False,
}
_CHILD = {
    **_SHARD,
    "index": 2,
    "parents": [0],
    "last_hash_key": "85070591730234615865843651857942052863",
    "next": 0,
    "bytes": 0,
}

EXAMPLES = {
    "list_shards": Example(
        "/v1/streams/clicks/shards", answer={"stream_id": STREAM_ID, "items": [_SHARD]}
    ),
    "get_stream_load": Example(
        "/v1/streams/clicks/load",
        answer={
            "window_seconds": 60,
            "items": [
                {
                    "shard": 0,
                    "records_per_second": 812.5,
                    "bytes_per_second": 104_000,
                    "sampled": 1000,
                    "keyless_share": 0,
                    "keys": [{"key": "user-1", "share": 0.31}, {"key": "user-7", "share": 0.12}],
                    "split": {
                        "at_hash_key": "85070591730234615865843651857942052864",
                        "larger_share": 0.52,
                    },
                }
            ],
        },
    ),
    "get_latest_record": Example(
        "/v1/streams/clicks/keys/user-1",
        answer={"shard": 0, **RECORD, "content_type": "application/json"},
        before=(
            ("PATCH", "/v1/streams/clicks", {"key_index": True}),
            (
                "POST",
                "/v1/streams/clicks/records",
                {"records": [{"data": {"page": "/"}, "key": "user-1"}]},
            ),
        ),
    ),
    "truncate_shard": Example(
        "/v1/streams/clicks/shards/0/truncate",
        {"before": 1},
        answer={"shard": 0, "start": 1},
        repeat=Repeat.SAFE,
    ),
    "put_fence": Example(
        "/v1/streams/clicks/shards/1/fence",
        {"token": "writer-7"},
        answer={"shard": 1, "fenced": True},
    ),
    "reshard_stream": Example(
        "/v1/streams/clicks/reshard",
        {"split": {"shard": 0}},
        answer={
            "stream_id": STREAM_ID,
            "items": [{**_SHARD, "open": False, "closed_at": LATER}, _CHILD],
        },
        repeat=Repeat.SAFE,  # what was split or merged is closed, and refused
    ),
}
