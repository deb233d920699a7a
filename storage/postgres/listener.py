"""Listener for announcements of other processes: one LISTEN connection per process.

Postgres keeps nothing for a disconnected listener. Subscribers are therefore notified that the connection was
lost, and must then invalidate everything that an announcement could have changed.

    lost ──▶ restored ──▶ notified immediately, and everything is read again
         ├─▶ the hot store has another version of the catalog than was heard of last ──▶ notified
         ├─▶ the hot store has not answered for five seconds ──▶ notified
         └─▶ not restored within a grace period ──▶ notified

Within the grace period cached values stay in use, so that an outage of the database interrupts no message. Any change
that the process cannot hear of raises the version in the hot store first (`storage.catalog.witness`).
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from math import inf
from time import monotonic
from typing import Any

import psycopg
from psycopg import AsyncConnection, sql

from storage.concurrency.periodic import pause_seconds
from storage.concurrency.tasks import end, in_background
from storage.domain import limits
from storage.domain.errors import MillstreamError
from storage.postgres.database import DriverConnection, connection_options, conninfo

logger = logging.getLogger(__name__)

_CHECK_SECONDS = limits.LISTEN_CHECK_MS / limits.SECOND_MS
_REPLY_SECONDS = limits.POSTGRES_REPLY_MS_MAX / limits.SECOND_MS
_GRACE_SECONDS = limits.LISTEN_GRACE_MS / limits.SECOND_MS
_WITNESS_SECONDS = limits.CATALOG_WITNESS_MS / limits.SECOND_MS
_SETTLED_SECONDS = limits.LISTEN_SETTLED_MS / limits.SECOND_MS
_BACKOFF_SECONDS = 0.1
_BACKOFF_SECONDS_MAX = limits.LISTEN_BACKOFF_MS_MAX / limits.SECOND_MS

OnChange = Callable[[str], None]
OnLost = Callable[[], None]
ReadVersion = Callable[[], Awaitable[int]]
"""Returns the catalog's version in the hot store. Raises a MillstreamError."""

CATALOG_VERSION_CHANNEL = "millstream_catalog_version"
_SELECT_VERSION = "SELECT version FROM catalog_version"
_HOLD_LOCK = "SELECT pg_advisory_lock_shared(hashtextextended('worker:' || %s, 0))"


