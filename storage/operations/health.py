"""Health checks of the stores: reachability, versions and configuration."""

import asyncio
from collections.abc import Awaitable, Callable
from statistics import median
from time import perf_counter

import attrs
from sqlalchemy import text

from storage.domain.clock import Clock
from storage.domain.errors import MillstreamError
from storage.domain.store_status import HotFigures, PostgresFigures, SlowCommand
from storage.hot_store.servers import HotServers
from storage.operations.diagnostics import Diagnostic
from storage.operations.hot_store_checks import STORE_CLUSTER, clock_finding, hot_store_findings
from storage.operations.replica_set_checks import ReplicaSetChecks
from storage.postgres.database import Database
from storage.postgres.listener import Listener
from storage.postgres.queries import query
from storage.postgres.schema_revision import head, read_schema
from storage.settings import StorageSettings

AWAY = "away, serving what is known"
"""Check of Postgres in an outage that is outlived: the process is ready."""

_CHECK_S = 1.0
_PINGS = 100
_PING_MS_MAX = 5.0
_POSTGRES_MIN = 140_000


@attrs.define(eq=False, slots=False)
class HealthChecks:
    """Checks of the two stores."""

    _store: HotServers
    _database: Database
    _clock: Clock
    _settings: StorageSettings
    _listener: Listener
    _replica_set: ReplicaSetChecks | None = None
    _was_at_head: bool = attrs.field(default=False, init=False)

    @property
    def is_postgres_away(self) -> bool:
        """Return whether Postgres is away, and what is cached serves in its place."""
        return self._listener.is_vouched

    async def check(self) -> dict[str, str]:
        """Map the name of each check to 'ok', AWAY or the problem; each takes a second at most."""
        checks: dict[str, Callable[[], Awaitable[str]]] = {
            "redis": self._hot,
            "postgres": self._postgres,
            "migrations": self._migrations,
        }
        answers = await asyncio.gather(*(_bounded(check) for check in checks.values()))
        return dict(zip(checks, answers, strict=True))

    async def _hot(self) -> str:
        if self._replica_set is not None:
            return await self._replica_set.readiness()
        if await self._store.is_restoring():
            return "a restore into the store is incomplete"
        return await self._store.ping()

    async def _postgres(self) -> str:
        if self.is_postgres_away:  # it may be silent: no question, no wait for its answer
            return AWAY
        await self._database.ping()
        return "ok"

    async def _migrations(self) -> str:
        """Check the database's schema revision.

        A process that had its schema continues while a newer version migrates to its own: migrations only add. A process that
        starts on a newer schema is ready if the schema is compatible with it.
        """
        if self.is_postgres_away:
            return "ok"
        schema = await read_schema(self._database)
        self._was_at_head = self._was_at_head or schema.revision == head()
        if schema.is_usable or (self._was_at_head and schema.is_newer):
            return "ok"
        return f"the database is at revision {schema.revision}; this version requires {head()}"

    async def diagnose(self, pings: int = _PINGS) -> list[Diagnostic]:
        """Return all findings for operators.

        Raises StorageUnavailable when a store is unreachable.
        """
        hot = await self._hot_findings()
        is_silent = any(finding.check == STORE_CLUSTER and finding.ok is False for finding in hot)
        return [
            *hot,
            *await self._replica_set_findings(),
            *([] if is_silent else [await self._latency_finding(pings)]),
            await self._postgres_clock_finding(),
            *await self._postgres_findings(),
        ]

    async def hot_figures(self) -> HotFigures:
        """Return the hot store's statistics.

        Raises StorageUnavailable.
        """
        return await self._store.figures()

    async def slow_commands(self) -> tuple[SlowCommand, ...] | None:
        """Return the latest of the hot store's slow log; None where it may not be read.

        Raises StorageUnavailable.
        """
        return await self._store.slow_commands()

    async def postgres_figures(self) -> PostgresFigures:
        """Return Postgres's statistics.

        Raises StorageUnavailable.
        """
        async with self._database.reading() as session:
            row = (await session.execute(query("postgres_figures"))).one()
        return PostgresFigures(**row._mapping)

    async def _hot_findings(self) -> list[Diagnostic]:
        nodes = await self._store.nodes()
        return hot_store_findings(nodes, self._settings, self._clock.now_ms())

    async def _replica_set_findings(self) -> list[Diagnostic]:
        if self._replica_set is None:
            return []
        return [*await self._replica_set.findings(), await self._standby_finding()]

    async def _standby_finding(self) -> Diagnostic:
        """Check that Postgres, which decides the primary, survives the loss of its machine too."""
        async with self._database.reading() as session:
            standbys = str(await session.scalar(text("show synchronous_standby_names")) or "")
        return Diagnostic(
            "postgres standby",
            True if standbys else None,
            standbys or "no synchronous standby",
            "replicate Postgres synchronously: it decides which store is the primary, and has offsets of groups",
        )

    async def _latency_finding(self, pings: int) -> Diagnostic:
        times = []
        for _ in range(pings):
            began = perf_counter()
            await self._store.ping()
            times.append((perf_counter() - began) * 1000)
        return Diagnostic(
            "store latency",
            True if median(times) <= _PING_MS_MAX else None,
            f"{median(times):.2f} ms (median of {pings} pings)",
            "every call includes this latency: run the API close to its store",
        )

    async def _postgres_clock_finding(self) -> Diagnostic:
        time_ms = await self._postgres_time_ms()
        return clock_finding("postgres clock", "Postgres's", time_ms, self._clock.now_ms())

    async def _postgres_time_ms(self) -> int:
        async with self._database.reading() as session:
            return int(
                await session.scalar(text("select extract(epoch from clock_timestamp()) * 1000"))
                or 0
            )

    async def _postgres_findings(self) -> list[Diagnostic]:
        version = await self._postgres_version()
        migrations = await self._migrations()
        return [
            Diagnostic(
                "postgres version",
                version >= _POSTGRES_MIN,
                f"{version // 10_000}.{version % 10_000}",
                "requires Postgres 14 or later",
            ),
            Diagnostic("migrations", migrations == "ok", migrations, "run millstream migrate"),
        ]

    async def _postgres_version(self) -> int:
        async with self._database.reading() as session:
            return int(await session.scalar(text("show server_version_num")) or 0)


async def _bounded(check: Callable[[], Awaitable[str]]) -> str:
    try:
        async with asyncio.timeout(_CHECK_S):
            return await check()
    except TimeoutError:
        return "no response within one second"
    except MillstreamError as error:
        return error.detail
