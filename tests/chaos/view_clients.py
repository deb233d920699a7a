"""Owners of views, where there is a Spark worker: of one whose query changes and which is paused at times, and of two joins.

events ──▶ tally ──▶ tally.changes     a row for each shard: the number of its records, and the last offset

visits ────────┬──▶ pairs              a row for each ending of values: the number of pairs with it
visits.copies ─┘

visits ────────┬──▶ unchosen           a row for each ending: the number of visits that were not chosen in time
visits.chosen ─┘
"""

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from random import Random
from typing import Any

import httpx

from tests.chaos.callers import Caller, Told
from tests.chaos.checker import CHOSEN, PAIRED, PAIRS, TALLY, UNCHOSEN
from tests.chaos.checking.views import ENDING, MATCH_S
from tests.chaos.history import Kind
from tests.chaos.replay_clients import PATIENCE_S, every_record
from tests.chaos.requests import send_until_done
from tests.chaos.stage import EVENTS, Stage

TALLY_CHANGES = "tally.changes"
CHANGE_S = 12.0
LOOKS = 3  # between two changes
LOOK_S = 0.5
READ_S = 10
_PATH = f"/views/{TALLY}"
_QUERIES = (
    "select shard, count(*) as records, max(offset) as last from c group by shard",
    "select shard, count(offset) as records, max(offset) as last from c group by 1",
)
"""Queries with the same rows: a change of them builds another revision."""

_RELATIONS = ("v", "c")
_JOIN = {
    "sql": f"select right(v.value, {ENDING}) as ending, count(*) as pairs from v join c "
    f"on right(v.value, {ENDING}) = right(c.value, {ENDING}) "
    "and c.event_time between v.event_time - interval 1 hour and v.event_time + interval 1 hour "
    "group by 1",
    "from": {
        relation: {"stream": stream, "watermark_seconds": 3600}
        for relation, stream in zip(_RELATIONS, PAIRED, strict=True)
    },
}
"""Join in which, in a run of up to an hour, each record waits for all later ones, and none is late."""

_DELAY_S = 20  # more than a jump of the store's clock
_LEFT_JOIN = {
    "sql": f"select right(v.value, {ENDING}) as ending, count(*) as records from v left join c "
    f"on v.value = c.value and c.event_time between v.event_time - interval {MATCH_S} seconds "
    f"and v.event_time + interval {MATCH_S} seconds where c.value is null group by 1",
    "from": {
        relation: {"stream": stream, "watermark_seconds": _DELAY_S, "idle_seconds": 10}
        for relation, stream in zip(_RELATIONS, (PAIRED[0], CHOSEN), strict=True)
    },
}
"""Join in which a record waits for a match for less than a minute, and none is late."""

_COMPARED = ("exact", "records", "view_records", "added", "removed", "changed")


def _body(query: int) -> dict[str, Any]:
    """Return the configuration of the view with one of its queries."""
    return {
        "sql": _QUERIES[query],
        "from": {"c": {"stream": EVENTS}},
        "sources": "range",
        "keep_former_seconds": 3600,
        "history_seconds": 3600,
        "into": [{"stream": TALLY_CHANGES}],
    }


