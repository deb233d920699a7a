"""Sockets that receive from a queue: credit, verdicts, and interrupted connections.

The model records who holds which delivery. Whatever happens to a socket, no message is with two
clients, no acknowledged message is redelivered, no more is sent than the credit allows, and what an
interrupted socket lost is sent to the next one.
"""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from storage.bootstrap import Storage, open_storage
from storage.domain.limits import Limits
from storage.domain.names import QueueName
from storage.domain.queues.message import NewMessage, SettleAction, Settlement
from storage.domain.queues.queue import QueueSpec
from storage.settings import StorageSettings
from tests.conditions import PATIENCE_S
from tests.stateful.conftest import Bench
from tests.websocket_client import Frame, Server, Socket, running_server

pytestmark = pytest.mark.one_store

QUIET_S = 0.02  # after this much silence, no more frames are expected
HELD_S = 3600
SPEC = QueueSpec(attempts_max=None)
CLIENTS = st.integers(0, 2)


@dataclass
class ClientModel:
    """A client: its session, its unsettled deliveries, and its remaining credit."""

    session: str = ""
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    socket: Socket | None = None
    packed: bool = False
    seq: int = 0
    credit: int = 0
    held: dict[str, int] = field(default_factory=dict)  # message number by receipt handle
    seen: set[str] = field(default_factory=set)


@dataclass
class House:
    """A service and its storage."""

    storage: Storage
    server: Server
    bench: Bench


