"""Who replays a part of the stream into another one now and then, and writes down what came there."""

import asyncio
from random import Random
from typing import Any

import httpx

from tests.chaos.callers import Told
from tests.chaos.history import Kind, Outcome, Seen
from tests.chaos.stage import EVENTS, Stage
from tests.chaos.stream_door import PAGE, Streams

BETWEEN_S = 5.0
LOOK_S = 0.5
WINDOW_RECORDS = 300
"""Of each shard, at most."""
A_SECOND = 400
OVER = ("done", "failed", "cancelled")
PATIENCE_S = 300.0
"""A worker may be killed twice meanwhile: each time its lease of a minute must end, and Spark begin anew."""


async def replay(stage: Stage, name: str, door: Streams, chance: Random) -> None:
    """Window after window; each target is read when the replay is done, and deleted."""
    number = 0
    while stage.goes_on:
        await stage.pause(chance, BETWEEN_S)
        if stage.goes_on:
            await one_replay(stage, door, f"again-{number}")
            number += 1


async def one_replay(stage: Stage, door: Streams, target: str) -> None:
    """Replay the newest records that there are now, and read them at their target."""
    invoked = stage.history.now()
    shards = (
        await door.caller.rest(Kind.SHARDS, EVENTS, "GET", f"/streams/{EVENTS}/shards", _ends)
    ).seen
    window = [
        (Seen(shard=one.shard, offset=max(0, one.offset - WINDOW_RECORDS)), one) for one in shards
    ]
    if not any(end.offset for _, end in window):
        return
    http = door.caller.http
    await _until_accepted(http, "PUT", f"/v1/streams/{target}", {"shards": 2, "archive": False})
    asked = {
        "id": target,
        "stream": EVENTS,
        "target": {"stream": target},
        "from": {"offsets": {str(first.shard): first.offset for first, _ in window}},
        "to": {"offsets": {str(end.shard): end.offset for _, end in window}},
        "shards": [end.shard for _, end in window],
        "order": "key",
        "pacing": {"records_per_second": A_SECOND},
    }
    if await _until_accepted(http, "POST", "/v1/replays", asked):
        await _note(stage, door, target, invoked, window)
    await _until_accepted(http, "DELETE", f"/v1/streams/{target}", None)


async def _note(
    stage: Stage, door: Streams, target: str, invoked: float, window: list[tuple[Seen, Seen]]
) -> None:
    """Write down how a replay ended, and what is at its target then."""
    http = door.caller.http
    state = await _until_over(stage, http, target)
    places = tuple(Seen(shard=one.shard, offset=one.offset) for pair in window for one in pair)
    done = Outcome.OK if state == "done" else Outcome.UNKNOWN
    about: dict[str, Any] = {"target": target}
    door.caller.note(Kind.REPLAY, EVENTS, invoked, done, 0, state, Told(places), **about)
    if done is Outcome.OK:
        invoked = stage.history.now()
        found = await _everything(http, target)
        door.caller.note(Kind.REPLAYED, target, invoked, Outcome.OK, 0, "", Told(found))


def _ends(told: Any) -> Told:
    return Told(
        tuple(
            Seen(shard=one["index"], offset=one["next"], parents=tuple(one["parents"]))
            for one in told["items"]
        )
    )


async def _until_accepted(http: httpx.AsyncClient, method: str, path: str, body: Any) -> bool:
    """Whether it is done; a shard that it names may have expired. Each of these may be asked for again without another
    effect."""
    while True:
        try:
            answer = await http.request(method, path, json=body)
        except httpx.HTTPError:
            pass
        else:
            if answer.is_success or (method == "DELETE" and answer.status_code == 404):
                return True
            if answer.status_code == 404 and answer.json()["code"] == "shard_not_found":
                return False
            assert answer.status_code >= 429, answer.text
        await asyncio.sleep(LOOK_S)


async def _until_over(stage: Stage, http: httpx.AsyncClient, name: str) -> str:
    give_up_at = stage.history.now() + PATIENCE_S
    while stage.history.now() < give_up_at:
        try:
            answer = await http.get(f"/v1/replays/{name}")
            if answer.is_success and answer.json()["state"] in OVER:
                return str(answer.json()["state"])
        except httpx.HTTPError:
            pass
        await asyncio.sleep(LOOK_S)
    return "not over in time"


async def _everything(http: httpx.AsyncClient, stream: str) -> tuple[Seen, ...]:
    """Every record of a stream that nobody writes to any more."""
    found: list[Seen] = []
    cursor: str | None = None
    while True:
        query: dict[str, Any] = {
            "limit": PAGE,
            **({"cursor": cursor} if cursor else {"from": "earliest"}),
        }
        try:
            answer = await http.get(f"/v1/streams/{stream}/records", params=query)
        except httpx.HTTPError:
            await asyncio.sleep(LOOK_S)
            continue
        if not answer.is_success:
            await asyncio.sleep(LOOK_S)
            continue
        page = answer.json()
        found += [
            Seen(value=one["data"], shard=one["shard"], offset=one["offset"])
            for one in page["records"]
        ]
        if page["next_cursor"] == cursor:
            return tuple(found)
        cursor = page["next_cursor"]
