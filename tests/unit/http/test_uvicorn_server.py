"""uvicorn's program with a server that is woken: what of uvicorn it relies on."""

import asyncio
import signal
import sys
from itertools import pairwise
from typing import Any, cast

import pytest
import uvicorn
from uvicorn.lifespan.off import LifespanOff

from api.server import uvicorn_server
from api.server.uvicorn_server import WokenServer
from tests.conditions import PATIENCE_S


async def application(scope, receive, send) -> None:
    """Do nothing."""


def make_server() -> WokenServer:
    return WokenServer(uvicorn.Config(application))


async def test_signal_ends_server_at_once():
    server = make_server()
    loop_task = asyncio.create_task(server.main_loop())
    await asyncio.sleep(0.01)

    server.handle_exit(signal.SIGTERM, None)

    await asyncio.wait_for(loop_task, 0.5)
    assert server.should_exit


async def test_signal_before_start_ends_server():
    server = make_server()
    server.handle_exit(signal.SIGTERM, None)

    await asyncio.wait_for(server.main_loop(), 0.5)


async def test_each_tick_renews_date_header(monkeypatch):
    monkeypatch.setattr(uvicorn_server, "_TICK_S", 0.001)
    server = make_server()
    headers = []

    async def tick(counter: int) -> bool:
        await uvicorn.Server.on_tick(server, counter)
        headers.append(server.server_state.default_headers)
        server.should_exit = len(headers) == 5
        return server.should_exit

    monkeypatch.setattr(server, "on_tick", tick)
    await server.main_loop()

    assert all(name == b"date" for (name, _), *_ in headers)
    assert all(before is not after for before, after in pairwise(headers))


class Connection:
    """A connection that ends when it is asked to, or is replaced by one after its upgrade."""

    def __init__(self, server: WokenServer, *, upgrades: bool = False) -> None:
        self.asked = 0
        self.upgraded: Connection | None = None
        self._server = server
        self._upgrades = upgrades
        self._connections = cast(set[Any], server.server_state.connections)
        self._connections.add(self)

    def shutdown(self) -> None:
        """End."""
        self.asked += 1
        self._connections.discard(self)
        if self._upgrades:
            self.upgraded = Connection(self._server)


async def test_shutdown_asks_connections_established_later(monkeypatch):
    """A connection accepted before the end may be established after it, and upgraded after that."""
    monkeypatch.setattr(uvicorn_server, "_WATCH_S", 0.001)
    server = make_server()
    server.servers, server.lifespan = [], LifespanOff(server.config)
    before = Connection(server)
    loop = asyncio.get_running_loop()
    late: list[Connection] = []
    loop.call_soon(lambda: late.append(Connection(server)))
    loop.call_later(0.01, lambda: late.append(Connection(server, upgrades=True)))

    await asyncio.wait_for(server.shutdown(), PATIENCE_S)

    upgraded = late[-1].upgraded
    assert upgraded is not None
    assert [one.asked for one in (before, *late, upgraded)] == [1, 1, 1, 1]


def test_command_line_makes_this_server(monkeypatch):
    servers = []
    monkeypatch.setattr(sys.modules["uvicorn.main"], "Server", uvicorn.Server)
    monkeypatch.setattr(sys, "argv", ["uvicorn", "tests.unit.http.test_uvicorn_server:application"])
    monkeypatch.setattr(WokenServer, "run", lambda self, **_: servers.append(self))

    with pytest.raises(SystemExit):
        uvicorn_server.main()

    assert [type(server) for server in servers] == [WokenServer]
