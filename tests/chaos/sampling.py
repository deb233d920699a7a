"""Resource usage of a deployment: memory and files of processes, keys, and rows."""

import asyncio
import os
from collections import Counter, defaultdict
from contextlib import suppress
from pathlib import Path
from typing import cast

import psycopg
import redis
from psycopg import sql

from tests.acceptance.deployment import MARKS, command_line, descendants
from tests.chaos.history import History, Kind, Operation, Outcome
from tests.chaos.site import Site

SENDS = (Kind.SEND, Kind.APPEND)
TABLES = "select relname from pg_stat_user_tables where schemaname = 'public' order by relname"

Sample = dict[str, float]


class Tally(History):
    """Count operations, and keep latencies only until they are read, to bound memory."""

    def __init__(self) -> None:
        super().__init__()
        self._ways: dict[str, Counter[str]] = defaultdict(Counter)
        self._latencies: list[float] = []

    def add(self, operation: Operation) -> None:
        self._ways[operation.kind.value][operation.outcome.value] += 1
        if operation.kind in SENDS and operation.outcome is Outcome.OK:
            self._latencies.append(operation.ended - operation.invoked)

    def counts(self) -> dict[str, dict[str, int]]:
        return {
            kind: {way.value: ways[way.value] for way in Outcome}
            for kind, ways in self._ways.items()
        }

    def latencies(self) -> Sample:
        """Median and 99th percentile of sends since the last call."""
        actual_latencies, self._latencies = sorted(self._latencies), []
        if not actual_latencies:
            return {}
        return {
            "p50 of sends": actual_latencies[len(actual_latencies) // 2],
            "p99 of sends": actual_latencies[int(len(actual_latencies) * 0.99)],
        }


async def sampled(site: Site) -> Sample:
    """Sample everything that must be bounded; stores are queried without proxies."""
    return {
        **of_processes(site),
        **await asyncio.to_thread(_of_valkey, site.valkey.socket),
        **await asyncio.to_thread(_of_postgres, site.postgres.socket.parent),
    }


def of_processes(site: Site) -> Sample:
    """Total memory and open files by program."""
    found: Counter[str] = Counter()
    supervisor = site.deployment.process.pid
    names = {supervisor: "supervisor", site.valkey.pid: "valkey"}
    for pid in descendants(supervisor):
        words = command_line(pid)
        named = [name for name, mark in MARKS.items() if mark in words]
        names[pid] = named[0] if named else "java" if "java" in words.split(" ")[0] else "tasks"
    for pid in {site.postgres.pid, *descendants(site.postgres.pid)}:
        names[pid] = "postgres"
    for pid, name in names.items():
        with suppress(OSError):
            found[f"memory {name}"] += _memory(pid)
            if name != "postgres":
                found[f"files {name}"] += len(os.listdir(f"/proc/{pid}/fd"))
    return {name: float(number) for name, number in found.items()}


def _memory(pid: int) -> int:
    """Proportional set size of a process; raises OSError."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    [kilobytes] = [line.split()[1] for line in lines if line.startswith("Pss:")]
    return int(kilobytes) * 1024


def _of_valkey(socket: Path) -> Sample:
    with redis.Redis(unix_socket_path=str(socket)) as client:
        memory = cast(dict[str, int], client.info("memory"))["used_memory"]
        parts = Counter(_part(key) for key in client.scan_iter(count=1_000))
    kinds = {f"keys {part}": float(count) for part, count in parts.items()}
    return {"valkey memory": float(memory), "keys in all": float(parts.total()), **kinds}


def _part(key: bytes) -> str:
    """The kind of a key, as spelled in storage/redis/keys.py."""
    words = key.decode().rpartition("}")[2].strip(":").split(":")
    return words[0] or "others"


def _of_postgres(sockets: Path) -> Sample:
    with psycopg.connect(
        host=str(sockets), user="postgres", dbname="millstream", autocommit=True
    ) as connection:
        tables = [name for (name,) in connection.execute(TABLES).fetchall()]
        return {f"rows {table}": float(_rows(connection, table)) for table in tables}


def _rows(connection: psycopg.Connection[tuple[int]], table: str) -> int:
    counting = sql.SQL("select count(*) from {}").format(sql.Identifier(table))
    row = connection.execute(counting).fetchone()
    assert row is not None
    return row[0]
