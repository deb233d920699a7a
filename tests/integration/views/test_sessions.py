"""Views of sessions: rows that replace others, and what sinks and reads see of that."""

import asyncio
import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from spark_worker.views.executor import Partials, State
from spark_worker.views.sessions import merge_sessions, session_keys
from storage.bootstrap import Storage
from storage.domain.errors import ValidationFailed
from storage.domain.names import QueueName, StreamName
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.stream import ReadFrom, StreamSpec
from storage.domain.views.plan import KeyColumn, PlanResult, ViewColumn, ViewPlan
from storage.domain.views.progress import RowChange
from storage.domain.views.row_key import WINDOW, encode_key, key_values, session_key
from storage.domain.views.rows import RowQuery
from storage.domain.views.sink import Emit, ViewSink
from storage.domain.views.sources import SourceMode, SourceRange
from tests.integration.views.conftest import NAME, Worker, spec_of

pytestmark = pytest.mark.one_store

GAP_MS = 10_000
SESSIONS = ViewPlan(
    columns=(
        ViewColumn("user", "string"),
        ViewColumn("since", "timestamp"),
        ViewColumn("clicks", "bigint"),
    ),
    key=(KeyColumn("user", "string"), KeyColumn("since", WINDOW, is_window=True)),
    session_gap_ms=GAP_MS,
)
CHANGES, TOTALS = StreamName("changes"), StreamName("totals")
ALERTS = QueueName("alerts")
INTO = (
    ViewSink(stream=CHANGES.name),
    ViewSink(stream=TOTALS.name, emit=Emit.FINAL),
    ViewSink(queue=ALERTS.name, when="clicks > 2", once_per_key=True),
)

Click = tuple[str, int]
"""A user and a time in milliseconds."""


