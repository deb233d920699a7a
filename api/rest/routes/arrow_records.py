"""Bulk reads of records as an Arrow stream, for Spark and other columnar readers."""

from typing import Annotated, Any, cast

from fastapi import APIRouter, Depends, Query, Request, Response

from api.http.codecs import ARROW, BYTES
from api.native.dependencies import ShardPath, StorageDep, StreamPath, may
from api.native.examples import Example
from api.native.native_route import NativeRoute
from api.observability.metric_buffers import ProtocolMetrics
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.streams.arrow_reader import ArrowPage

router = APIRouter(prefix="/v1/streams/{stream}", tags=["streams"], route_class=NativeRoute)

READ = Depends(may(Action.STREAM_READ))

Offset = Annotated[int, Query(ge=0, le=limits.OFFSET_MAX, description="Offset to start at.")]
End = Annotated[
    int | None,
    Query(ge=1, le=limits.OFFSET_MAX, description="Read only records before this offset."),
]
StreamId = Annotated[
    str | None,
    Query(
        pattern=r"^[0-9a-f]{16}$",
        description="The stream that the offset belongs to, from its list of shards: if it was deleted and "
        "another stream has its name, the answer is 410 `stream_recreated`.",
    ),
]
BytesMax = Annotated[
    int,
    Query(
        ge=1,
        le=limits.TABLE_BYTES_MAX,
        description="Maximum bytes of record data; at least one record is returned.",
    ),
]


def _header(description: str, kind: str = "integer") -> dict[str, Any]:
    return {"description": description, "schema": {"type": kind}}


_BINARY = {"type": "string", "format": "binary"}
_RESPONSE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "An Arrow IPC stream with the columns `offset`, `ts`, `event_ts`, `key`, `data` and `headers`.",
        "content": {kind: {"schema": _BINARY} for kind in (BYTES, ARROW)},  # generators know BYTES
        "headers": {
            "Millstream-Next-Offset": _header("Offset to continue at."),
            "Millstream-Start": _header("The oldest readable offset."),
            "Millstream-Tip": _header("The next offset to write."),
            "Millstream-Records": _header("Number of records."),
            "Millstream-Tier": _header("`hot` or `archive`.", "string"),
            "Millstream-Ended": _header(
                "Whether the shard is closed and has been read to its end.", "boolean"
            ),
            "Millstream-Gap": _header(
                "`first-next reason`: offsets before these records that are not available"
                " because they are `expired`, a `hole` or from a `failover`.",
                "string",
            ),
        },
    }
}


@router.get(
    "/shards/{shard}/table", dependencies=[READ], response_class=Response, responses=_RESPONSE
)
async def read_table(
    stream: StreamPath,
    shard: ShardPath,
    storage: StorageDep,
    request: Request,
    offset: Offset,
    end: End = None,
    stream_id: StreamId = None,
    bytes_max: BytesMax = limits.TABLE_BYTES_MAX,
) -> Response:
    """Read records of a shard in order, as an Arrow stream.

    For bulk reads. Response headers contain the offset to continue at and the extent of the shard. Records in the hot
    store and in the archive are read as one log. The content type is `application/octet-stream` if `Accept` names it and
    not `application/vnd.apache.arrow.stream`.
    """
    table = await storage.arrow_reader.read(
        stream, shard, offset=offset, end=end, bytes_max=bytes_max, stream_id=stream_id
    )
    cast(ProtocolMetrics, request.app.state.stream_metrics).read(table.records)
    kind = _content_type(request.headers.get("accept", ""))
    return Response(table.encoded, media_type=kind, headers=_headers(table))


def _content_type(accept: str) -> str:
    return BYTES if BYTES in accept and ARROW not in accept else ARROW


def _headers(table: ArrowPage) -> dict[str, str]:
    headers = {
        "millstream-next-offset": str(table.next_offset),
        "millstream-start": str(table.start),
        "millstream-tip": str(table.tip),
        "millstream-records": str(table.records),
        "millstream-tier": table.tier,
        "millstream-ended": "true" if table.ended else "false",
    }
    if table.gap is not None:
        headers["millstream-gap"] = f"{table.gap.first}-{table.gap.next} {table.gap.reason}"
    return headers


# Examples of the OpenAPI document

EXAMPLES = {
    "read_table": Example("/v1/streams/clicks/shards/0/table?offset=0&bytes_max=1000000"),
}
