"""Report of a bench and its machine, and the comparison with an earlier report."""

import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from api.cli.bench.loads import BenchLoad
from api.cli.bench.schedule import LatencyTally
from api.cli.errors import CliError, ExitCode
from api.cli.shell.output import Row, table

COMPARED = table("figure", "before", "now", "change")
LATENCIES = ("p50", "p95", "p99", "p99.9", "max")


def result(load: BenchLoad, tally: LatencyTally, url: str) -> Row:
    """Return the complete result of a run, as stored in JSON."""
    pace = load.pace
    lasted = max(tally.last_ended_s - pace.warm_up_s, pace.seconds)
    return {
        "bench": str(load.what),
        "url": url,
        "asked": {
            "calls_per_second": pace.calls_per_second,
            "seconds": pace.seconds,
            "warm_up_seconds": pace.warm_up_s,
            "size_bytes": load.size,
            "batch": load.batch,
            "clients": pace.clients,
            "protocol": str(load.protocol),
            "over": str(load.over),
        },
        "calls_per_second": round(tally.calls / lasted, 1),
        "items_per_second": round(tally.items / lasted, 1),
        "failed": tally.failed,
        "failures": tally.failures,
        "latency_ms": tally.latencies.summary_ms(),
        "machine": machine(),
    }


def machine() -> Row:
    """Return the machine that produced the load."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(),
        "load_average": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "millstream": version("millstream"),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not on every platform
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def read_result(path: Path) -> Row:
    """Read an earlier result. Raises CliError for an invalid one."""
    try:
        content = msgspec.json.decode(path.read_bytes())
        figures(content)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CliError(f"{path} is not a bench result: {error}", ExitCode.USAGE) from None
    return dict(content)


def figures(report: Row) -> dict[str, float]:
    """Return the comparable figures."""
    rates = {
        name: float(report[name]) for name in ("calls_per_second", "items_per_second", "failed")
    }
    return rates | {f"{name} ms": float(report["latency_ms"][name]) for name in LATENCIES}


def comparison(before: Row, now: Row) -> list[Row]:
    """Return each figure of both results, and its change."""
    old, new = figures(before), figures(now)
    return [
        {
            "figure": name,
            "before": old[name],
            "now": new[name],
            "change": _change(old[name], new[name]),
        }
        for name in new
    ]


def differences(before: Row, now: Row) -> list[str]:
    """Return the options that differ: then figures do not compare."""
    earlier: dict[str, Any] = {**before.get("asked", {}), "bench": before.get("bench")}
    current = {**now["asked"], "bench": now["bench"]}
    return [
        f"{name} was {earlier.get(name)}" for name in current if earlier.get(name) != current[name]
    ]


def _change(before: float, now: float) -> str:
    return f"{100 * (now - before) / before:+.1f} %" if before else "-"