def text_of(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1_000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def sessions_of(clicks: Sequence[Click]) -> dict[tuple[str, int, int], int]:
    """Return the clicks of each session: its user, its start and its end."""
    sessions: dict[tuple[str, int, int], int] = {}
    current: tuple[str, int, int] | None = None
    for user, time_ms in sorted(clicks):
        end_ms, count = time_ms + GAP_MS, 1
        if current is not None and current[0] == user and time_ms <= current[2]:
            count += sessions.pop(current)
            current = (user, current[1], end_ms)
        else:
            current = (user, time_ms, end_ms)
        sessions[current] = count
    return sessions


def partials_of(clicks: Sequence[Click], first: int) -> Partials:
    """Return what Spark returns for a batch, whose records have offsets from `first`."""
    states, sources = [], dict[str, dict[int, SourceRange]]()
    for (user, start_ms, end_ms), count in sessions_of(clicks).items():
        window = {"start": text_of(start_ms), "end": text_of(end_ms)}
        key = msgspec.json.encode({"k0": user, "k1": window}).decode()
        states.append(State(key, str(count), end_ms))
        of_session = [
            offset
            for offset, (own, time_ms) in enumerate(clicks, first)
            if own == user and start_ms <= time_ms < end_ms
        ]
        sources[key] = {0: SourceRange(of_session[0], of_session[-1], len(of_session))}
    return Partials(states, {}, sources)


class Clicks:
    """Clicks that a played worker counts by session."""

    def __init__(self, storage: Storage, worker: Worker) -> None:
        self._storage = storage
        self._worker = worker
        self.every: list[Click] = []

    async def put(self, *clicks: Click, watermark_ms: int = 1) -> None:
        """Commit a batch of clicks."""
        scans = self._storage.view_scans
        revision = (await self._storage.views.status(NAME)).active
        batch = partials_of(clicks, len(self.every))
        keys = session_keys(batch, SESSIONS.key)
        stored = await scans.sessions(revision.revision_id, keys)
        merge = merge_sessions(batch, keys, stored, SESSIONS.key)
        totals: dict[str, tuple[int, int]] = {}
        for key, state, end_ms in merge.states:
            count, last_ms = totals.get(key, (0, 0))
            totals[key] = count + int(state), max(last_ms, end_ms or 0)
        changes = [
            _change(key, count, end_ms, merge.replaced, merge.sources)
            for key, (count, end_ms) in totals.items()
        ]
        await self._worker.commit(*changes, read=len(clicks), watermark_ms=watermark_ms)
        self.every += clicks

    async def rows(self, **options: Any) -> list[dict[str, Any]]:
        page = await self._storage.view_rows.read(NAME, RowQuery(limit=1_000, **options))
        return [msgspec.json.decode(one) for one in page.rows]


def _change(
    key: str,
    count: int,
    end_ms: int,
    replaced: Mapping[bytes, tuple[bytes, ...]],
    sources: Mapping[bytes, Any],
) -> RowChange:
    user, window = key_values(key)
    encoded = encode_key([user, window], SESSIONS.key)
    row = {"user": user, "since": window["start"], "clicks": count}
    return RowChange(
        key=encoded,
        row=msgspec.json.encode(row).decode(),
        state=str(count),
        window_end_ms=end_ms,
        sources=sources[encoded],
        replaces=replaced[encoded],
    )


@pytest.fixture
async def clicks(engines: Storage, worker: Worker) -> Clicks:
    """A view of sessions with three sinks."""
    for stream in (CHANGES, TOTALS):
        await engines.catalog.put_stream(stream, StreamSpec())
    await engines.catalog.put_queue(ALERTS, QueueSpec())
    spec = spec_of(into=INTO)
    query = msgspec.structs.replace(spec.query, sources=SourceMode.RANGE)
    put = engines.views.put(NAME, msgspec.structs.replace(spec, query=query))
    await asyncio.gather(put, worker.plans(PlanResult(plan=SESSIONS)))
    await worker.start()
    return Clicks(engines, worker)


async def sent(engines: Storage, stream: StreamName) -> list[Any]:
    await engines.view_sinks.deliver([await engines.views.get(NAME)])
    page = await engines.record_reader.read_shard(stream, 0, ReadFrom(offset=0))
    return [msgspec.json.decode(one.record.data) for one in page.records]


async def alerts(engines: Storage) -> list[Any]:
    await engines.view_sinks.deliver([await engines.views.get(NAME)])
    received = await engines.queues.receive(ALERTS, messages_max=10, wait_ms=0)
    return [msgspec.json.decode(one.body) for one in received]


async def test_session_that_joins_two_replaces_their_rows(engines, clicks):
    await clicks.put(("ann", 0), ("ann", 25_000), ("bob", 12_000))
    await clicks.put(("ann", 9_000), ("ann", 16_000))

    rows = await clicks.rows()
    assert rows == [
        {"user": "ann", "since": text_of(0), "clicks": 4},
        {"user": "bob", "since": text_of(12_000), "clicks": 1},
    ]
    assert (await engines.views.status(NAME)).active.progress.rows == 2
    changes = [(one["change"], one["before"], one["row"]) for one in await sent(engines, CHANGES)]
    assert changes[3:] == [
        ("delete", {**rows[0], "clicks": 1}, None),
        ("delete", {**rows[0], "clicks": 1, "since": text_of(25_000)}, None),
        ("insert", None, rows[0]),
    ]
    batches = await engines.views.batches(NAME, 1)
    assert batches[0].rows == 3


async def test_session_that_grows_is_the_same_one_for_an_alert(engines, clicks):
    await clicks.put(*[("ann", nth * 1_000) for nth in range(3)])
    await clicks.put(("ann", 4_000))
    await clicks.put(("ann", 60_000), ("ann", 61_000))
    await clicks.put(("ann", 62_000))

    told = await alerts(engines)

    assert [one["row"]["clicks"] for one in told] == [3, 3]
    assert {one["change"] for one in told} == {"insert"}


async def test_final_session_that_grows_is_corrected(engines, clicks):
    await clicks.put(("ann", 0))
    await clicks.put(("bob", 90_000), watermark_ms=80_000)
    await clicks.put(("ann", 5_000), watermark_ms=80_000)  # late, and still ended
    await clicks.put(("ann", 75_000), watermark_ms=80_000)

    finals = [(one["change"], one["row"]) for one in await sent(engines, TOTALS)]

    ann = {"user": "ann", "since": text_of(0)}
    assert finals == [
        ("final", {**ann, "clicks": 1}),
        ("correction", None),
        ("correction", {**ann, "clicks": 2}),
    ]


async def test_sessions_are_read_by_their_start(clicks):
    await clicks.put(*[(user, nth * 60_000) for user in ("ann", "bob", "") for nth in range(3)])

    async def read(**options: Any) -> list[tuple[str, str]]:
        return [(row["user"], row["since"]) for row in await clicks.rows(**options)]

    one, last = text_of(60_000), text_of(120_000)
    assert await read(key=("bob", one)) == [("bob", one)]
    assert await read(key=("bob", text_of(60_001))) == []
    assert await read(key=("bob",), descending=True) == [
        ("bob", text_of(nth * 60_000)) for nth in (2, 1, 0)
    ]
    assert await read(latest=True) == [(user, last) for user in ("", "ann", "bob")]
    assert await read(window_from_ms=70_000, window_to_ms=120_000) == []
    assert await read(window_from_ms=69_999, window_to_ms=120_000, prefix="b") == [("bob", one)]
    assert await read(key=("bob",), window_to_ms=60_001) == [("bob", text_of(0)), ("bob", one)]
    assert len(await read(window_to_ms=1 << 60)) == 9
    with pytest.raises(ValidationFailed, match="where it starts"):
        await read(key=("bob", "yesterday"))


async def test_row_of_a_session_is_found_by_its_start(engines, clicks):
    await clicks.put(("ann", 1_000), ("ann", 2_000), ("bob", 2_000))

    _, row = await engines.view_rows.read_one(NAME, ("ann", text_of(1_000)))
    _, none = await engines.view_rows.read_one(NAME, ("ann", text_of(2_000)))

    assert row is not None
    assert row.sources == {0: SourceRange(0, 1, 2)}
    assert none is None


async def test_sessions_of_long_keys_stay_apart(clicks):
    users = ["x" * 2_000 + end for end in "ab"]
    await clicks.put(*[(user, time_ms) for user in users for time_ms in (0, 30_000)])
    await clicks.put((users[0], 10_000), (users[0], 20_000))

    assert [row["clicks"] for row in await clicks.rows(key=(users[0], text_of(0)))] == [4]
    with pytest.raises(ValidationFailed, match="Too long"):
        await clicks.rows(key=(users[0],))
    assert sorted(row["clicks"] for row in await clicks.rows()) == [1, 1, 4]


@pytest.mark.parametrize("seed", range(10))
async def test_rows_equal_the_sessions_of_all_clicks(engines, clicks, seed):
    random_ = random.Random(seed)
    for _ in range(15):
        times = [random_.randrange(600) * 500 for _ in range(random_.randrange(1, 6))]
        batch = [(random_.choice(("a", "b", "", "ab")), time_ms) for time_ms in times]
        await clicks.put(*batch)

    expected = sessions_of(clicks.every)
    rows = {(row["user"], row["since"]): row["clicks"] for row in await clicks.rows()}
    assert rows == {(user, text_of(start)): n for (user, start, _), n in expected.items()}
    assert (await engines.views.status(NAME)).active.progress.rows == len(rows)
    for user, start_ms, end_ms in random_.sample(sorted(expected), 3):
        _, row = await engines.view_rows.read_one(NAME, (user, text_of(start_ms)))
        assert row is not None
        assert session_key(row.key).end == text_of(end_ms)
        own = [
            offset
            for offset, (one, time_ms) in enumerate(clicks.every)
            if one == user and start_ms <= time_ms < end_ms
        ]
        assert row.sources == {0: SourceRange(own[0], own[-1], len(own))}
    folded: dict[Any, Any] = {}
    for message in await sent(engines, CHANGES):
        shown = message["row"] or message["before"]
        key = shown["user"], shown["since"]
        assert folded.get(key) == message["before"]
        folded[key] = message["row"]
    assert {key: row["clicks"] for key, row in folded.items() if row} == rows