class Tally:
    """The view, and the stream that gets the changes of its rows."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._seen: dict[str, Any] | None = None
        self._back_test = ""

    async def put(self, query: int) -> None:
        """Put the view with one of its queries; a worker plans it first."""
        await _insist(self._caller, "PUT", _PATH, _body(query))

    async def back_test(self, query: int) -> None:
        """Start a back-test, or record the result of the one that was started last."""
        path = f"{_PATH}/backtests"
        if not self._back_test:
            answer = await _insist(self._caller, "POST", path, _body(query), statuses={202, 409})
            self._back_test = answer.json()["id"] if answer.is_success else ""
            return
        invoked = self._caller.history.now()
        told = (await _insist(self._caller, "GET", f"{path}/{self._back_test}")).json()
        if told["state"] == "done":
            counts = {name: int(told["result"][name]) for name in _COMPARED}
            self._caller.went_well(Kind.VIEW_BACK_TEST, TALLY, invoked, Told(counts=counts))
        if told["state"] in ("done", "failed", "cancelled"):
            self._back_test = ""

    async def put_sink(self) -> None:
        """Create the stream that gets the changes."""
        body = {"shards": 1, "archive": False}
        await _insist(self._caller, "PUT", f"/streams/{TALLY_CHANGES}", body)

    async def begin(self, kind: str) -> None:
        """Begin a rebuild or a rollback; there may be no revision to return to."""
        await _insist(self._caller, "POST", f"{_PATH}/{kind}", statuses={202, 404})

    async def look(self) -> None:
        """Read the rows, and again those of the read before; record whether they are the same."""
        invoked, before = self._caller.history.now(), self._seen
        if before is not None:
            path = f"{_PATH}/rows?limit=1000&at_batch={before['as_of']['batch']}"
            answer = await _insist(self._caller, "GET", path, statuses={200, 410})
            again = answer.json()
            # another revision has no rows of that batch, or others
            if answer.is_success and again["as_of"]["revision"] == before["as_of"]["revision"]:
                told = Told(counts={"same": int(again == before)})
                self._caller.went_well(Kind.VIEW_HISTORY, TALLY, invoked, told)
        self._seen = (await _insist(self._caller, "GET", f"{_PATH}/rows?limit=1000")).json()

    async def pause(self, method: str) -> None:
        """Pause the view, or resume it."""
        await _insist(self._caller, method, f"{_PATH}/pause")


async def change(stage: Stage, _: str, tally: Tally, chance: Random) -> None:
    """Change the query of the view, rebuild it, roll it back, and pause it."""
    await tally.put_sink()
    await tally.put(0)
    while stage.goes_on:
        for _nth in range(LOOKS):
            await stage.pause(chance, CHANGE_S / LOOKS)
            await tally.look()
            await tally.back_test(chance.randrange(len(_QUERIES)))
        match chance.choice(("put", "put", "rebuilds", "rollbacks")):
            case "put":
                await tally.put(chance.randrange(len(_QUERIES)))
            case kind:
                await tally.begin(kind)
        if chance.random() < 0.3:
            await tally.pause("PUT")
            await stage.pause(chance)
            await tally.pause("DELETE")


async def join(stage: Stage, _: str, caller: Caller, chance: Random) -> None:
    """Put the views that join two streams, which stay as they are."""
    await _insist(caller, "PUT", f"/views/{PAIRS}", _JOIN)
    await _insist(caller, "PUT", f"/views/{UNCHOSEN}", _LEFT_JOIN)
    await stage.over.wait()


async def note_rows(caller: Caller, ends: Mapping[int, int]) -> None:
    """Record the rows of the view once they include all records, and what its changes add up to."""
    invoked = caller.history.now()
    last = [f"{shard}:{end - 1}" for shard, end in ends.items()]
    rows = {str(row["shard"]): row["records"] for row in await _rows(caller, TALLY, last)}
    caller.went_well(Kind.VIEW_ROWS, TALLY, invoked, Told(counts=rows), target=EVENTS)
    sources = {name: n for key in rows for name, n in (await _sources(caller, key)).items()}
    caller.went_well(Kind.VIEW_SOURCES, TALLY, invoked, Told(counts=sources), target=EVENTS)
    await _until_sent(caller)
    caller.went_well(Kind.VIEW_REBUILD, TALLY, invoked, Told(counts=await _rebuilt(caller)))
    caller.went_well(Kind.VIEW_CHANGES, TALLY, invoked, Told(counts=await _summed(caller)))


async def note_pairs(caller: Caller, ends: Mapping[str, Mapping[int, int]]) -> None:
    """Record the rows of the join once they include all records; `ends` are those of each stream."""
    invoked = caller.history.now()
    last = [
        f"{relation}:{shard}:{end - 1}"
        for relation, stream in zip(_RELATIONS, PAIRED, strict=True)
        for shard, end in ends[stream].items()
    ]
    rows = {row["ending"]: row["pairs"] for row in await _rows(caller, PAIRS, last)}
    caller.went_well(Kind.VIEW_ROWS, PAIRS, invoked, Told(counts=rows))


async def note_unmatched(caller: Caller) -> None:
    """Record the rows of the left join once no record waits, and the records of its streams."""
    invoked = caller.history.now()
    visits = await every_record(caller.http, PAIRED[0])
    caller.went_well(Kind.JOINED, PAIRED[0], invoked, Told(visits))
    caller.went_well(Kind.JOINED, CHOSEN, invoked, Told(await every_record(caller.http, CHOSEN)))
    newest_ms = max(one.at_ms for one in visits)
    newest = datetime.fromtimestamp(newest_ms / 1000, UTC)
    path = f"/views/{UNCHOSEN}/rows?limit=1000"
    while True:
        read = (await _insist(caller, "GET", path)).json()
        watermark = read["as_of"]["watermark"]
        is_over = watermark and datetime.fromisoformat(watermark) > newest
        if is_over or caller.history.now() > invoked + PATIENCE_S:
            break
        await asyncio.sleep(LOOK_S)
    rows = {row["ending"]: row["records"] for row in read["rows"]}
    caller.went_well(Kind.VIEW_ROWS, UNCHOSEN, invoked, Told(counts=rows))


async def _rows(caller: Caller, view: str, last: Collection[str]) -> list[dict[str, Any]]:
    """Return the rows of a view, of which there are few, once they include these records."""
    rows: list[dict[str, Any]] = []
    for record in last:
        path = f"/views/{view}/rows?after={record}&wait_seconds={READ_S}&limit=1000"
        rows = (await _insist(caller, "GET", path)).json()["rows"]
    return rows


async def _sources(caller: Caller, key: str) -> dict[str, int]:
    """Return the ranges of a row's sources."""
    path = f"{_PATH}/rows/sources?key={key}&limit=1"
    ranges = (await _insist(caller, "GET", path)).json()["ranges"]
    return {
        f"{one['shard']} {name}": one[name]
        for one in ranges
        for name in ("first", "last", "records")
    }


