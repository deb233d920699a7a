"""What a bench found, and on what; and next to what one found before."""

import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from api.cli.bench.loads import Load
from api.cli.bench.schedule import Tally
from api.cli.errors import CliError, ExitCode
from api.cli.shell.output import Row, table

COMPARED = table("figure", "before", "now", "change")
LATENCIES = ("p50", "p95", "p99", "p99.9", "max")


def result(load: Load, tally: Tally, url: str) -> Row:
    """Everything that is known of a run, as JSON keeps it."""
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
            "clients": pace.hands,
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
    """Where the load came from."""
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
    """An earlier result. Raises CliError when it is none."""
    try:
        told = msgspec.json.decode(path.read_bytes())
        figures(told)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CliError(f"{path} is no result of a bench: {error}", ExitCode.USAGE) from None
    return dict(told)


def figures(told: Row) -> dict[str, float]:
    """What can be compared."""
    rates = {name: float(told[name]) for name in ("calls_per_second", "items_per_second", "failed")}
    return rates | {f"{name} ms": float(told["latency_ms"][name]) for name in LATENCIES}


def comparison(before: Row, now: Row) -> list[Row]:
    """Each figure of both, and by how much it changed."""
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
    """What was asked for otherwise: then figures do not compare."""
    asked: dict[str, Any] = {**before.get("asked", {}), "bench": before.get("bench")}
    wanted = {**now["asked"], "bench": now["bench"]}
    return [f"{name} was {asked.get(name)}" for name in wanted if asked.get(name) != wanted[name]]


def _change(before: float, now: float) -> str:
    return f"{100 * (now - before) / before:+.1f} %" if before else "-"
