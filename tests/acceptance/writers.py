"""Persistent writers and a complete reader, for streams under faults."""

import asyncio
from collections import defaultdict
from itertools import count
from typing import Any

import httpx

PAUSE_S = 0.05
BETWEEN_WRITES_S = 0.01  # keeps requests in flight without saturating the machine


async def write(
    client: httpx.AsyncClient, stream: str, key: str, done: asyncio.Event
) -> tuple[str, int]:
    """Append numbers with idempotency keys, each until acknowledged; return the count."""
    for number in count():
        if done.is_set():
            return key, number
        record = {"data": str(number), "key": key}
        headers = {"idempotency-key": f"{key}-{number}"}
        await insist(client, f"{stream}/records", record, headers)
        await asyncio.sleep(BETWEEN_WRITES_S)
    raise AssertionError


async def insist(client: httpx.AsyncClient, path: str, body: Any, headers: dict[str, str]) -> None:
    for _ in count():
        if await succeeds(client, path, body, headers):
            return
        await asyncio.sleep(PAUSE_S)


async def succeeds(
    client: httpx.AsyncClient, path: str, body: Any, headers: dict[str, str]
) -> bool:
    try:
        answer = await client.post(path, json=body, headers=headers)
    except httpx.TransportError:
        return False
    assert answer.status_code < 400 or answer.status_code in {503, 504}, answer.text
    return answer.is_success


async def read_everything(client: httpx.AsyncClient, stream: str) -> dict[str, list[int]]:
    """The numbers of each key, in the order in which a reader receives them."""
    found: dict[str, list[int]] = defaultdict(list)
    cursor = ""
    while True:
        answer = await client.get(f"{stream}/records", params={"cursor": cursor, "limit": 1000})
        page = answer.raise_for_status().json()
        for record in page["records"]:
            found[record["key"]].append(int(record["data"]))
        if page["next_cursor"] == cursor:
            return found
        cursor = page["next_cursor"]