class PushMachine(RuleBasedStateMachine):
    """One queue, and three clients."""

    def __init__(self, house: House) -> None:
        super().__init__()
        self.house = house
        self.run = house.bench.run
        self.clients = [ClientModel() for _ in range(3)]

    @initialize()
    def create(self) -> None:
        self.queue = QueueName(self.house.bench.new_name("queue"))
        self.run(self.house.storage.catalog.put_queue(self.queue, SPEC))
        self.sent = 0
        self.done: set[int] = set()

    @rule(count=st.integers(1, 8))
    def send(self, count: int) -> None:
        bodies = [NewMessage(b"%d" % number) for number in range(self.sent, self.sent + count)]
        self.run(self.house.storage.queues.send(self.queue, bodies))
        self.sent += count

    # Connections

    @rule(nth=CLIENTS, credit=st.integers(0, 6), packed=st.booleans())
    def connect(self, nth: int, credit: int, packed: bool) -> None:
        client = self.clients[nth]
        if client.session:
            return
        client.packed = packed
        client.socket = self._socket(client)
        client.session = self.run(client.socket.hello())["session"]
        client.credit = credit
        self.run(self._subscribe(client.socket, credit))

    async def _subscribe(self, socket: Socket, credit: int) -> None:
        await socket.subscribe(
            "a",
            f"queue:{self.queue.name}",
            credit={"messages": credit, "bytes": 10_000},
            visibility_timeout_seconds=HELD_S,
        )

    def _socket(self, client: ClientModel) -> Socket:
        opened = self.house.server.socket(packed=client.packed, greet=False)
        socket: Socket = self.run(client.stack.enter_async_context(opened))
        return socket

    @rule(nth=CLIENTS)
    def cut(self, nth: int) -> None:
        """Break the connection, losing what is in transit."""
        client = self.clients[nth]
        if client.socket is not None:
            client.socket.cut()
            self.run(client.stack.aclose())
            client.stack = AsyncExitStack()
            client.socket = None

    @rule(nth=CLIENTS)
    def resume(self, nth: int) -> None:
        """Resume, possibly while the last connection still seems open."""
        client = self.clients[nth]
        if not client.session:
            return
        before, client.stack = client.stack, AsyncExitStack()
        socket = self._socket(client)
        welcome = self.run(socket.hello(resume={"session": client.session, "seq": client.seq}))
        self.run(before.aclose())
        assert welcome["resumed"]
        client.socket = socket
        self._hear(client)

    @rule(nth=CLIENTS)
    def close(self, nth: int) -> None:
        """Close the session, which releases its deliveries."""
        client = self.clients[nth]
        if client.socket is not None:
            self.run(client.stack.aclose())
            self.clients[nth] = ClientModel()

    # Frames

    @rule(nth=CLIENTS)
    def receive_frame(self, nth: int) -> None:
        if self.clients[nth].socket is not None:
            self._hear(self.clients[nth])

    def _hear(self, client: ClientModel) -> None:
        assert client.socket is not None
        for frame in self.run(_all_frames(client.socket)):
            assert frame["type"] in ("messages", "ping"), frame
            if frame["type"] == "messages":
                self._take(client, frame)

    def _take(self, client: ClientModel, frame: Frame) -> None:
        assert frame["seq"] > client.seq
        client.seq = frame["seq"]
        for message in frame["messages"]:
            handle, number = message["receipt_handle"], int(message["body"])
            assert handle not in client.seen, "sent again, though it had arrived"
            assert number not in self.done  # Q4
            others = [one for one in self.clients if one is not client]
            assert all(number not in one.held.values() for one in others)  # Q1
            client.seen.add(handle)
            client.held[handle] = number
            client.credit -= 1
        assert client.credit >= 0

    @rule(nth=CLIENTS, count=st.integers(1, 5), confirm=st.booleans())
    def grant(self, nth: int, count: int, confirm: bool) -> None:
        client = self.clients[nth]
        if client.socket is None:
            return
        more: dict[str, Any] = {"seq": client.seq} if confirm else {}
        self.run(client.socket.send_frame("credit", sub="a", messages=count, bytes=1_000, **more))
        client.credit += count

    # Verdicts

    @precondition(lambda self: any(client.held for client in self.clients))
    @rule(
        nth=CLIENTS,
        verdict=st.sampled_from(["ack", "ack", "nack", "release"]),
        count=st.integers(1, 3),
        twice=st.booleans(),
    )
    def settle(self, nth: int, verdict: str, count: int, twice: bool) -> None:
        client = self.clients[nth]
        handles = list(client.held)[:count]
        if client.socket is None or not handles:
            return
        more = {"delay_seconds": 0} if verdict == "nack" else {}
        for number in range(2 if twice and verdict == "ack" else 1):
            reply = self.run(self._ask(client, verdict, handles, more))
            assert reply["failed"] == 0, (number, reply)
        for handle in handles:
            number = client.held.pop(handle)
            if verdict == "ack":
                self.done.add(number)

    async def _ask(
        self, client: ClientModel, verdict: str, handles: list[str], more: dict[str, Any]
    ) -> Frame:
        assert client.socket is not None
        return await client.socket.request(verdict, sub="a", receipt_handles=handles, **more)

    def teardown(self) -> None:
        """Check that every unacknowledged message is in the queue exactly once."""
        if not hasattr(self, "queue"):
            return
        for nth, client in enumerate(self.clients):
            if client.session and client.socket is None:
                self.resume(nth)
        self.run(asyncio.wait_for(self._everything_arrives(), PATIENCE_S))
        for nth in range(len(self.clients)):
            self.close(nth)
        left = sorted(self.run(self._drained()))
        assert left == [number for number in range(self.sent) if number not in self.done]  # Q5

    async def _everything_arrives(self) -> None:
        """Wait until every message in flight is known to a client."""
        while True:
            for client in self.clients:
                for frame in await _all_frames(client.socket) if client.socket else ():
                    if frame["type"] == "messages":
                        self._take(client, frame)
            stats = await self.house.storage.queues.stats(self.queue)
            if stats.in_flight == sum(len(client.held) for client in self.clients):
                return

    async def _drained(self) -> list[int]:
        found: list[int] = []
        queues = self.house.storage.queues
        async with asyncio.timeout(PATIENCE_S):
            while len(found) < self.sent - len(self.done):
                messages = await queues.receive(self.queue, messages_max=100, wait_ms=500)
                found += [int(message.body) for message in messages]
                acks = [
                    Settlement(each_message.receipt_handle, SettleAction.ACK)
                    for each_message in messages
                ]
                if acks:
                    await queues.settle(self.queue, acks)
        stats = await queues.stats(self.queue)
        assert (stats.ready, stats.in_flight) == (0, 0)
        return found


async def _all_frames(socket: Socket) -> list[Frame]:
    """Receive frames until none arrives."""
    found, socket.pending = socket.pending, []
    while True:
        try:
            async with asyncio.timeout(QUIET_S):
                found.append(await socket.next())
        except TimeoutError:
            return found


@pytest.fixture
def house(redis_url: str, database_url: str, examples: settings) -> Iterator[House]:
    """A service with the stores' own clock."""
    stores = StorageSettings(redis_url=redis_url, database_url=database_url)
    limits = Limits(push_tick_ms=20, resume_ms=600_000)
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        storage = runner.run(stack.enter_async_context(open_storage(stores)))
        server = runner.run(stack.enter_async_context(running_server(storage, limits)))
        bench = Bench(storage, None, runner.run, examples)  # type: ignore[arg-type]
        try:
            yield House(storage, server, bench)
        finally:
            runner.run(stack.aclose())


def test_queue_satisfies_invariants_over_interrupted_sockets(house):
    run_state_machine_as_test(
        partial(PushMachine, house),  # type: ignore[arg-type]
        settings=settings(house.bench.half, stateful_step_count=25),
    )
