"""Calls for benchmarks of views, most of which wait for the worker."""

import json
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any
from urllib.parse import urlencode

from tests.bench.compare.clicks import Click
from tests.bench.wire import HttpConnection, call, good

WAIT_S, GIVE_UP_S = 20, 180.0
_RETRY_S = 0.05
APPENDED = 500  # records of a call
_NOT_YET = (404, 503)  # not planned, not active, or behind


def append_clicks(port: int, stream: str, clicks: Iterable[Click]) -> int:
    """Append many in a call, in order, and return the last offset."""
    remaining, last = iter(clicks), -1
    with HttpConnection(port) as connection:
        while batch := [*islice(remaining, APPENDED)]:
            last = append_batch(connection, stream, batch)
    return last


def append_batch(connection: HttpConnection, stream: str, batch: Iterable[Click]) -> int:
    """Append in one call, and return the last offset."""
    body = json.dumps({"records": [*map(_record, batch)]}).encode()
    appended = connection.call("POST", f"/v1/streams/{stream}/records", body)
    return int(json.loads(appended)["records"][-1]["offset"])


def _record(click: Click) -> dict[str, object]:
    moment = datetime.fromtimestamp(click.time_ms / 1_000, UTC)
    time_text = moment.isoformat(timespec="milliseconds")
    return {"key": click.page, "data": json.loads(click.data), "event_time": time_text}


def create_view(
    port: int, name: str, sql: str, stream: str, columns: str, **input_: object
) -> None:
    """Create a view as soon as a worker can plan it; `c` is its stream."""
    source = {"stream": stream, "columns": columns} | input_
    body = json.dumps({"sql": sql, "from": {"c": source}}).encode()
    with HttpConnection(port) as connection:
        _until_successful(connection, "PUT", f"/v1/views/{name}", body)


def wait_for(port: int, name: str, offset: int) -> None:
    """Wait until the rows of a view include a record of shard 0."""
    with HttpConnection(port) as connection:
        rows_including(connection, name, offset)


def rows_including(
    connection: HttpConnection, name: str, offset: int, words: Mapping[str, str] | None = None
) -> Any:
    """Return a page of rows as soon as they include a record of shard 0."""
    words = {"limit": "1", "after": f"0:{offset}", "wait_seconds": str(WAIT_S)} | dict(words or {})
    body = _until_successful(connection, "GET", f"/v1/views/{name}/rows?{urlencode(words)}")
    return json.loads(body)


def delete_view(port: int, name: str) -> None:
    """Delete a view."""
    call(port, "DELETE", f"/v1/views/{name}")


def _until_successful(
    connection: HttpConnection, method: str, path: str, body: bytes = b""
) -> bytes:
    give_up_at = time.monotonic() + GIVE_UP_S
    while True:
        connection.send(method, path, body)
        answer = connection.read()
        if answer.status not in _NOT_YET or time.monotonic() > give_up_at:
            return good(answer, f"{method} {path}")
        time.sleep(_RETRY_S)