class Listener:
    """Listener for the announcements of a database; reconnects by itself."""

    def __init__(self, url: str) -> None:
        self._conninfo = conninfo(url)
        self._channels: dict[str, list[tuple[OnChange, OnLost]]] = {}
        self._listening = False
        self._outage: asyncio.Task[None] | None = None
        self._version = 0
        self._read_version: ReadVersion | None = None
        self._grace_s = _GRACE_SECONDS
        self._attempted = asyncio.Event()
        self._worker = ""
        self._settled_s = 0.0
        self.subscribe(CATALOG_VERSION_CHANNEL, self._on_version, lambda: None)

    def trust(self, read_version: ReadVersion, grace_ms: int) -> None:
        """Put off the notification of a loss, for `grace_ms` at most, while the version stays.

        To be called before the listener runs.
        """
        self._read_version, self._grace_s = read_version, grace_ms / limits.SECOND_MS

    @property
    def is_vouched(self) -> bool:
        """True if no announcement can arrive, and none was missed as far as the hot store knows."""
        return self._outage is not None

    def subscribe(self, channel: str, on_change: OnChange, on_lost: OnLost) -> None:
        """Call `on_change(payload)` for each announcement, `on_lost()` when some may be missed.

        To be called before the listener runs.
        """
        self._channels.setdefault(channel, []).append((on_change, on_lost))

    @property
    def listening(self) -> bool:
        """True if every announcement from now on will be received, or its loss reported."""
        return self._listening

    def hold_worker_lock(self, worker: str) -> None:
        """Hold the lock of a worker while connected: others see by it that the worker runs.

        To be called before the listener runs.
        """
        self._worker = worker

    def holds_worker_lock(self, worker: str) -> bool:
        """Return whether the lock of this worker is held."""
        return self.listening and worker == self._worker

    @property
    def is_settled(self) -> bool:
        """True if it listens, and did not lose its connection just before.

        Other processes may have lost theirs at the same time, and not have them back yet.
        """
        return self.listening and monotonic() >= self._settled_s

    async def attempted(self) -> None:
        """Wait until it listens for the first time, or has failed to."""
        await self._attempted.wait()

    async def run(self) -> None:
        """Listen until cancelled."""
        pause = _BACKOFF_SECONDS
        while True:
            try:
                await self._listen()
            except (psycopg.Error, OSError, TimeoutError) as error:
                pause = _BACKOFF_SECONDS if self.listening else min(2 * pause, _BACKOFF_SECONDS_MAX)
                reason = str(error).strip() or "no response"
                logger.warning("listener_disconnected", extra={"reason": reason})
            except Exception:
                logger.exception("listener_subscriber_failed")
            finally:
                self._attempted.set()
                self._lose()
            await asyncio.sleep(pause)

    async def _listen(self) -> None:
        connection = await DriverConnection.connect(
            self._conninfo,
            autocommit=True,
            **connection_options() | {"application_name": "millstream-listener"},
        )
        async with connection:
            for channel in self._channels:
                await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
            if self._worker:
                await connection.execute(_HOLD_LOCK, (self._worker,))
            cursor = await connection.execute(_SELECT_VERSION)
            [self._version] = await cursor.fetchone() or (0,)
            self.notify_loss()
            if self._settled_s:
                self._settled_s = monotonic() + _SETTLED_SECONDS
            self._listening = True
            self._attempted.set()
            while True:
                await self._receive(connection)

    async def _receive(self, connection: AsyncConnection[Any]) -> None:
        """Pass on what has arrived and wait for more; detect a dead peer by a query.

        `notifies` with a timeout would look at the socket ten times a second.
        """
        async for notice in connection.notifies(timeout=0):
            for on_change, _ in self._channels[notice.channel]:
                on_change(notice.payload)
        if not await _is_readable(connection.fileno(), _CHECK_SECONDS):
            async with asyncio.timeout(_REPLY_SECONDS):
                await connection.execute("SELECT 1")

    def _lose(self) -> None:
        """Stop relying on announcements before anything else runs."""
        if self.listening:
            self._listening = False
            self._settled_s = inf
            self._outage = asyncio.create_task(self._outlive(), name="postgres-outage")

    async def _outlive(self) -> None:
        """Wait until the grace period is over, or the catalog has changed."""
        try:
            async with asyncio.timeout(self._grace_s):
                await self._await_change()
        except TimeoutError:
            logger.warning("postgres_grace_ended")
        except Exception:
            logger.exception("catalog_witness_failed")
        if self._is_in_this_outage():
            self.notify_loss()

    def _is_in_this_outage(self) -> bool:
        """Return whether the running task's outage lasts; a library may swallow its cancellation."""
        return self._outage is asyncio.current_task()

    async def _await_change(self) -> None:
        """Ask the hot store until it has another version, or has not answered for a while."""
        if self._read_version is None:
            await asyncio.sleep(_GRACE_SECONDS)
            return
        loop = asyncio.get_running_loop()
        answered_s = loop.time()
        while self._is_in_this_outage() and loop.time() - answered_s < _GRACE_SECONDS:
            await asyncio.sleep(_WITNESS_SECONDS)
            with suppress(MillstreamError, TimeoutError):
                async with asyncio.timeout(_WITNESS_SECONDS):
                    version = await self._read_version()
                if version != self._version:
                    facts = {"version": version, "expected": self._version}
                    logger.warning("catalog_changed_in_outage", extra=facts)
                    return
                answered_s = loop.time()
        if self._is_in_this_outage():
            logger.warning("catalog_witness_silent")

    def _on_version(self, payload: str) -> None:
        self._version = max(self._version, int(payload))

    def notify_loss(self) -> None:
        """Notify all subscribers of a loss, if that is still pending."""
        if self._outage is None:
            return
        outage, self._outage = self._outage, None
        if outage is not asyncio.current_task():
            outage.cancel()
        for subscribers in self._channels.values():
            for _, on_lost in subscribers:
                on_lost()

    async def close(self) -> None:
        """Notify all subscribers that nothing is heard any longer, after `run` was cancelled."""
        outage = self._outage
        self.notify_loss()
        if outage is not None:
            await end(outage)


async def _is_readable(file: int, within_s: float) -> bool:
    """Wait until a socket has something to read, or has ended; return whether it did in time."""
    loop, arrived = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(file, arrived.set)
    try:
        async with asyncio.timeout(pause_seconds(within_s, loop.time())):
            return await arrived.wait()
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(file)


@asynccontextmanager
async def running(listener: Listener) -> AsyncGenerator[Listener]:
    """Run the listener while the block runs."""
    try:
        async with in_background(listener.run(), "postgres-listener"):
            yield listener
    finally:
        await listener.close()
