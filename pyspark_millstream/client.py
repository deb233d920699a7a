"""HTTP client of the source and the sink; each process keeps one connection pool."""

import atexit
import os
import ssl
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import httpx
import pyarrow as pa

from pyspark_millstream.errors import DataLost, MillstreamError
from pyspark_millstream.options import Options
from pyspark_millstream.ranges import Extents, ShardExtent, Span

ARROW = "application/vnd.apache.arrow.stream"

_GONE = frozenset({410, 416})  # of a read: the requested records no longer exist
_EXPIRED = " expired"
_REPLY_S = 60.0
_IDLE_S = 30.0  # the service closes idle connections after 120 s
_CLIENTS = 8
_TRIES = 6
_WAIT_S = 0.5
_AGAIN = frozenset({429, 502, 503, 504})


class _HttpClient(httpx.Client):
    """HTTP client that closes with its last reference, in the process that made it."""

    def __init__(self, process_id: int, url: str, api_key: str | None) -> None:
        self._process_id = process_id
        super().__init__(
            base_url=url,
            headers={"authorization": f"Bearer {api_key}"} if api_key else {},
            timeout=_REPLY_S,
            limits=httpx.Limits(keepalive_expiry=_IDLE_S),
            verify=url.startswith("https") or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        )

    def __del__(self) -> None:
        if self._process_id == os.getpid():  # else the pool is locked by a thread of the parent
            self.close()


@lru_cache(maxsize=_CLIENTS)
def _http_client(process_id: int, url: str, api_key: str | None) -> httpx.Client:
    """Return the HTTP client of this process for a service and a key.

    A forked process has its own. The certificate authorities, which take 40 ms of processor time to read, are for https.
    Of two threads that both need the first client, one uses its own for that call.
    """
    return _HttpClient(process_id, url, api_key)


atexit.register(_http_client.cache_clear)


@dataclass(frozen=True)
class Committed:
    """The progress of a commit: `done` once all of its records are in the stream."""

    done: bool
    records: int


class Client:
    """Client of one stream.

    Raises MillstreamError.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._stream = f"/v1/streams/{quote(options.stream, safe='')}"
        self._http = _http_client(os.getpid(), options.url, options.api_key)

    def extents(self) -> Extents:
        """Return the selected shards of the stream, open and closed."""
        listed = self._call("GET", "/shards").json()
        shards = [
            ShardExtent(one["index"], one["start"], one["next"], one["open"], tuple(one["parents"]))
            for one in listed["items"]
        ]
        missing = (self._options.shards or frozenset()) - {one.shard for one in shards}
        selected = [one for one in shards if self._options.takes(one.shard)]
        return Extents(listed["stream_id"], selected, missing)

    def offset_at(self, stream_id: str, shard: int, time_ms: int) -> int:
        """Return the offset of a shard's first record that arrived at `time_ms` or later.

        The shard's next offset if there is none.
        """
        moment = datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")
        params = {"time": moment, "limit": 1, "stream_id": stream_id}
        answer = self._call("GET", f"/shards/{shard}/records", params=params).json()
        records = answer["records"]
        return int(records[0]["offset"] if records else answer["next_offset"])

    def read(self, span: Span) -> Iterator[pa.RecordBatch]:
        """Yield the records of a span, in parts, in the format of the archive's files.

        Raises DataLost.
        """
        position = span.first
        while position < span.end:
            params: dict[str, Any] = {"offset": position, "end": span.end}
            params |= {"stream_id": span.stream_id} if span.stream_id else {}
            answer = self._call("GET", f"/shards/{span.shard}/table", params=params, refused=_GONE)
            if not answer.is_success:
                # Below the oldest record, beyond what a store still has, or in a deleted stream.
                position = self._lost(
                    span, position, answer.json().get("earliest_offset", span.end)
                )
                continue
            gap = answer.headers.get("millstream-gap", "")
            if gap.endswith(_EXPIRED):
                self._lost(span, position, int(gap.removesuffix(_EXPIRED).split("-")[1]))
            with pa.ipc.open_stream(answer.content) as reader:
                yield from reader
            following = int(answer.headers["millstream-next-offset"])
            position = following if following > position else self._lost(span, position, span.end)

    def _lost(self, span: Span, first: int, next_offset: int) -> int:
        """Return the offset to continue at, behind records that no longer exist.

        Raises DataLost unless failOnDataLoss is off.
        """
        if self._options.fail_on_data_loss:
            raise DataLost(
                f"shard {span.shard} of stream {self._options.stream!r} no longer has the records from {first} to {min(next_offset, span.end) - 1}"
            )
        return next_offset

    def stage(self, table: bytes) -> str:
        """Stage records, to be committed: an Arrow stream; return their id."""
        answer = self._call("POST", "/staged", content=table, headers={"content-type": ARROW})
        return str(answer.json()["id"])

    def discard(self, staged: Sequence[str]) -> None:
        """Delete staged records."""
        for staged_id in staged:
            self._call("DELETE", f"/staged/{staged_id}")

    def commit(self, writer_id: str, batch_id: int, staged: Sequence[str]) -> int:
        """Append the staged records, or those of this batch's first commit; return their number."""
        body = {"writer_id": writer_id, "batch_id": batch_id, "staged": list(staged)}
        while True:
            committed = self._call("POST", "/commits", json=body).json()
            if committed["done"]:
                return int(committed["records"])

    def _call(
        self, method: str, path: str, *, refused: Collection[int] = (), **request: Any
    ) -> httpx.Response:
        """Call the service, retrying while it is unreachable.

        Every call may be made twice. Responses whose status is in `refused` are returned to the caller.
        """
        problem = ""
        for attempt in range(_TRIES):
            if attempt:
                time.sleep(_WAIT_S * 2**attempt)
            try:
                answer = self._http.request(method, self._stream + path, **request)
            except httpx.TransportError as error:
                problem = f"{self._options.url} is unreachable: {error}"
                continue
            if answer.is_success or answer.status_code in refused:
                return answer
            problem = _problem(answer)
            if answer.status_code not in _AGAIN:
                break
        raise MillstreamError(problem)


def _problem(answer: httpx.Response) -> str:
    try:
        problem = answer.json()
        return f"{problem['detail']} ({problem['code']})"
    except (ValueError, KeyError, TypeError):
        return f"the service returned status {answer.status_code}"
