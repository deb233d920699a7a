"""Rows of what a user waits for: the start of a new deployment, and the command line."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic

from tests.acceptance.deployment import descendants
from tests.bench.plan import CLI_CALL, CLI_HELP, START, Plan
from tests.bench.ratios import Measured, Round, Unmeasurable
from tests.bench.servers import House

COMMAND = (sys.executable, "-m", "api.cli")
START_CPU_S, HELP_CPU_S, CALL_CPU_S = 6.0, 0.15, 0.3
READY = b"Millstream is ready"
REPEATS = 5  # of a command in one round: its time is a few ticks of the processor's clock
TICKS = os.sysconf("SC_CLK_TCK")


def measure_start(_: House, plan: Plan) -> list[Measured]:
    """Start a new deployment without Spark, until it reports readiness."""
    starts = [_start() for _ in range(plan.rounds)]
    waited = sorted(wall_s for _, wall_s in starts)[len(starts) // 2]
    note = f"ready after {waited:.1f} s; with its stores, and with those of its processes that it starts later"
    return [
        Measured(row=START, rounds=[Round(cpu_s, START_CPU_S) for cpu_s, _ in starts], notes=[note])
    ]


def _start() -> tuple[float, float]:
    """Return processor and waiting time, both in seconds."""
    with tempfile.TemporaryDirectory(prefix="ms-") as folder:
        began = monotonic()
        process = subprocess.Popen(
            [*COMMAND, "up", "--port", "0", "--workers", "1", "--data", f"{folder}/data"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "MILLSTREAM_SPARK": "off"},
        )
        try:
            _wait_until_ready(process)
            return _cpu_s({process.pid, *descendants(process.pid)}), monotonic() - began
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate()


def _wait_until_ready(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if READY in line:
            return
    raise Unmeasurable("millstream up did not become ready")


def _cpu_s(pids: set[int]) -> float:
    """Return the time of these processes, and of their children that have ended."""
    return sum(_ticks(pid) for pid in pids) / TICKS


def _ticks(pid: int) -> int:
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15]))  # utime stime cutime cstime
    return 0


def measure_commands(house: House, plan: Plan) -> list[Measured]:
    """Run the command line: its help, and a call of the service."""
    url = f"http://127.0.0.1:{house.api.port}"
    helps = [Round(_command_s(["--help"]), HELP_CPU_S) for _ in range(plan.rounds)]
    calls = [
        Round(_command_s(["queue", "ls", "--url", url]), CALL_CPU_S) for _ in range(plan.rounds)
    ]
    return [Measured(row=CLI_HELP, rounds=helps), Measured(row=CLI_CALL, rounds=calls)]


def _command_s(words: Sequence[str]) -> float:
    before = os.times()
    for _ in range(REPEATS):
        done = subprocess.run([*COMMAND, *words], stdout=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            raise Unmeasurable(f"millstream {words[0]} failed")
    after = os.times()
    spent = (
        after.children_user - before.children_user + after.children_system - before.children_system
    )
    return spent / REPEATS
