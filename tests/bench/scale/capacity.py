"""Model of a deployment's capacity: from measured costs of a call to clusters of 100 primaries.

Assumptions, which the page states with the table:

* A primary runs scripts on one core, and an API process runs on one core. Both are planned at half load, so that twice
  the planned rate still fits.
* A call costs what it cost on the largest cluster that was measured: with more primaries, each flush has fewer commands
  to share its cost with, which the largest measured cluster shows in part.
* Logs are placed by their hash slots, independently of one another. The fullest of m primaries with L logs has more than
  its share: by about sqrt(2 m ln(m) / L) of it, the usual bound for many balls in few bins. It limits the rate.
* Disks, the network and Postgres keep up; `appendfsync always` costs time, not processor time.
"""

import re
from collections.abc import Sequence
from math import ceil, log, sqrt
from typing import NamedTuple

from tests.bench.scale.primaries import API, STORE

LOAD = 0.5
LOGS_PER_PRIMARY = 100
PRIMARIES = (1, 2, 3, 10, 30, 100)
TABLE = "primaries-capacity"
_MICRO = 1e6
_ROW = re.compile(r"^\| (.+?) \| (.+) \| [\d.,]+ .+ \|$", re.MULTILINE)


class CallCost(NamedTuple):
    """Processor time of one call in µs: of an API process, and of all primaries together."""

    api_us: float
    store_us: float


class Capacity(NamedTuple):
    """Calls per second of a deployment, and the API processes that they need."""

    calls_per_second: float
    api_processes: int


def imbalance(primaries: int, logs: int) -> float:
    """Return the load of the fullest primary, relative to the mean."""
    return 1 + sqrt(2 * primaries * log(primaries) / logs)


def capacity(cost: CallCost, primaries: int, logs: int) -> Capacity:
    """Return what a cluster does when its fullest primary has the planned load."""
    of_one = LOAD * _MICRO / cost.store_us
    rate = of_one * primaries / imbalance(primaries, logs)
    return Capacity(rate, ceil(rate * cost.api_us / (LOAD * _MICRO)))


def published_costs(page: str) -> dict[str, CallCost]:
    """Return the costs on the largest cluster from the tables of docs/performance.md, by call."""
    api, store = (_last_column(page, name) for name in (API, STORE))
    return {label: CallCost(api[label], store[label]) for label in api}


def _last_column(page: str, name: str) -> dict[str, float]:
    _, _, after = page.partition(f"<!-- curve: {name} -->\n")
    table, _, _ = after.partition("<!-- end -->")
    rows = [(label, cells.split(" | ")) for label, cells in _ROW.findall(table)]
    return {label: float(cells[-1].replace(",", "")) for label, cells in rows[1:]}


def described(page: str, primaries: Sequence[int] = PRIMARIES) -> str:
    """Return the table of the model, as Markdown, from the measurements on the page."""
    costs = published_costs(page)
    head = " | ".join(f"{count:,}" for count in primaries)
    lines = [
        f"| calls a second (API processes), by primaries | {head} |",
        f"|---|{'--:|' * len(primaries)}",
    ]
    for label, cost in costs.items():
        planned = [capacity(cost, count, count * LOGS_PER_PRIMARY) for count in primaries]
        cells = [f"{_rounded(one.calls_per_second)} ({one.api_processes:,})" for one in planned]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _rounded(number: float) -> str:
    """Return two significant digits: the model is no more exact."""
    return f"{float(f'{number:.1e}'):,.0f}"
