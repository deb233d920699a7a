"""The service over HTTP, as the source and the sink need it. Tasks open clients of their own."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx
import pyarrow as pa

from pyspark_millstream.errors import DataLost, MillstreamError
from pyspark_millstream.options import Options
from pyspark_millstream.ranges import ShardExtent, Span

ARROW = "application/vnd.apache.arrow.stream"

_READ_BYTES = 10 * 1024 * 1024  # of records, in one call
_REPLY_S = 60.0
_TRIES = 6
_WAIT_S = 0.5
_AGAIN = frozenset({429, 502, 503, 504})


@dataclass(frozen=True)
class Committed:
    """How far a commit is: `done` once all of its records are in the stream."""

    done: bool
    records: int


class Client:
    """Calls of one stream. Raises MillstreamError."""

    def __init__(self, options: Options) -> None:
        key = options.api_key
        self._options = options
        self._stream = f"/v1/streams/{quote(options.stream, safe='')}"
        self._http = httpx.Client(
            base_url=options.url,
            headers={"authorization": f"Bearer {key}"} if key else {},
            timeout=_REPLY_S,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.close()

    def extents(self) -> list[ShardExtent]:
        """The stream's shards, open and closed, of those that are wanted."""
        told = self._call("GET", "/shards").json()["items"]
        return [
            ShardExtent(one["index"], one["start"], one["next"], one["open"], tuple(one["parents"]))
            for one in told
            if self._options.takes(one["index"])
        ]

    def offset_at(self, shard: int, time_ms: int) -> int:
        """The offset of the first record that arrived then or later; the shard's next one if none did."""
        moment = datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")
        told = self._call(
            "GET", f"/shards/{shard}/records", params={"time": moment, "limit": 1}
        ).json()
        records = told["records"]
        return int(records[0]["offset"] if records else told["next_offset"])

    def read(self, span: Span) -> Iterator[pa.RecordBatch]:
        """The records of a span, in parts, in the form of the archive's files. Raises DataLost."""
        at = span.first
        while at < span.end:
            asked = {"offset": at, "end": span.end, "bytes_max": _READ_BYTES}
            answer = self._call("GET", f"/shards/{span.shard}/table", params=asked, expired_ok=True)
            if answer.status_code == 410:
                at = self._lost(span, at, int(answer.json()["earliest_offset"]))
                continue
            gap = answer.headers.get("millstream-gap", "")
            if gap.endswith("expired"):
                self._lost(span, at, int(gap.split("-")[1].split()[0]))
            with pa.ipc.open_stream(answer.content) as reader:
                yield from reader
            at = max(at + 1, int(answer.headers["millstream-next-offset"]))

    def _lost(self, span: Span, first: int, next_offset: int) -> int:
        """Records are gone up to an offset, from which to go on. Raises DataLost unless that may be."""
        if self._options.fail_on_data_loss:
            raise DataLost(
                f"shard {span.shard} of stream {self._options.stream!r} has no records from {first} to "
                f"{min(next_offset, span.end) - 1} any more"
            )
        return next_offset

    def stage(self, table: bytes) -> str:
        """Put records aside, to be committed: an Arrow stream. Gives their id."""
        answer = self._call("POST", "/staged", content=table, headers={"content-type": ARROW})
        return str(answer.json()["id"])

    def discard(self, staged: Sequence[str]) -> None:
        """Forget what was put aside."""
        for one in staged:
            self._call("DELETE", f"/staged/{one}")

    def commit(self, writer_id: str, batch_id: int, staged: Sequence[str]) -> int:
        """Append what was put aside, or what the first commit of this batch named; gives the records."""
        asked = {"writer_id": writer_id, "batch_id": batch_id, "staged": list(staged)}
        while True:
            told = self._call("POST", "/commits", json=asked).json()
            if told["done"]:
                return int(told["records"])

    def _call(
        self, method: str, path: str, *, expired_ok: bool = False, **request: Any
    ) -> httpx.Response:
        """One call, again while the service is away. All that is called may be called twice."""
        problem = ""
        for attempt in range(_TRIES):
            if attempt:
                time.sleep(_WAIT_S * 2**attempt)
            try:
                answer = self._http.request(method, self._stream + path, **request)
            except httpx.TransportError as error:
                problem = f"{self._options.url} cannot be reached: {error}"
                continue
            if answer.is_success or (expired_ok and answer.status_code == 410):
                return answer
            problem = _problem(answer)
            if answer.status_code not in _AGAIN:
                break
        raise MillstreamError(problem)


def _problem(answer: httpx.Response) -> str:
    try:
        told = answer.json()
        return f"{told['detail']} ({told['code']})"
    except (ValueError, KeyError, TypeError):
        return f"the service answered {answer.status_code}"
