"""Clients of a recreated stream: what they record, and when they begin again."""

from collections.abc import Callable
from random import Random
from typing import Any, cast

import httpx
import pytest

from tests.chaos.callers import Caller
from tests.chaos.history import Gap, History, Kind, Operation, Outcome, Seen
from tests.chaos.recreation.push_readers import SUBSCRIBED, SocketReader
from tests.chaos.recreation.readers import CursorReader, Member, ShardReader, Track
from tests.chaos.recreation.stream import Writer, log_of
from tests.chaos.sockets import Session

Answer = Callable[[httpx.Request], httpx.Response]


def caller_of(answer: Answer) -> Caller:
    http = httpx.AsyncClient(transport=httpx.MockTransport(answer), base_url="http://api")
    return Caller("c", History(), http)


def problem(status: int, code: str) -> httpx.Response:
    return httpx.Response(status, json={"code": code})


class Stream:
    """A fake stream with one record in shard 0; `number` 0 while there is none."""

    def __init__(self) -> None:
        self.number = 1
        self.queries: list[dict[str, str]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        query = dict(request.url.params)
        self.queries.append(query)
        if not self.number:
            return problem(404, "stream_not_found")
        position = query.get("stream_id") or query.get("cursor")
        if position not in (None, str(self.number)):
            return problem(410, "stream_recreated")
        record = {"shard": 0, "offset": 0, "data": f"{self.number}:0:0"}
        is_unread = position is None and not request.url.path.endswith("shards/1/records")
        page = {"records": [record] if is_unread else [], "gaps": [], "next_offset": 1}
        return httpx.Response(
            200, json={**page, "stream_id": str(self.number), "next_cursor": str(self.number)}
        )


def reads(caller: Caller) -> list[tuple[str, str]]:
    """The logs and codes of the reads that returned records or failed."""
    return [
        (operation.log, operation.code)
        for operation in caller.history.operations
        if operation.seen or operation.outcome is Outcome.FAIL
    ]


@pytest.mark.parametrize("reader_class", [ShardReader, CursorReader])
async def test_reader_begins_again_after_a_rejection(reader_class):
    """Not while the stream is missing: then it keeps its position, for the next one to reject."""
    stream = Stream()
    caller = caller_of(stream)
    reader = reader_class(caller)
    await reader.read()
    stream.number = 0
    await reader.read()
    stream.number = 2

    await reader.read()
    await reader.read()

    codes = [code for _, code in reads(caller)]
    assert codes.count("stream_recreated") == 1
    assert "stream_not_found" in codes
    assert [log for log, code in reads(caller) if not code] == [log_of(1), log_of(2)]


def test_track_records_a_skipped_offset():
    caller = caller_of(lambda _: problem(500, ""))
    track = Track(caller)

    track.note(0.0, [Seen(value="1:0:0", offset=0)])
    track.note(0.0, [Seen(value="1:0:2", offset=2)])
    track.note(0.0, [Seen(value="2:0:5", offset=5)])

    assert [(one.log, one.first) for one in caller.history.operations] == [
        (log_of(1), -1),
        (log_of(1), 1),
        (log_of(2), -1),
    ]
    assert track.reached == {(1, 0): 3, (2, 0): 6}


def test_track_keeps_a_gap_until_the_records_behind_it():
    caller = caller_of(lambda _: problem(500, ""))
    track, gap = Track(caller), Gap(1, 0, 7, "expired")

    track.note(0.0, [], [gap])
    track.note(0.0, [Seen(value="1:0:0", offset=0)])
    track.note(0.0, [Seen(value="1:1:0", shard=1, offset=7)])

    assert [one.gaps for one in caller.history.operations] == [(), (gap,)]


async def test_member_commits_its_last_token_in_the_next_group():
    commits: list[Any] = []
    number = 1

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            commits.append(request.content)
            return problem(409, "stale_generation")
        record = {"shard": 0, "offset": 0, "data": f"{number}:0:0"}
        page = {"token": f"token {number}", "records": [record], "gaps": []}
        return httpx.Response(200, json=page)

    caller = caller_of(answer)
    member = Member(caller)
    await member.read()
    number = 2
    await member.read()

    tokens = [f'{{"token":"token {number}"}}'.encode() for number in (1, 1, 2)]
    logs = [one.log for one in caller.history.operations if one.kind is Kind.COMMIT]
    assert commits == tokens
    assert logs == [log_of(1), log_of(1), log_of(2)]


class Subscriptions:
    """A fake session; answers each frame with the next of these codes, or with `ok`."""

    def __init__(self, *codes: str) -> None:
        self.frames: list[tuple[str, Any]] = []
        self._codes = [*codes]

    async def request(self, type_: str, **fields: Any) -> dict[str, Any]:
        self.frames.append((type_, fields.get("start")))
        if code := self._codes.pop(0):
            return {"type": "error", "problem": {"status": 400, "code": code}}
        return {"type": "ok", "stream_id": "first"}

    async def send_frame(self, type_: str, **fields: Any) -> None:
        """Accept credit."""


def socket_reader(session: Subscriptions) -> SocketReader:
    reader = SocketReader(caller_of(lambda _: problem(500, "")), "http://api", Random(1))
    reader.session = cast(Session, session)
    return reader


async def test_socket_reader_keeps_its_position_until_rejected():
    session = Subscriptions("", "stream_not_found", "stream_recreated", "")
    reader = socket_reader(session)
    await reader.read()
    record = {"data": "1:0:0", "offset": 0}
    await reader.hears({"type": "records", "shard": 0, "records": [record], "next_offset": 1})
    await reader.hears({"type": "error", "problem": {"status": 410, "code": "stream_not_found"}})

    for _ in range(3):
        await reader.read()

    resumed = {"offsets": {"0": 1}, "stream_id": "first"}
    starts = [start for _, start in session.frames]
    assert starts == [{"from": "earliest"}, resumed, resumed, {"from": "earliest"}]


async def test_socket_reader_ends_a_subscription_whose_answer_was_lost():
    session = Subscriptions(SUBSCRIBED, "", "")
    reader = socket_reader(session)

    await reader.read()
    await reader.read()

    assert [type_ for type_, _ in session.frames] == ["subscribe", "unsubscribe", "subscribe"]


def appends(caller: Caller) -> list[Operation]:
    return [one for one in caller.history.operations if one.kind is Kind.APPEND]


@pytest.mark.parametrize("code", ["stream_not_found", "sequence_out_of_order"])
async def test_writer_creates_the_next_stream_when_its_own_is_gone(code):
    is_gone = False

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "PUT":
            return httpx.Response(201, json={})
        if is_gone:
            return problem(404, code)
        shard = int(request.url.path.split("/")[-2])
        return httpx.Response(200, json={"records": [{"shard": shard, "offset": 3}]})

    caller = caller_of(answer)
    writer = Writer(caller, Random(1))
    await writer.write()
    is_gone = True
    await writer.write()
    is_gone = False
    await writer.write()

    deletions = [one.log for one in caller.history.operations if one.kind is Kind.DELETED]
    assert [one.log for one in appends(caller)] == [log_of(1), log_of(1), log_of(2)]
    assert deletions == [log_of(1)]


async def test_writer_repeats_an_append_with_an_unknown_outcome():
    caller = caller_of(
        lambda request: (
            httpx.Response(201, json={})
            if request.method == "PUT"
            else problem(504, "storage_timeout")
        )
    )
    writer = Writer(caller, Random(1))

    accepted = [await writer.write() for _ in range(20)]

    assert not any(accepted)
    assert {value for one in appends(caller) for value in one.values} == {"1:0:0", "1:1:0"}