async def _rebuilt(caller: Caller) -> dict[str, int]:
    """Rebuild the view; return the report, with 1 for each field that is true."""
    await _insist(caller, "POST", f"{_PATH}/rebuilds", statuses={202})
    await _until_sent(caller)
    report = (await _insist(caller, "GET", _PATH)).json()["report"]
    return {name: int(value) for name, value in report.items() if name != "samples"}


async def _insist(
    caller: Caller,
    method: str,
    path: str,
    body: Any = None,
    statuses: Collection[int] = (200, 201),
) -> httpx.Response:
    return await send_until_done(caller.http, method, path, body, {*statuses}, PATIENCE_S)


async def _until_sent(caller: Caller) -> None:
    """Wait until no other revision is built, and no message waits for the sink."""
    while True:
        view = (await _insist(caller, "GET", _PATH)).json()
        if view["building"] is None and not view["sinks"][0]["pending"]:
            return
        await asyncio.sleep(LOOK_S)


async def _summed(caller: Caller) -> dict[str, int]:
    """Return the rows that the changes add up to; -1 for one that began with another row than it found."""
    rows: dict[str, Any] = {}
    wrong = Counter[str]()
    for record in await every_record(caller.http, TALLY_CHANGES):
        change: Any = record.value
        shard = str((change["row"] or change["before"])["shard"])
        if rows.get(shard) != change["before"]:
            wrong[shard] += 1
        rows[shard] = change["row"]
    counts = {shard: int(row["records"]) for shard, row in rows.items() if row is not None}
    return counts | dict.fromkeys(wrong, -1)
