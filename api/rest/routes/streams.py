"""Streams: configuration."""

from api.native.dependencies import StreamPath
from api.native.examples import AT, CREATED, LATER, Example
from api.rest.definition_router import definition_router
from api.rest.noun import MeasurementOf, Noun, Schemas, catalog_verbs
from api.rest.schemas.stream import (
    ListedStream,
    StreamConfig,
    StreamMeasurement,
    StreamOut,
    StreamPage,
    StreamPatch,
    StreamStored,
)

STREAMS = Noun(
    name="stream",
    path=StreamPath,
    schemas=Schemas(
        StreamOut, StreamConfig, StreamStored, StreamPatch, StreamPage, listed=ListedStream
    ),
    measurement=MeasurementOf(
        StreamMeasurement, lambda storage, namespace: storage.time_series.latest_streams(namespace)
    ),
    verbs=catalog_verbs("stream"),
    is_etag_complete=True,
    descriptions={
        "put": """Create a stream, or replace its configuration.

            With `If-None-Match: *`, an existing stream is not changed: the response is 412,
            with the stream (`current`) and the requested fields that differ from it (`changes`).
            """,
        "get": "Show a stream's configuration.",
        "change": "Change fields of a stream's configuration.",
        "delete": "Delete a stream and its records.",
        "list": "List streams by name.",
    },
)
router = definition_router(STREAMS)


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
_MEASUREMENT = {
    "measured_at": LATER,
    "records": 1200,
    "bytes_held": 98304,
    "groups": 1,
    "lag_records": 41,
    "oldest_unread_at": AT,
    "records_in_per_second": 12.5,
    "bytes_in_per_second": 1024.0,
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
        "/v1/streams?prefix=cl&measured=true",
        answer={"items": [{**_STREAM, "measurement": _MEASUREMENT}], "next_cursor": None},
    ),
    "delete_stream": Example("/v1/streams/clicks", status=204),
}
