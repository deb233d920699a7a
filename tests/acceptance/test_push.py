"""kill -9 of each process under WebSocket clients: nothing is lost or skipped."""

import asyncio
import os
import signal
import time
from collections import defaultdict
from contextlib import suppress
from functools import partial
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException
from websockets.typing import Subprotocol

from tests.acceptance.deployment import Deployment
from tests.acceptance.writers import BETWEEN_WRITES_S, insist, write
from tests.websocket_client import Frame, Socket

WRITERS = 3
LOAD_S = 4.0
PAUSE_S = 0.1
CATCH_UP_S = 240.0


class Client:
    """A client that reconnects as documented; `may_be_told` lists errors that are acceptable."""

    may_be_told: tuple[str, ...] = ()

    def __init__(self, url: str) -> None:
        self._address = url.replace("http", "ws") + "/v1/ws"
        self._resume: dict[str, Any] | None = None

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            with suppress(OSError, WebSocketException, TimeoutError):
                async with connect(
                    self._address, subprotocols=[Subprotocol("millstream.v1.json")]
                ) as connection:
                    await self._speak(Socket(connection))
            await asyncio.sleep(PAUSE_S)

    async def _speak(self, socket: Socket) -> None:
        welcome = await socket.hello(**({"resume": self._resume} if self._resume else {}))
        if not welcome["resumed"]:
            await self.subscribe(socket)
        seq = 0
        while True:
            frame = await socket.receive_frame(
                "messages", "records", "ping", "paused", "error", "bye"
            )
            if frame["type"] == "error":
                problem = frame["problem"]
                assert problem["retryable"] or problem["type"].endswith(self.may_be_told), frame
            if frame["type"] == "ping":
                await socket.send_frame("pong", seq=seq)
            if "seq" in frame:
                await self.take(socket, frame)
                seq = frame["seq"]
                self._resume = {"session": welcome["session"], "seq": seq}
                await socket.send_frame("credit", sub="a", messages=100, bytes=2**20, seq=seq)

    async def subscribe(self, socket: Socket) -> None:
        raise NotImplementedError

    async def take(self, socket: Socket, frame: Frame) -> None:
        raise NotImplementedError


class Worker(Client):
    """Acknowledge what is received (`asked`); confirmed bodies are in `done`.

    A response may be lost together with its effect. A store that is away for longer than the
    visibility timeout loses its deliveries.
    """

    may_be_told = (":receipt_handle_expired",)

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.asked: set[str] = set()
        self.done: list[str] = []

    async def subscribe(self, socket: Socket) -> None:
        await socket.subscribe("a", "queue:work", visibility_timeout_seconds=3, auto_extend=True)

    async def take(self, socket: Socket, frame: Frame) -> None:
        self.asked.update(message["body"] for message in frame["messages"])
        handles = [message["receipt_handle"] for message in frame["messages"]]
        ack = partial(socket.request, "ack", sub="a", receipt_handles=handles)
        while (reply := await ack())["type"] == "error":
            assert reply["problem"]["retryable"], reply
            await asyncio.sleep(PAUSE_S)  # until then the server extends the deliveries
        for message, result in zip(frame["messages"], reply["results"], strict=True):
            if result["status"] == "ok":
                self.done.append(message["body"])


class Reader(Client):
    """Track offsets, as a client does that must not skip records."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.found: dict[str, list[int]] = defaultdict(list)
        self._offsets: dict[str, int] = {}

    async def subscribe(self, socket: Socket) -> None:
        start = {"offsets": self._offsets} if self._offsets else {"from": "earliest"}
        await socket.subscribe("a", "stream:clicks", start=start)

    async def take(self, socket: Socket, frame: Frame) -> None:
        shard = str(frame["shard"])
        for record in frame["records"]:
            assert record["offset"] == self._offsets.get(shard, 0), "in order, once"
            self._offsets[shard] = record["offset"] + 1
            self.found[record["key"]].append(int(record["data"]))


class Member(Client):
    """Commit what is received; a member whose session expires loses its shards."""

    may_be_told = (":member_unknown", ":stale_generation")

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.found: dict[str, set[int]] = defaultdict(set)

    async def subscribe(self, socket: Socket) -> None:
        await socket.subscribe("a", "stream:clicks", group="readers")

    async def take(self, socket: Socket, frame: Frame) -> None:
        for record in frame["records"]:
            self.found[record["key"]].add(int(record["data"]))
        await socket.send_frame("ack", sub="a", shard=frame["shard"], up_to=frame["next_offset"])


async def send(client: httpx.AsyncClient, name: str, done: asyncio.Event) -> set[str]:
    """Send messages, each until it is acknowledged, and return their bodies."""
    sent: set[str] = set()
    while not done.is_set():
        body = f"{name}-{len(sent)}"
        headers = {"idempotency-key": body}
        await insist(client, "/v1/queues/work/messages", {"body": body}, headers)
        sent.add(body)
        await asyncio.sleep(BETWEEN_WRITES_S)
    return sent


async def left(client: httpx.AsyncClient) -> int:
    """Count the messages of the queue in any state."""
    stats = (await client.get("/v1/queues/work/stats")).json()
    return int(stats["ready"] + stats["in_flight"] + stats["delayed"])


@pytest.mark.parametrize("victim", ["api", "valkey", "postgres"])
async def test_sockets_survive_killed_process(millstream: Deployment, victim):
    async with httpx.AsyncClient(base_url=millstream.url, timeout=30) as client:
        for path, body in (
            ("/v1/queues/work", {}),
            ("/v1/streams/clicks", {"shards": 2}),
            ("/v1/groups/readers", {"stream": "clicks", "session_timeout_seconds": 3}),
        ):
            await client.delete(path)
            (await client.put(path, json=body)).raise_for_status()
        workers = [Worker(millstream.url) for _ in range(2)]
        readers = [Reader(millstream.url) for _ in range(2)]
        members = [Member(millstream.url) for _ in range(2)]
        clients = [*workers, *readers, *members]
        running = [asyncio.create_task(each_client.run()) for each_client in clients]
        done = asyncio.Event()
        writers = [
            asyncio.create_task(write(client, "/v1/streams/clicks", f"key-{nth}", done))
            for nth in range(WRITERS)
        ]
        senders = [asyncio.create_task(send(client, f"body-{nth}", done)) for nth in range(WRITERS)]

        await asyncio.sleep(LOAD_S / 2)
        os.kill(millstream.children()[victim], signal.SIGKILL)
        await asyncio.sleep(LOAD_S / 2)
        done.set()
        written = {key: list(range(number)) for key, number in await asyncio.gather(*writers)}
        sent = set().union(*await asyncio.gather(*senders))

        def missing() -> dict[str, int]:
            asked = set().union(*(worker.asked for worker in workers))
            joined = {key: set().union(*(one.found[key] for one in members)) for key in written}
            return {
                "messages": len(sent - asked),
                "readers": sum(reader.found != written for reader in readers),
                "keys of the group": sum(joined[key] != {*written[key]} for key in written),
            }

        try:
            give_up_at = time.monotonic() + CATCH_UP_S
            while any(missing().values()) or await left(client):
                assert time.monotonic() < give_up_at, (missing(), await left(client))
                assert not any(task.done() for task in running), [
                    task.exception() for task in running if task.done()
                ]
                await asyncio.sleep(PAUSE_S)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    counted = [body for worker in workers for body in worker.done]
    assert len(counted) == len(set(counted)), "an acknowledged message returned"
