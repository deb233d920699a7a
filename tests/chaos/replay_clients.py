"""Replays of parts of the stream into other streams, and their results."""

import asyncio
from datetime import datetime
from random import Random
from typing import Any

import httpx

from tests.chaos.callers import Told
from tests.chaos.history import Kind, Outcome, Seen
from tests.chaos.stage import EVENTS, Stage
from tests.chaos.stream_protocol import PAGE, Streams

BETWEEN_S = 5.0
LOOK_S = 0.5
WINDOW_RECORDS = 300
"""Maximum per shard."""
A_SECOND = 400
OVER = ("done", "failed", "cancelled")
PATIENCE_S = 300.0
"""Covers two kills of a worker, each with a lease of one minute and a start of Spark."""


async def replay(stage: Stage, name: str, protocol: Streams, chance: Random) -> None:
    """Replay one window after another, and delete each target."""
    number = 0
    while stage.goes_on:
        await stage.pause(chance, BETWEEN_S)
        if stage.goes_on:
            await one_replay(stage, protocol, f"again-{number}")
            number += 1


async def one_replay(stage: Stage, protocol: Streams, target: str) -> None:
    """Replay the newest records, and read the target."""
    invoked = stage.history.now()
    shards = (
        await protocol.caller.rest(Kind.SHARDS, EVENTS, "GET", f"/streams/{EVENTS}/shards", _ends)
    ).seen
    window = [
        (Seen(shard=shard.shard, offset=max(0, shard.offset - WINDOW_RECORDS)), shard)
        for shard in shards
    ]
    if not any(end.offset for _, end in window):
        return
    http = protocol.caller.http
    await _until_accepted(http, "PUT", f"/v1/streams/{target}", {"shards": 2, "archive": False})
    request = {
        "id": target,
        "stream": EVENTS,
        "target": {"stream": target},
        "from": {"offsets": {str(first.shard): first.offset for first, _ in window}},
        "to": {"offsets": {str(end.shard): end.offset for _, end in window}},
        "shards": [end.shard for _, end in window],
        "order": "key",
        "pacing": {"records_per_second": A_SECOND},
    }
    if await _until_accepted(http, "POST", "/v1/replays", request):
        await _note(stage, protocol, target, invoked, window)
    await _until_accepted(http, "DELETE", f"/v1/streams/{target}", None)


async def _note(
    stage: Stage, protocol: Streams, target: str, invoked: float, window: list[tuple[Seen, Seen]]
) -> None:
    """Record how a replay ended, and the contents of its target."""
    http = protocol.caller.http
    state = await _until_over(stage, http, target)
    places = tuple(Seen(shard=one.shard, offset=one.offset) for pair in window for one in pair)
    done = Outcome.OK if state == "done" else Outcome.UNKNOWN
    about: dict[str, Any] = {"target": target}
    protocol.caller.note(Kind.REPLAY, EVENTS, invoked, done, 0, state, Told(places), **about)
    if done is Outcome.OK:
        invoked = stage.history.now()
        found = await every_record(http, target)
        protocol.caller.note(Kind.REPLAYED, target, invoked, Outcome.OK, 0, "", Told(found))


def _ends(told: Any) -> Told:
    return Told(
        tuple(
            Seen(shard=item["index"], offset=item["next"], parents=tuple(item["parents"]))
            for item in told["items"]
        )
    )


async def _until_accepted(http: httpx.AsyncClient, method: str, path: str, body: Any) -> bool:
    """Repeat an idempotent request until accepted; False if a shard has expired."""
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


async def every_record(http: httpx.AsyncClient, stream: str) -> tuple[Seen, ...]:
    """Read every record of a stream without writers."""
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
            Seen(
                value=record["data"],
                shard=record["shard"],
                offset=record["offset"],
                at_ms=_time_ms(record.get("event_time") or record["arrival_time"]),
            )
            for record in page["records"]
        ]
        if page["next_cursor"] == cursor:
            return tuple(found)
        cursor = page["next_cursor"]


def _time_ms(time: str) -> int:
    return round(datetime.fromisoformat(time).timestamp() * 1000)
