"""A connection in memory to an application that does what a path names."""

from collections.abc import AsyncIterator

import pytest

from tests.unit.http2.peer import App, Peer, turns


@pytest.fixture
async def app() -> App:
    return App()


@pytest.fixture
async def peer(app: App) -> AsyncIterator[Peer]:
    opened = Peer(app)
    await opened.exchange()
    yield opened
    opened.transport.reads = True
    app.more.set()
    opened.transport.abort()
    await turns(50)
    assert opened.open_count == 0
    assert not opened.server_state.tasks
    assert not opened.server_state.connections
