"""Rows of an idle deployment: processor time and memory of all its processes, without Spark."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import IO

from tests.bench.plan import IDLE_CPU, IDLE_MEMORY, Plan
from tests.bench.ratios import Measured, Round, Unmeasurable
from tests.bench.servers import House
from tests.bench.wire import HttpConnection

CPU_PERCENT_MAX, MEMORY_MB_MAX = 1.0, 350.0
WARM_UP_S = 20.0  # first rounds of maintenance, and first-use allocations
STOP_S = 30.0
NANOSECONDS_PER_S = 1e9
KIB_PER_MB = 1024.0


def measure_idle_deployment(house: House, plan: Plan) -> list[Measured]:
    """Start `millstream up` without an archive, with queues and streams that nobody uses."""
    count = plan.idle_resources
    with deployment(house.data / "idle-deployment") as (pid, port):
        with HttpConnection(port) as connection:
            for number in range(count):
                connection.call("PUT", f"/v1/queues/idle-{number}", b"{}")
                connection.call("PUT", f"/v1/streams/idle-{number}", b"{}")
                record = {"records": [{"data": "x", "key": "x"}]}
                body = json.dumps(record).encode()
                connection.call("POST", f"/v1/streams/idle-{number}/records", body)
        sleep(WARM_UP_S)
        began_s, before_s = monotonic(), processor_seconds(pid)
        sleep(plan.idle_seconds)
        percent = 100 * (processor_seconds(pid) - before_s) / (monotonic() - began_s)
        processes = descendants(pid)
        megabytes = sum(map(resident_mb, processes))
    note = f"{len(processes)} processes, those of Valkey and Postgres included; {count} queues and {count} streams"
    return [
        Measured(row=IDLE_CPU, rounds=[Round(percent, CPU_PERCENT_MAX)], notes=[note]),
        Measured(row=IDLE_MEMORY, rounds=[Round(megabytes, MEMORY_MB_MAX)], notes=[note]),
    ]


@contextmanager
def deployment(data: Path, *options: str) -> Generator[tuple[int, int]]:
    """Run `millstream up` with further options; yield its process id and its port."""
    command = [sys.executable, "-m", "api.cli", "up", "--port", "0", "--data", str(data)]
    command += ["--workers", "1", *options]  # on any machine
    environment = {**os.environ, "MILLSTREAM_ARCHIVE_URL": "off"}
    for name in ("REDIS_URL", "DATABASE_URL"):
        environment.pop(name, None)
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            port = _port_of(process.stdout)
            threading.Thread(target=process.stdout.read, daemon=True).start()
            yield process.pid, port
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _port_of(output: IO[str]) -> int:
    for line in output:
        if match := re.search(r"ready at http://[^:]+:(\d+)", line):
            return int(match[1])
    raise Unmeasurable("the deployment did not start")


def descendants(pid: int) -> list[int]:
    """Return a process and those that it started, directly or not."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(entry.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        parents.setdefault(parent, []).append(int(entry.parent.name))
    found, waiting = [], [pid]
    while waiting:
        found.append(waiting.pop())
        waiting += parents.get(found[-1], [])
    return found


def processor_seconds(pid: int) -> float:
    """Return the processor time of all threads of a process and its descendants."""
    schedules = [
        path.read_text()
        for process in descendants(pid)
        for path in Path(f"/proc/{process}/task").glob("*/schedstat")
    ]
    return sum(int(schedule.split()[0]) for schedule in schedules) / NANOSECONDS_PER_S


def resident_mb(pid: int) -> float:
    """Return the proportional share of the memory of a process, in megabytes."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / KIB_PER_MB
