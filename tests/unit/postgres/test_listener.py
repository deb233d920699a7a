"""Outages of the listener's connection."""

import asyncio

import pytest

from storage.domain.errors import StorageUnavailable
from storage.postgres.listener import Listener


async def test_outage_ends_though_its_cancellation_is_swallowed(monkeypatch: pytest.MonkeyPatch):
    """A client of the hot store took it for a lost connection, and the task went on for an hour."""
    monkeypatch.setattr("storage.postgres.listener._WITNESS_SECONDS", 0.01)
    reading = asyncio.Event()
    losses: list[str] = []

    async def read_version() -> int:
        reading.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise StorageUnavailable from None
        return 0

    listener = Listener("postgresql://nobody@127.0.0.1:1/none")
    listener.subscribe("names", lambda _: None, lambda: losses.append("lost"))
    listener.trust(read_version, grace_ms=60_000)
    listener._listening = True
    listener._lose()
    outage = listener._outage
    assert outage is not None
    await reading.wait()

    listener.notify_loss()  # as when it listens again
    await asyncio.wait([outage], timeout=5)

    assert outage.done()
    assert losses == ["lost"]
    assert not listener.is_vouched
