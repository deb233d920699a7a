"""Reading the records that a match takes: the service selects them, and sends JSON Lines."""

import base64
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import httpx
import msgspec

from api.cli.errors import CliError
from api.cli.grammar.parsers import StreamPosition
from millstream_client import Gap, Record, Stream
from millstream_client.calls import Call
from millstream_client.gaps import OnGap
from millstream_client.messages import path
from millstream_client.records import moment_text

_PAGE_RECORDS = 1_000

_Line = dict[str, Any]


def matching_records(
    source: Stream,
    match: Any,
    position: StreamPosition,
    *,
    shard: int | None,
    records_max: int | None,
    on_gap: OnGap,
) -> Iterator[Record]:
    """Read the records of a stream that a match takes, from a position to the end.

    Raises CliError.
    """
    lines = _event_lines(source, shard, match, _start(position))
    return islice(_records(lines, on_gap), records_max)


def matching_offsets(source: Stream, match: Any, shard: int, first: int) -> set[tuple[int, int]]:
    """Return shard and offset of a shard's records that a match takes, from an offset on."""
    lines = _event_lines(source, shard, match, {"offset": first})
    return {(record.shard, record.offset) for record in _records(lines, lambda gap: None)}


def _start(position: StreamPosition) -> dict[str, Any]:
    if position.offset is not None:
        return {"offset": position.offset}
    if position.time is not None:
        return {"time": moment_text(position.time)}
    return {"from": position.end or "earliest"}


def _event_lines(
    source: Stream, shard: int | None, match: Any, query: Mapping[str, Any]
) -> Iterator[_Line]:
    """Yield the lines of one page after another."""
    page = {"match": msgspec.json.encode(match).decode(), "limit": _PAGE_RECORDS}
    while True:
        lines = source.transport.call(_call(source, shard, {**page, **query}))
        yield from lines
        if lines[-1].get("reason") not in {"limit", "draining"}:
            return
        query = {"cursor": lines[-1]["next_cursor"]}


def _call(source: Stream, shard: int | None, query: Mapping[str, Any]) -> Call[list[_Line]]:
    name = "read_events" if shard is None else "read_shard_events"
    shards = () if shard is None else ("shards", shard)
    location = path("streams", source.name, *shards, "events")
    accept = {"accept": "application/jsonl"}
    return Call(name, "GET", location, _read_lines, params=query, headers=accept)


def _read_lines(response: httpx.Response) -> list[_Line]:
    """Decode a page, whose last line is its end. Raises CliError for one that was cut off."""
    lines: list[_Line] = [msgspec.json.decode(line) for line in response.content.splitlines()]
    if not lines or lines[-1].get("type") not in {"end", "error"}:
        raise CliError("the service ended its answer before all records were sent; try again")
    return lines


def _records(lines: Iterator[_Line], on_gap: OnGap) -> Iterator[Record]:
    for line in lines:
        kind = line.get("type")
        if kind is None:
            yield _record(line)
        elif kind == "gap":
            on_gap(msgspec.convert(line, Gap))
        elif kind == "error":
            raise CliError(line["problem"]["detail"])


def _record(line: _Line) -> Record:
    return msgspec.convert({**line, "data": _data(line)}, Record)


def _data(line: _Line) -> bytes:
    if "data_base64" in line:
        return base64.b64decode(line["data_base64"])
    data = line.get("data", "")
    return data.encode() if isinstance(data, str) else msgspec.json.encode(data)
