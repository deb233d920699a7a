"""The load generators, from Debian: wrk for HTTP, h2load for HTTP/2, redis-benchmark for R."""

import csv
import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.ratios import Unmeasurable

HERE = Path(__file__).parent
CONNECTIONS = 64
PACKAGES = {"wrk": "wrk", "h2load": "nghttp2-client", "redis-benchmark": "redis-tools"}
BEYOND_S_MAX = 60.0  # allowed time beyond the requested duration

_NO_HEADERS: Mapping[str, str] = {}

R_CLIENTS, R_PIPELINE = 50, 32
R_KEY = "bench:reference"


def missing_packages() -> list[str]:
    """Debian packages that are required and missing."""
    return [package for program, package in PACKAGES.items() if shutil.which(program) is None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Results of wrk.

    `delivered`, `empty` and `refused` are counted by scripts that read responses: messages
    received, receives without messages, failed items. `p50_ms`, `p99_ms`: percentiles
    of call latencies.
    """

    calls: int
    seconds: float
    bytes: float
    bad_status: int
    broken: int
    timed_out: int
    delivered: int
    empty: int
    refused: int
    p50_ms: float
    p99_ms: float

    @property
    def rate(self) -> float:
        """Calls per second."""
        return self.calls / self.seconds

    @property
    def delivery_rate(self) -> float:
        """Messages received per second."""
        return self.delivered / self.seconds


def wrk(
    port: int,
    script: str,
    *words: str,
    seconds: int,
    connections: int = CONNECTIONS,
    headers: Mapping[str, str] = _NO_HEADERS,
) -> Load:
    """Run a script of this folder with extra headers; raises Unmeasurable if any call failed."""
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s", "-s", script]
    for name, value in headers.items():
        command += ["-H", f"{name}: {value}"]
    output = output_of(
        [*command, f"http://127.0.0.1:{port}/", "--", *words], seconds + BEYOND_S_MAX
    )
    result = output.partition("RESULT ")[2]
    if not result:
        raise Unmeasurable(f"wrk gave no result: {output.strip()[-200:]}")
    load = Load(**json.loads(result))
    if not load.calls:
        raise Unmeasurable(f"no call was answered within {seconds} s")
    if load.bad_status + load.broken + load.timed_out + load.refused:
        raise Unmeasurable(
            f"of {load.calls} calls {load.bad_status} were answered with an error status, "
            f"{load.broken} broke, {load.timed_out} timed out; {load.refused} answers held errors"
        )
    return load


def h2load(url: str, kind: str, body: Path, *words: str, seconds: int) -> float:
    """Return calls per second that send a body; raises Unmeasurable if any call failed."""
    how = (f"--duration={seconds}", "-H", f"content-type: {kind}", "-d", str(body))
    output = output_of(["h2load", *how, *words, url], seconds + BEYOND_S_MAX)
    rate = re.search(r"finished in [^,]*, ([0-9.]+) req/s", output)
    statuses = re.search(r"status codes: ([0-9]+) 2xx, 0 3xx, 0 4xx, 0 5xx", output)
    if rate is None or statuses is None or not int(statuses[1]):
        raise Unmeasurable(f"h2load said: {output.strip()[-400:]}")
    return float(rate[1])


def redis_benchmark(socket: Path, entries: int, body_bytes: int) -> float:
    """R: entries per second of `XADD s '*' d <literal>`, 50 clients, pipelines of 32, new key."""
    output = output_of(
        [
            "redis-benchmark",
            *("-s", str(socket), "-c", str(R_CLIENTS), "-P", str(R_PIPELINE)),
            *("-n", str(entries), "--csv"),
            *("XADD", R_KEY, "*", "d", "x" * body_bytes),
        ],
        2 * BEYOND_S_MAX,
    )
    rows = list(csv.reader(output.splitlines()))
    try:
        return float(rows[-1][1])
    except (IndexError, ValueError):
        raise Unmeasurable(f"redis-benchmark said: {output.strip()[-200:]}") from None


def output_of(command: Sequence[str], within_s: float) -> str:
    """Return a program's output; raises Unmeasurable if it fails or takes too long."""
    try:
        done = subprocess.run(
            command,
            cwd=HERE,
            capture_output=True,
            text=True,
            timeout=within_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unmeasurable(f"{Path(command[0]).name} did not end within {within_s:.0f} s") from None
    if done.returncode:
        raise Unmeasurable(
            f"{Path(command[0]).name} failed: {(done.stderr or done.stdout).strip()[-200:]}"
        )
    return done.stdout
